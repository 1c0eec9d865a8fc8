"""Bench of what builds on greedy decoding: beam search and random re-construct."""

import time

import torch
from common import NODES, network, products

from neuroute.core import device as devices
from neuroute.decoding.decode import decode
from neuroute.evaluation import flops
from neuroute.problems.sub_paths import draw
from neuroute.specs.objects import Decoding

SHAPE = (6, 128)
BEAMS = (2, 4, 8)
ITERATIONS = 6


def seconds_of(shape: tuple[int, int], coords: torch.Tensor, decoding: Decoding, device: torch.device) -> float:
    net = network(shape, device).eval()
    decode("tsp", net, coords[:2, :20], decoding.model_copy(update={"iterations": min(1, decoding.iterations)}))
    devices.synchronize(device)
    began = time.perf_counter()
    decode("tsp", net, coords, decoding)
    devices.synchronize(device)
    return time.perf_counter() - began


def path_work(nodes: int) -> int:
    """FLOPs of completing a path of so many rows: its last decision, with one candidate, is not computed."""
    return sum(products(SHAPE, tokens) for tokens in range(nodes, 3, -1))


def bench_search(device: torch.device, cores: int, compiled: bool) -> None:
    """Instances per call are chosen so that greedy, beam and re-construct decide on equally many rows at a time."""
    rows = 4096 if device.type == "cuda" else 64
    print(f"| search, {SHAPE}, TSP{NODES} | instances | TFLOP/s | of greedy's | time of greedy |")
    print("|---|---|---|---|---|")
    coords = torch.rand(rows, NODES, 2)
    greedy_s = seconds_of(SHAPE, coords, Decoding(), device)
    greedy = rows * path_work(NODES + 1) / greedy_s
    print(f"| greedy | {rows} | {greedy / 1e12:.3f} | 100% | 1.00x |", flush=True)
    for beam in BEAMS:
        part = coords[: rows // beam]
        seconds = seconds_of(SHAPE, part, Decoding(method="beam", beam=beam), device)
        live = list(flops.live_beams(NODES, beam))[:-1]  # the last decision is forced
        work = sum(b * products(SHAPE, k) for k, b in live)
        rate = len(part) * work / seconds
        cost = seconds / len(part) / (greedy_s / rows)
        print(f"| beam {beam} | {len(part)} | {rate / 1e12:.3f} | {rate / greedy:.0%} | {cost:.2f}x |", flush=True)
    seconds = seconds_of(SHAPE, coords, Decoding(method="rrc", iterations=ITERATIONS), device) - greedy_s
    generator = torch.Generator().manual_seed(0)
    lengths = [draw(generator, NODES)[1] for _ in range(ITERATIONS)]
    rate = rows * sum(path_work(m) for m in lengths) / seconds
    print(
        f"| re-construct, {ITERATIONS} segments of {min(lengths)}-{max(lengths)} nodes | {rows} "
        f"| {rate / 1e12:.3f} | {rate / greedy:.0%} | {seconds / greedy_s:.2f}x |",
        flush=True,
    )
