"""`make bench`: how fast this machine runs the product, as fractions of what the machine can do, in one run.

Prints Markdown; every rate is measured here and now, none is a constant.
"""

import argparse
import os
import platform
import subprocess
import sys
import time

import torch
import torch.nn.functional as F
from common import NODES, SHAPES, best_of, network, products
from growth import bench_growth
from icam import bench_icam
from mvmoe import bench_mvmoe
from peers import bench_peers
from pens import bench_pens
from ratios import bench_rows
from rivals import bench_rivals
from search import bench_search
from sit import bench_sit

from neuroute.core import device as devices
from neuroute.datasets.streams import coordinates, cvrp_dataset
from neuroute.decoding.decode import decode
from neuroute.decoding.memory import autocast
from neuroute.solvers import registry
from neuroute.specs.objects import Dataset, Decoding, Labels


def matmul_rate(device: torch.device, dtype: torch.dtype) -> float:
    """FLOP/s of a large square matrix product."""
    size = 2048 if device.type == "cpu" else 8192
    a = torch.randn(size, size, device=device, dtype=dtype)
    b = torch.randn(size, size, device=device, dtype=dtype)
    return 2 * size**3 / best_of(5, lambda: a @ b, device)


def training_rate(shape: tuple[int, int], batch: int, device: torch.device, precision: str, compiled: bool) -> float:
    """FLOP/s of updates at four sizes of the open set, the mean of which is about that of a random sub-path."""
    net = network(shape, device)
    call = torch.compile(net.decide, dynamic=True) if compiled else net.decide
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-5, fused=device.type == "cuda", foreach=device.type == "cpu")
    total = seconds = 0.0
    for tokens in (12, 24, 36, 72):
        rows = torch.rand(batch, tokens, 2, device=device)
        first = torch.zeros(batch, dtype=torch.long, device=device)

        def update(rows: torch.Tensor = rows, first: torch.Tensor = first) -> None:
            with autocast(device, precision):
                logits = call(rows)
            F.cross_entropy(logits.float(), first).backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

        seconds += best_of(2 if device.type == "cpu" else 10, update, device)
        total += 3 * batch * products(shape, tokens)
    return total / seconds


def decoding_rate(shape: tuple[int, int], count: int, device: torch.device, precision: str) -> tuple[float, float]:
    """(FLOP/s of greedy decoding on the shrinking set, speed-up over stepping on all nodes at every decision)."""
    net = network(shape, device).eval()
    coords = torch.rand(count, NODES, 2)
    decode("tsp", net, coords[:2], Decoding(), precision=precision)
    devices.synchronize(device)
    began = time.perf_counter()
    decode("tsp", net, coords, Decoding(), precision=precision)
    devices.synchronize(device)
    seconds = time.perf_counter() - began
    part = min(count, 80 if device.type == "cpu" else count)
    rows = torch.rand(part, NODES + 1, 2, device=device)
    with torch.inference_mode(), autocast(device, precision):
        full_step = best_of(2, lambda: net.decide(rows), device)
    work = count * sum(products(shape, tokens) for tokens in range(3, NODES + 2))
    return work / seconds, full_step * (NODES - 1) * count / part / seconds


STAGE = """
import sys, tempfile, time
from pathlib import Path
from neuroute.datasets.labels import make_labels
from neuroute.specs.objects import Labels
labels, workers = Labels.model_validate_json(sys.argv[1]), int(sys.argv[2])
began = time.perf_counter()
with tempfile.TemporaryDirectory() as folder:
    make_labels(labels, Path(folder), [], workers)
print(time.perf_counter() - began)
"""


def hgs_seconds(solver: str, nodes: int, count: int) -> tuple[float, float]:
    """CPU seconds of all calls, and those that HGS says its search took."""
    import hygese

    alone, search = [], hygese.Solver.solve_cvrp

    def told(self: hygese.Solver, *arguments: object, **more: object) -> object:
        found = search(self, *arguments, **more)
        alone.append(found.time)
        return found

    hygese.Solver.solve_cvrp, solve = told, registry.get(solver).solve_cvrp
    assert solve is not None
    batch = cvrp_dataset(Dataset(problem="cvrp", split="val", n=nodes, count=count))
    began = time.process_time()
    for coords, demand, capacity in zip(batch.coords, batch.demand, batch.capacity, strict=True):
        solve(coords, demand, int(capacity), 0)
    seconds = time.process_time() - began
    hygese.Solver.solve_cvrp = search
    return seconds, sum(alone)


