"""What the parts of the bench share: the networks that are timed, and how."""

import time
from collections.abc import Callable

import torch

from neuroute.core import device as devices
from neuroute.networks.decoder_only import DecoderOnly
from neuroute.pipeline.papers.scaling.tables import DecoderOnly as Counts

NODES = 100
SHAPES = {(6, 128): 8, (42, 128): 8, (6, 512): 16}  # (depth, width) -> heads


def best_of(repeats: int, run: Callable[[], object], device: torch.device) -> float:
    """Seconds of the fastest of several calls, after one that warms up."""
    run()
    seconds = []
    for _ in range(repeats):
        devices.synchronize(device)
        began = time.perf_counter()
        run()
        devices.synchronize(device)
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def network(shape: tuple[int, int], device: torch.device) -> DecoderOnly:
    torch.manual_seed(0)
    net = DecoderOnly(*shape, SHAPES[shape]).to(device)
    for layer in net.layers:  # away from the identity that ReZero starts as
        layer.alpha1.data.fill_(0.1)
        layer.alpha2.data.fill_(0.1)
    return net


def products(shape: tuple[int, int], tokens: int) -> int:
    """FLOPs of the matrix products of a decoder-only decision: less one for each softmax entry and ReLU output."""
    (depth, width), heads = shape, SHAPES[shape]
    entries = depth * (heads * tokens**2 + 4 * width * tokens)
    return Counts(depth, width, heads).decision(tokens) - entries
