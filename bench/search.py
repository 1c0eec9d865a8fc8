"""Bench of what builds on greedy decoding: beam search, random re-construct, and instances of growing size."""

import subprocess
import sys
import time

import numpy as np
import torch
from common import NODES, network, products

from neuroute.core import device as devices
from neuroute.decoding.decode import decode
from neuroute.evaluation.accounting import flops
from neuroute.problems.sub_paths import draw
from neuroute.specs.objects import Decoding

SHAPE = (6, 128)
BEAMS = (2, 4, 8)
ITERATIONS = 6
GROWTH = {100: 32, 200: 16, 500: 4, 1000: 2}  # nodes -> instances


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


def bench_growth(device: torch.device, cores: int, compiled: bool) -> None:
    """Time of greedy decoding against its FLOP count, each size in a process of its own for its peak memory."""
    print(f"| greedy, {SHAPE} | instances at once | GFLOP each | s each | TFLOP/s | MiB above loading |")
    print("|---|---|---|---|---|---|")
    work, taken = [], []
    for nodes, count in GROWTH.items():
        done = subprocess.run(
            [sys.executable, __file__, str(nodes), str(count), device.type], check=True, capture_output=True, text=True
        )
        seconds, memory = map(float, done.stdout.split())
        work.append(path_work(nodes + 1) / 1e9)
        taken.append(seconds / count)
        rate = work[-1] / taken[-1] / 1e3
        print(f"| TSP{nodes} | {count} | {work[-1]:.0f} | {taken[-1]:.3f} | {rate:.3f} | {memory:.0f} |", flush=True)
    slope = np.polyfit(np.log(work), np.log(taken), 1)[0]
    print(f"\nTime grows as FLOPs to the power {slope:.2f} (log-log least squares over {list(GROWTH)} nodes).")


def one_size(nodes: int, count: int, device: torch.device) -> None:
    net = network(SHAPE, device).eval()
    decode("tsp", net, torch.rand(2, 20, 2), Decoding())
    devices.reset_peak_memory(device)
    before = devices.peak_memory_mb(device)
    began = time.perf_counter()
    decode("tsp", net, torch.rand(count, nodes, 2), Decoding(batch_size=count))
    devices.synchronize(device)
    print(time.perf_counter() - began, devices.peak_memory_mb(device) - before)


if __name__ == "__main__":
    one_size(int(sys.argv[1]), int(sys.argv[2]), torch.device(sys.argv[3]))
