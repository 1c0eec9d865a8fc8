"""Decode a whole test set, as many instances at a time as the memory budget holds."""

import contextlib
from typing import Any

import torch
from torch import Tensor

from neuroute.decoding.beam import beam_tours
from neuroute.decoding.greedy import Decide, greedy_tours
from neuroute.decoding.rrc import reconstruct
from neuroute.plan.objects import Decoding


def autocast(device: torch.device, precision: str) -> contextlib.AbstractContextManager[Any]:
    """bf16 mixed precision, or nothing for fp32."""
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16")


def batch_size(net: Any, nodes: int, decoding: Decoding, memory_gb: float) -> int:
    """Instances that fit: about 16 floats of activations per token and channel are alive at once."""
    if decoding.batch_size:
        return decoding.batch_size
    per_instance = 4 * 16 * net.width * (nodes + 1) * decoding.beam
    # More than about 8192 tokens at once brings no speed on a CPU, only cache misses.
    enough = max(1, 8192 // ((nodes + 1) * decoding.beam)) if next(net.parameters()).device.type == "cpu" else 4096
    return max(1, min(int(memory_gb * 1e9 / per_instance), enough))


def decode(net: Any, coords: Tensor, decoding: Decoding, memory_gb: float = 4.0, precision: str = "fp32") -> Tensor:
    """coords (count, n, 2) anywhere -> tours (count, n) int64 on the CPU."""
    device = next(net.parameters()).device
    n = coords.shape[1]

    def decide_for(nodes: int) -> Decide:
        scale = net.attention_scale(nodes) if decoding.log_n else 1.0
        return lambda rows: net.decide(rows, scale)

    def solve(part: Tensor) -> Tensor:
        nodes = net.encode(part)
        if decoding.method == "beam" and decoding.beam > 1:
            return beam_tours(decide_for(n), nodes, part, decoding.beam)
        tours = greedy_tours(decide_for(n), nodes)
        if decoding.method == "rrc":
            # A segment is a smaller problem: the log(n) factor follows its size, from the training size on.
            return reconstruct(lambda m: decide_for(max(m, net.train_nodes)), nodes, part, tours, decoding.iterations)
        return tours

    with torch.inference_mode(), autocast(device, precision):
        parts = coords.split(batch_size(net, n, decoding, memory_gb))
        return torch.cat([solve(part.to(device)).cpu() for part in parts])
