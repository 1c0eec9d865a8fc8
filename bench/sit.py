"""Bench of SIT: how a decision grows with the instance, greedy decoding, re-construction in parallel, and insertion.

On a CPU all of it runs on one thread and is timed in CPU seconds, as `pens.py` does; ratios are of pairs in turn.
"""

import time
from functools import partial

import numpy as np
import torch
from pens import in_turn, paired_ratio, seconds_of

from neuroute.datasets.streams import cvrp_dataset, dataset_coordinates
from neuroute.decoding.tsp import rebuild
from neuroute.evaluation.efficiency import measure_memory
from neuroute.evaluation.flops import counts
from neuroute.networks.sit import Sit
from neuroute.solvers import registry
from neuroute.specs.objects import Dataset, Network

DEPTH, WIDTH, HEADS, FEED_FORWARD, REPRESENTATIVES = 6, 128, 8, 512, 15  # the paper's
SIZES = (1000, 3000, 10_000, 30_000, 100_000)
GREEDY = (1000, 16)  # nodes, instances at once
BLOCKS = (5, 20, 60, 250)  # nodes of a block
INSTANCES, NODES = 8, 1000


def bench_sit(device: torch.device, cores: int, compiled: bool) -> None:
    matmul = matmul_rate_on_one_thread(device)
    print(f"matrix product: {matmul / 1e12:.3f} TFLOP/s\n")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    net = Sit(DEPTH, WIDTH, HEADS, FEED_FORWARD, REPRESENTATIVES).to(device).eval()
    with torch.inference_mode():
        _growth(net, device)
        print()
        _greedy(net, device, matmul)
        print()
        _parallel(net, device, matmul)
    print()
    _insertion()
    torch.set_num_threads(threads)


def _growth(net: Sit, device: torch.device) -> None:
    print("| one decision of SIT, paper's shape | s, median of 3 | us a token | MiB |\n|---|---|---|---|")
    seconds = {}
    for nodes in SIZES:
        rows = torch.rand(1, nodes + 1, 2, device=device)
        decide = partial(net.decide, rows)
        decide()
        found = sorted(seconds_of(decide, device) for _ in range(3))
        _, peak, _ = measure_memory(decide, device)
        seconds[nodes] = found[1]
        print(f"| n = {nodes:,} | {found[1]:.4f} | {1e6 * found[1] / nodes:.1f} | {peak / 2**20:.1f} |", flush=True)
    slope = np.polyfit(np.log(list(seconds)), np.log(list(seconds.values())), 1)[0]
    each = [s / n for n, s in seconds.items()]
    print(
        f"\nTime grows as n to the power {slope:.3f}; per token it ranges {max(each) / min(each) - 1:.0%}.", flush=True
    )


def _products(tokens: int) -> int:
    """FLOPs of the matrix products of a decision: less one for each softmax entry and ReLU output."""
    m = REPRESENTATIVES + 1
    stream = tokens - 2 + m
    decision = counts(Network(kind="neuroute.networks.sit:Sit", arguments={})).decision
    return decision(tokens) - DEPTH * (2 * HEADS * m * stream + FEED_FORWARD * (m + stream))


def _greedy(net: Sit, device: torch.device, matmul: float) -> None:
    """The first decisions of a batch: a whole construction takes a quarter of an hour on one core."""
    nodes, count = GREEDY
    rows = torch.rand(count, nodes + 1, 2, device=device)
    shown, total = 0.0, 0
    for left in np.linspace(nodes + 1, 10, 12).astype(int):
        view = rows[:, -left:]
        net.decide(view)
        shown += min(seconds_of(lambda view=view: net.decide(view), device) for _ in range(2))
        total += count * _products(int(left))
    print(f"greedy TSP{nodes}, {count} at once, 12 decisions along the way: {total / shown / 1e12:.3f} TFLOP/s, "
          f"{total / shown / matmul:.0%} of the matrix product")  # fmt: skip


def _parallel(net: Sit, device: torch.device, matmul: float) -> None:
    """One iteration of PRC on a batch, against one instance after the other, and against one block after the other.

    No way of batching can pass the matrix product, so its share bounds what batching could still gain.
    """
    print(
        "| PRC at n = 1000, 8 instances | blocks a second | of the matrix product "
        "| against one instance at a time | against one block |\n|---|---|---|---|---|"
    )
    coords = torch.rand(INSTANCES, NODES, 2, device=device)
    tours = torch.stack([torch.randperm(NODES, device=device) for _ in range(INSTANCES)])
    for length in BLOCKS:
        count = min(NODES // length, 40)
        stops = count * length
        few = max(1, INSTANCES // 4) if length > 100 else INSTANCES

        def run(together: int, blocks: int, stops: int = stops, length: int = length, few: int = few) -> None:
            for first in range(0, few, together):
                own = slice(first, first + together)
                rebuild(net.decide, net.encode, coords[own], tours[own, :stops], length, blocks)

        ways = {
            "all": partial(run, few, max(1, 8192 // length)),
            "instances": partial(run, 1, max(1, 8192 // length)),
            "blocks": partial(run, 1, 1),
        }
        found = in_turn(ways, 3, device)
        rate = few * count / sorted(found["all"])[1]
        loops = [paired_ratio(found[name], found["all"]) for name in ("instances", "blocks")]
        block = sum(_products(left) for left in range(4, length + 1))  # the last is certain
        share = f"{rate * block / matmul:.0%}"
        print(f"| {count} blocks of {length} | {rate:.1f} | {share} | {loops[0]} | {loops[1]} |", flush=True)


def _insertion() -> None:
    print("| random insertion, 100,000 nodes, one core | s |\n|---|---|")
    tsp = dataset_coordinates(Dataset(n=100_000, count=1))[0]
    cvrp = cvrp_dataset(Dataset(problem="cvrp", n=100_000, count=1))
    small = dataset_coordinates(Dataset(n=10, count=1))[0]
    routes = cvrp_dataset(Dataset(problem="cvrp", n=10, count=1))
    for name, problem in (("insertion", "tsp"), ("insertion-published", "cvrp"), ("insertion-angle", "cvrp")):
        solver = registry.get(name)
        for warm in (True, False):
            began = time.process_time()
            if problem == "tsp":
                solver.solve(small if warm else tsp, 0)
            else:
                of = routes if warm else cvrp
                assert solver.solve_cvrp is not None
                solver.solve_cvrp(of.coords[0], of.demand[0], int(of.capacity[0]), 0)
        print(f"| {name}, {problem.upper()} | {time.process_time() - began:.2f} |", flush=True)


def matmul_rate_on_one_thread(device: torch.device) -> float:
    """FLOP/s, in CPU seconds of one thread."""
    threads, size = torch.get_num_threads(), 2048 if device.type == "cpu" else 8192
    torch.set_num_threads(1)
    a = torch.randn(size, size, device=device)
    seconds = min(seconds_of(lambda: a @ a, device) for _ in range(4))
    torch.set_num_threads(threads)
    return 2 * size**3 / seconds