def label_rates(solver: str, nodes: int, count: int, workers: int) -> tuple[float, float]:
    """Instances per second of the bare solver on one core, and of the label stage on all workers, on the same ones.

    The stage runs in a process of its own, without torch, as the DAG runs it; starting its workers counts.
    """
    coords = coordinates("uniform", "val", nodes, 0, count)
    s = registry.get(solver)
    s.solve(coords[0], 0)
    began = time.perf_counter()
    for c in coords:
        s.solve(c, 0)
    bare = count / (time.perf_counter() - began)
    labels = Labels(dataset=Dataset(split="val", n=nodes, count=count), solver=solver)
    command = [sys.executable, "-c", STAGE, labels.canonical(), str(workers)]
    staged = subprocess.run(command, check=True, capture_output=True, text=True)
    return bare, count / float(staged.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"which of {', '.join(PARTS)}; default: all")
    parser.add_argument("--compile", action="store_true", help="train with torch.compile too")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"unknown part {unknown.pop()}; there are {', '.join(PARTS)}")
    device = devices.choose("auto")
    cores = os.cpu_count() or 1
    where = f"{devices.name(device)}, {cores} CPU cores, torch {torch.__version__}, Python {platform.python_version()}"
    print(f"Measured on: {where}, {time.strftime('%Y-%m-%d')}")
    for part in options.parts or PARTS:
        print(flush=True)
        PARTS[part](device, cores, options.compile)


def bench_training(device: torch.device, cores: int, compiled: bool) -> None:
    peak = {"fp32": matmul_rate(device, torch.float32), "bf16": matmul_rate(device, torch.bfloat16)}
    print(f"Matrix product: fp32 {peak['fp32'] / 1e12:.3f}, bf16 {peak['bf16'] / 1e12:.3f} TFLOP/s\n")
    print(f"| training, TSP{NODES} | batch | precision | TFLOP/s | of the matrix product | against fp32 |")
    print("|---|---|---|---|---|---|")
    for shape in SHAPES:
        batch = 1024 if device.type == "cuda" else {(6, 128): 256, (42, 128): 64, (6, 512): 64}[shape]
        for mode in (False, True) if compiled else (False,):
            fp32 = 0.0
            for precision in ("fp32", "bf16"):
                rate = training_rate(shape, batch, device, precision, mode)
                fp32 = fp32 or rate
                what = f"{shape}{' compiled' if mode else ''} | {batch} | {precision}"
                share = f"{rate / peak[precision]:.0%}"
                print(f"| {what} | {rate / 1e12:.3f} | {share} | {rate / fp32:.2f}x |", flush=True)


def bench_decoding(device: torch.device, cores: int, compiled: bool) -> None:
    peak = matmul_rate(device, torch.float32)
    print(f"| greedy, TSP{NODES} | instances | TFLOP/s | of the matrix product | against stepping on all nodes |")
    print("|---|---|---|---|---|")
    for shape in SHAPES:
        count = 1024 if device.type == "cuda" else {(6, 128): 256, (42, 128): 24, (6, 512): 24}[shape]
        rate, speed_up = decoding_rate(shape, count, device, "fp32")
        print(f"| {shape} | {count} | {rate / 1e12:.3f} | {rate / peak:.0%} | {speed_up:.2f}x |", flush=True)


def bench_labels(device: torch.device, cores: int, compiled: bool) -> None:
    print(f"| labels, {cores} workers | n | instances | bare solver, 1 core | label stage | of cores x bare |")
    print("|---|---|---|---|---|---|")
    for solver, nodes, count in (("concorde", 50, 1200), ("lkh", 100, 1500)):
        bare, staged = label_rates(solver, nodes, count, cores)
        share = f"{staged / bare / cores:.0%}"
        print(f"| {solver} | {nodes} | {count} | {bare:.1f}/s | {staged:.1f}/s | {share} |", flush=True)
    print("\n| HGS, CVRP | search alone, ms | what calling it adds, CPU time |\n|---|---|---|")
    for solver, nodes, count in (("hgs-short", 20, 60), ("hgs-short", 100, 20)):
        called, alone = hgs_seconds(solver, nodes, count)
        print(f"| {solver}, {nodes} customers | {1e3 * alone / count:.1f} | {called / alone - 1:.1%} |", flush=True)


def bench_dag(device: torch.device, cores: int, compiled: bool) -> None:
    print("| overhead | seconds |\n|---|---|")
    print(f"| `snakemake -n all` | {_seconds('-m', 'snakemake', '-n', 'all'):.1f} |")
    print(f"| `snakemake all` with nothing to do | {_noop_seconds()} |")
    print(f"| `neuroute plan` | {_seconds('-m', 'neuroute', 'plan'):.1f} |")
    print(f"| start Python and import torch | {_seconds('-c', 'import torch'):.1f} |")


def _noop_seconds() -> str:
    dry = subprocess.run([sys.executable, "-m", "snakemake", "-n", "all"], check=True, capture_output=True, text=True)
    if "Nothing to be done" not in dry.stdout + dry.stderr:
        return "run `make all` first"
    return f"{_seconds('-m', 'snakemake', 'all'):.1f}"


def _seconds(*arguments: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    return time.perf_counter() - began


PARTS = {
    "rows": bench_rows,
    "training": bench_training,
    "decoding": bench_decoding,
    "search": bench_search,
    "growth": bench_growth,
    "pens": bench_pens,
    "sit": bench_sit,
    "icam": bench_icam,
    "mvmoe": bench_mvmoe,
    "rivals": bench_rivals,
    "peers": bench_peers,
    "labels": bench_labels,
    "dag": bench_dag,
}


if __name__ == "__main__":
    main()
