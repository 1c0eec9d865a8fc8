"""How many instances fit in memory at a time, and in which precision they are decoded."""

import contextlib
from typing import Any

import numpy as np
import torch
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.plan.objects import Decoding

Coords = np.ndarray | Tensor


def autocast(device: torch.device, precision: str) -> contextlib.AbstractContextManager[Any]:
    """bf16 mixed precision, or nothing for fp32."""
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16")


def batch_size(net: Any, nodes: int, decoding: Decoding, memory_gb: float) -> int:
    """Instances that fit: about 16 floats of activations per token and channel are alive at once.

    What a network keeps of pairs of tokens has a quarter of the memory to itself.  Raises NeurouteError when the
    activations of one instance are more than all of it.
    """
    per_instance = 4 * 16 * net.width * (nodes + 1) * decoding.beam
    if per_instance > memory_gb * 1e9:
        beam = f" with beam {decoding.beam}" if decoding.beam > 1 else ""
        raise NeurouteError(
            f"an instance of {nodes} nodes{beam} needs about {per_instance / 1e9:.2g} GB for its activations, and "
            f"memory_gb is {memory_gb:.2g}: set it in config.yaml to that or more, or take a smaller instance or beam"
        )
    if decoding.batch_size:
        return decoding.batch_size
    pairs = getattr(net, "pair_channels", 0) * (nodes + 1) ** 2
    held = max(1, pair_floats(memory_gb) // pairs) if pairs else 65_535
    if next(net.parameters()).device.type == "cpu":
        enough = 8192 // ((nodes + 1) * decoding.beam)  # more tokens at once bring no speed, only cache misses
    else:
        enough = min(4096, 65_535 // decoding.beam)  # rows of a batch: the limit of a CUDA grid's smaller axes
    return max(1, min(int(memory_gb * 1e9 / per_instance), enough, held))


def pair_floats(memory_gb: float) -> int:
    """Numbers that a network may keep of pairs of tokens: a quarter of the memory."""
    return int(memory_gb * 1e9 / 16)
