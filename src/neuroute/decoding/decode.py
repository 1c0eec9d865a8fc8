"""Decode a whole test set, as many instances at a time as the memory budget holds."""

import contextlib
import time
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from neuroute.decoding.beam import beam_tours
from neuroute.decoding.greedy import Decide, greedy_tours
from neuroute.decoding.rrc import reconstruct
from neuroute.plan.objects import Decoding

Coords = np.ndarray | Tensor


def autocast(device: torch.device, precision: str) -> contextlib.AbstractContextManager[Any]:
    """bf16 mixed precision, or nothing for fp32."""
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16")


def batch_size(net: Any, nodes: int, decoding: Decoding, memory_gb: float) -> int:
    """Instances that fit: about 16 floats of activations per token and channel are alive at once."""
    if decoding.batch_size:
        return decoding.batch_size
    per_instance = 4 * 16 * net.width * (nodes + 1) * decoding.beam
    if next(net.parameters()).device.type == "cpu":
        enough = 8192 // ((nodes + 1) * decoding.beam)  # more tokens at once bring no speed, only cache misses
    else:
        enough = min(4096, 65_535 // decoding.beam)  # rows of a batch: the limit of a CUDA grid's smaller axes
    return max(1, min(int(memory_gb * 1e9 / per_instance), enough))


def decode(net: Any, coords: Coords, decoding: Decoding, memory_gb: float = 4.0, precision: str = "fp32") -> Tensor:
    """coords (count, n, 2) anywhere -> tours (count, n) int64 on the CPU."""
    coords, device = torch.as_tensor(coords), next(net.parameters()).device

    def solve(part: Tensor) -> Tensor:
        if decoding.method == "beam" and decoding.beam > 1:
            return beam_tours(_decide_for(net, decoding, part.shape[1]), net.encode(part), part, decoding.beam)
        return last(_improving(net, part, decoding))

    with torch.inference_mode(), autocast(device, precision):
        parts = coords.split(batch_size(net, coords.shape[1], decoding, memory_gb))
        return torch.cat([solve(part.to(device)).cpu() for part in parts])


def construct(net: Any, coords: Coords, memory_gb: float = 4.0, precision: str = "fp32") -> Tensor:
    """The greedy tours (count, n) int64 on the CPU of coords (count, n, 2) anywhere.

    For the validations of training, which so does not hang on the code of searches.
    """
    coords, device = torch.as_tensor(coords), next(net.parameters()).device
    n = coords.shape[1]
    with torch.inference_mode(), autocast(device, precision):
        parts = [part.to(device) for part in coords.split(batch_size(net, n, Decoding(), memory_gb))]
        return torch.cat([greedy_tours(_decide_for(net, Decoding(), n), net.encode(part)).cpu() for part in parts])


def last(solutions: Iterable[Tensor]) -> Tensor:
    """The last of many solutions, without keeping the others."""
    return deque(solutions, maxlen=1).pop()


def improve(
    net: Any, coords: Coords, decoding: Decoding, memory_gb: float = 4.0, precision: str = "fp32"
) -> list[tuple[int, Tensor, float]]:
    """(iterations, tours (count, n) on the CPU, seconds until then) at each of the decoding's milestones."""
    coords, device = torch.as_tensor(coords), next(net.parameters()).device
    with torch.inference_mode(), autocast(device, precision):
        parts = coords.split(batch_size(net, coords.shape[1], decoding, memory_gb))
        return timed_milestones((_improving(net, part.to(device), decoding) for part in parts), decoding.milestones)


def timed_milestones(parts: Iterable[Iterator[Tensor]], milestones: Iterable[int]) -> list[tuple[int, Tensor, float]]:
    """(iterations, solutions of all parts on the CPU, seconds until then); each part yields one after the other."""
    found: dict[int, list[Tensor]] = {m: [] for m in sorted(milestones)}
    seconds = dict.fromkeys(found, 0.0)
    began = time.perf_counter()
    for part in parts:
        for iteration, solutions in enumerate(part):
            if iteration in found:
                found[iteration].append(solutions.cpu())
                seconds[iteration] += time.perf_counter() - began
        began = time.perf_counter()
    return [(m, torch.cat(solutions), seconds[m]) for m, solutions in found.items()]


def _improving(net: Any, coords: Tensor, decoding: Decoding) -> Iterator[Tensor]:
    """The greedy tours (batch, n), then those after each iteration of random re-construct."""
    n = coords.shape[1]
    tours = greedy_tours(_decide_for(net, decoding, n), net.encode(coords))
    yield tours
    if decoding.method == "rrc":
        # A segment is a smaller problem: the log(n) factor follows its size, from the training size on.
        def decide_for(m: int) -> Decide:
            return _decide_for(net, decoding, max(m, net.train_nodes))

        yield from reconstruct(decide_for, net.encode, coords, tours, decoding.iterations)


def _decide_for(net: Any, decoding: Decoding, nodes: int) -> Decide:
    scale = net.attention_scale(nodes) if decoding.log_n else 1.0
    return lambda rows: net.decide(rows, scale)
