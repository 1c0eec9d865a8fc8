"""Measure what estimates reckon with: this machine's rates by precision and width, and its solvers'.  Some minutes."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from neuroute.accounting.counts import counts
from neuroute.accounting.rates import BySize, DeviceRates, Kind, Rates
from neuroute.core import device as devices
from neuroute.core.errors import NeurouteError
from neuroute.datasets.problem_spec import spec_of
from neuroute.datasets.streams import coordinates
from neuroute.networks.decoder_only import DecoderOnly
from neuroute.plan.objects import Dataset, Labels, Network
from neuroute.problems.tsp import is_permutation
from neuroute.solvers.registry import SOLVERS, get

DEPTH, TOKENS = 6, 48
WIDTHS: dict[Kind, tuple[int, ...]] = {"cpu": (16, 128, 512), "cuda": (128, 512)}
ROWS: dict[Kind, dict[int, int]] = {"cpu": {16: 32, 128: 64, 512: 32}, "cuda": {128: 4096, 512: 2048}}
SIZES = (20, 50, 100, 200, 500)
ENOUGH_S = 3.0  # of one instance: larger ones are reckoned from the smaller
SLOW = ("ortools", "ortools-x10", "ortools-network", "concorde-6h")  # bounded by seconds, or another's
NONE = ("insertion", "insertion-angle", "insertion-published", "nearest")
STARTS = "import neuroute.training.train, neuroute.training.supervised, neuroute.evaluation.driver"


def measure(say: Callable[[str], None]) -> Rates:
    """Measure one thread of the CPU, a GPU where there is one, and the solvers that are installed."""
    kinds: list[Kind] = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    rates = {}
    for kind in kinds:
        rates[kind] = measure_device(kind)
        say(_line(kind, rates[kind]))
    solvers = {}
    for name in SOLVERS:
        if name not in SLOW and (points := measure_solver(name)):
            solvers[name] = points
            say(f"{name}: " + ", ".join(f"{n} nodes {seconds:.4f} s" for n, seconds in points.items()))
    return Rates(
        measured=date.today().isoformat(),
        start_s=_start_seconds(),
        node_us=_node_us(),
        devices=rates,
        solvers=solvers,
    )


def _line(kind: Kind, rates: DeviceRates) -> str:
    texts = [
        f"{precision} {', '.join(f'{rate / 1e3:.3f} at width {width}' for width, rate in points.items())}"
        for precision, points in rates.gflops.items()
    ]
    unit = "TFLOP/s of a thread" if kind == "cpu" else "TFLOP/s"
    return f"{rates.name}: {unit}: {'; '.join(texts)}"


def measure_device(kind: Kind) -> DeviceRates:
    """Time updates of the decoder-only network; a CPU with one thread."""
    place, threads = devices.choose(kind), torch.get_num_threads()
    if kind == "cpu":
        torch.set_num_threads(1)
    try:
        forward = {width: _seconds(place, width, 1, "fp32", update=False) for width in WIDTHS[kind]}
        empty = {width: _seconds(place, width, 1, "fp32") for width in WIDTHS[kind]}
        gflops: dict[str, BySize] = {}
        for name, precision, products in _precisions(kind):
            torch.set_float32_matmul_precision(products)
            gflops[name] = {width: _rate(place, width, ROWS[kind][width], precision, empty[width]) for width in empty}
    finally:
        torch.set_num_threads(threads)
        torch.set_float32_matmul_precision("highest")
    return DeviceRates(
        name=devices.name(place),
        gflops=gflops,
        layer_us={width: 1e6 * seconds / DEPTH for width, seconds in forward.items()},
        update_us={width: 1e6 * seconds / DEPTH for width, seconds in empty.items()},
    )


def _precisions(kind: Kind) -> Iterator[tuple[str, str, str]]:
    """(name, precision of activations, torch's name of how fp32 is multiplied)."""
    yield "fp32", "fp32", "highest"
    if kind == "cuda":
        yield "tf32", "fp32", "high"
    yield "bf16", "bf16", "highest"


def _rate(place: torch.device, width: int, rows: int, precision: str, empty: float) -> float:
    """GFLOP/s of updates of so many instances of TOKENS tokens, without the seconds that an empty one takes."""
    network = Network(kind="neuroute.networks.decoder_only:DecoderOnly", arguments=_shape(width))
    work = 3 * rows * counts(network).decision(TOKENS)
    seconds = _seconds(place, width, rows, precision)
    return work / max(seconds - empty, 0.1 * seconds) / 1e9


def _seconds(place: torch.device, width: int, rows: int, precision: str, update: bool = True) -> float:
    """Seconds of an update or a forward pass, of one instance with four tokens only: the best of several."""
    net = DecoderOnly(**_shape(width)).to(place)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-5, fused=place.type == "cuda")
    points = torch.rand(rows, TOKENS if rows > 1 else 4, 2, device=place)
    first = torch.zeros(rows, dtype=torch.long, device=place)

    def run() -> None:
        with torch.set_grad_enabled(update):
            with torch.autocast(place.type, torch.bfloat16, enabled=precision == "bf16"):
                logits = net.decide(points)
            if update:
                F.cross_entropy(logits.float(), first).backward()
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)

    return _best(run, place, 10 if rows == 1 or place.type == "cuda" else 3)


def _shape(width: int) -> dict[str, Any]:
    return {"depth": DEPTH, "width": width, "heads": max(1, width // 16)}


def _best(run: Callable[[], object], place: torch.device, times: int) -> float:
    """Seconds, on a CPU those that this process had of it: other work takes nothing away."""
    clock = time.perf_counter if place.type == "cuda" else time.process_time
    run()
    times_s = []
    for _ in range(times):
        devices.synchronize(place)
        began = clock()
        run()
        devices.synchronize(place)
        times_s.append(clock() - began)
    return min(times_s)


def _cpu_seconds() -> float:
    """Of this process and of the programs that it has called."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def measure_solver(name: str) -> BySize:
    """CPU seconds for an instance of each size: the mean of two or more, until one takes long.

    Solvers of vehicles solve the CVRP, others the TSP; nothing for one that is not installed.
    """
    solver = get(name)
    try:
        solver.version()
        solver.solve(coordinates("uniform", "val", 8, 0, 1)[0], 0)  # loads and compiles
    except NeurouteError:
        return {}
    vehicles = solver.solve_cvrp is not None and name not in NONE
    seconds_by_size: BySize = {}
    for n in SIZES:
        kind = Dataset(problem="cvrp" if vehicles else "tsp", split="val", n=n, count=4)
        spec = spec_of(Labels(dataset=kind, solver=name))
        instances = spec.instances(kind)
        began = _cpu_seconds()
        solved = 0
        while solved < kind.count and (solved < 2 or _cpu_seconds() - began < ENOUGH_S):
            spec.solve(solver, instances[solved : solved + 1], 1)
            solved += 1
        seconds_by_size[n] = max((_cpu_seconds() - began) / solved, 1e-6)
        if seconds_by_size[n] > ENOUGH_S:
            break
    return seconds_by_size


def _start_seconds() -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", STARTS], check=True)
    return time.perf_counter() - began


def _node_us(count: int = 2000, n: int = 100) -> float:
    began = time.process_time()
    points = coordinates("uniform", "val", n, 0, count)
    is_permutation(np.argsort(points[:, :, 0], axis=1))
    return 1e6 * (time.process_time() - began) / (count * n)
