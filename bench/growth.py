"""Bench of growth: CPU seconds and memory of one instance against its size, for decoding and for training.

    python bench/growth.py [FOLDER] [--rows decoding SIT] [--seconds 60] [--gb 10]

One thread, fp32, random weights; each size in a process of its own.  Curves of rl4co, where it is installed, are of
the same problems, by networks of the same depth and width.  A curve ends where a size takes more seconds, or
more memory, than is given, or the next one would.  FOLDER gets `growth.csv`, which a later call goes on with, and its
picture; without one the table alone is printed.

Decoding is a whole solution: of one path from five of its decisions, as `evaluation.efficiency` samples them; of many
starts all of them.  Training is one update by one instance: its first decision by a label, else REINFORCE from all
starts.  Memory is that of the process at its peak, above what was there before.
"""

import argparse
import csv
import importlib.util
import multiprocessing
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import torch
from peers import of_rl4co
from rows import ALL, CPU, MIXTURES, decoded, reinforced, seconds_of, spread

from neuroute.analysis.power_laws import FitError, fit
from neuroute.core import device as devices
from neuroute.datasets.streams import cvrp_dataset, vrp_dataset
from neuroute.evaluation import efficiency
from neuroute.evaluation.efficiency import pose_single_step
from neuroute.networks.icam import Icam, IcamCvrp
from neuroute.networks.lehd import Lehd
from neuroute.networks.pomo import Pomo
from neuroute.networks.sit import Sit
from neuroute.specs.objects import Dataset
from neuroute.training.supervised import PathDecision, loss

Cost = Callable[[int], float]  # nodes -> CPU seconds
SIZES = (100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)
DECISIONS = 5
LAST = 3  # sizes of a curve, of which exponents are: smaller ones cost as much in calls
FORKED = multiprocessing.get_context("fork")  # of one process that has loaded, and started no threads
NETWORKS = {"LEHD": Lehd, "SIT": Sit, "POMO": Pomo, "ICAM": Icam, "ICAM, CVRP": IcamCvrp, **MIXTURES}
PEER = " (rl4co)"
PEERS = {"POMO": ("tsp", "POMO"), "POMO-MTL": ("vrp", "POMO"), "4E-L": ("vrp", "MVMoE_POMO")}
FIELDS = ("task", "network", "nodes", "seconds", "memory_mb", "spent", "ended", "device", "commit", "date")


def decode_path(kind: type[Any], nodes: int) -> float:
    efficiency.time = SimpleNamespace(perf_counter=time.process_time)  # type: ignore[attr-defined]  # of a busy machine
    construction = pose_single_step(spread(kind()), Dataset(n=nodes, count=1))
    tokens = efficiency.sample_tokens(construction, DECISIONS)
    measured = efficiency.measure_construction(construction, tokens, CPU)
    return np.inf if measured is None else measured.seconds


def decode_starts(kind: type[Any], problem: str, nodes: int) -> float:
    one: dict[str, Callable[[], Any]] = {
        "tsp": lambda: torch.rand(1, nodes, 2),
        "cvrp": lambda: cvrp_dataset(Dataset(problem="cvrp", n=nodes, count=1)),
        "vrp": lambda: vrp_dataset(Dataset(problem="vrp", variant="CVRP", n=nodes, count=1)),
    }
    return seconds_of(decoded(kind, problem, nodes, one[problem], ALL)("fp32"))[0]


def train_path(kind: type[Any], nodes: int) -> float:
    net, path = spread(kind()).train(), torch.rand(1, nodes, 2)
    decide = PathDecision(net)
    return seconds_of(lambda: loss(decide, path, 0).backward())[0]


def train_starts(kind: type[Any], name: str, problem: str, nodes: int) -> float:
    return seconds_of(reinforced(kind, name, problem, nodes, 1)("fp32"))[0]


def of_peer(task: str, problem: str, network: str, nodes: int) -> float:
    return seconds_of(of_rl4co(problem, nodes, 1, network)[task == "decoding"])[0]


STARTS = {
    "POMO": (Pomo, "pomo:Pomo", "tsp"),
    "ICAM": (Icam, "icam:Icam", "tsp"),
    "ICAM, CVRP": (IcamCvrp, "icam:IcamCvrp", "cvrp"),
    **{name: (kind, "mvmoe:MvMoe", "vrp") for name, kind in MIXTURES.items()},
}
PATHS = {"LEHD": Lehd, "SIT": Sit}
CURVES: dict[tuple[str, str], Cost] = {
    **{("decoding", name): partial(decode_path, kind) for name, kind in PATHS.items()},
    **{("decoding", name): partial(decode_starts, kind, problem) for name, (kind, _, problem) in STARTS.items()},
    **{("training", name): partial(train_path, kind) for name, kind in PATHS.items()},
    **{("training", name): partial(train_starts, *about) for name, about in STARTS.items()},
}
if importlib.util.find_spec("rl4co"):
    CURVES |= {
        (t, name + PEER): partial(of_peer, t, *of) for t in ("decoding", "training") for name, of in PEERS.items()
    }


def one_size(task: str, network: str, nodes: int, seconds: float, gigabytes: float, send: Connection) -> None:
    """Send CPU seconds and MiB of a size, or that there is no memory for it."""
    cost, limit = CURVES[task, network], int(1e9 * gigabytes)
    cost(20)  # loads
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CPU, (int(4 * seconds),) * 2)
    devices.reset_peak_memory(CPU)
    before = devices.peak_memory_mb(CPU)
    try:
        spent, found = seconds_of(lambda: cost(nodes))
        send.send((found, devices.peak_memory_mb(CPU) - before, spent))
    except (MemoryError, RuntimeError) as error:
        if not (isinstance(error, MemoryError) or efficiency.out_of_memory(error)):
            raise
        send.send("memory")


def measure(task: str, network: str, nodes: int, seconds: float, gigabytes: float) -> dict[str, Any]:
    """A row of the table, from a process of its own."""
    receive, send = FORKED.Pipe(duplex=False)
    process = FORKED.Process(target=one_size, args=(task, network, nodes, seconds, gigabytes, send))
    process.start()
    send.close()
    try:
        found = receive.recv()
    except EOFError:
        found = "time"
    process.join()
    if found == "time" and process.exitcode not in (-signal.SIGXCPU, -signal.SIGKILL):
        raise SystemExit(f"{task} {network} {nodes}: failed")
    row: dict[str, Any] = {"task": task, "network": network, "nodes": nodes, "ended": ""}
    if found in ("memory", "time"):
        return row | {"ended": f"more than {f'{gigabytes:g} GB' if found == 'memory' else f'{4 * seconds:g} s'}"}
    took, memory, spent = found
    return row | {"seconds": round(took, 4), "memory_mb": round(memory, 1), "spent": round(spent, 2)}


def curve(task: str, network: str, kept: list[dict[str, Any]], seconds: float, gigabytes: float) -> Iterator[Any]:
    """Yield rows of sizes that are not kept, up to where the curve ends."""
    mine = [row for row in kept if (row["task"], row["network"]) == (task, network)]
    for nodes in SIZES:
        there = [row for row in mine if int(row["nodes"]) == nodes]
        row = there[0] if there else measure(task, network, nodes, seconds, gigabytes)
        if not there:
            mine.append(row)
            yield row
        if row["ended"] or float(row["spent"]) > seconds / 2:  # twice the nodes: four times as long, or eight
            return


def exponents(rows: list[dict[str, Any]]) -> Iterator[tuple[str, str, str, str, str, str]]:
    """Yield task, network, last size, exponents of time and memory there, by `power_laws`, and why it is the last."""
    for task, network in dict.fromkeys((row["task"], row["network"]) for row in rows):
        of = [row for row in rows if (row["task"], row["network"]) == (task, network) and not row["ended"]]
        ended = "; ".join(
            f"{int(row['nodes']):,}: {row['ended']}"
            for row in rows
            if row["ended"] and (row["task"], row["network"]) == (task, network)
        )
        last = of[-1]
        found = []
        for key, least in (("seconds", 0.0), ("memory_mb", 1.0)):  # MiB: less is the grain of pages
            points = [(float(row["nodes"]), float(row[key])) for row in of[-LAST:] if float(row[key]) > least]
            try:
                found.append(f"{-fit(*zip(*points, strict=True), 'log-log').alpha:.2f}" if points else "")
            except FitError:
                found.append("")
        size = f"{int(last['nodes']):,}: {float(last['seconds']):,.1f} s, {float(last['memory_mb']):,.0f} MiB"
        yield task, network, size, *found, ended


def table(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| | network | largest size measured | time: n to the power | memory | ended |",
        "|---|---|--:|--:|--:|---|",
    ]
    return "\n".join([*lines, *(f"| {' | '.join(each)} |" for each in exponents(rows))])


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    mpl.use("svg")
    figure, axes = plt.subplots(2, 2, figsize=(9, 6), sharex=True, layout="constrained")
    colours = dict(zip(NETWORKS, mpl.color_sequences["tab10"], strict=False))
    for column, task in enumerate(("decoding", "training")):
        for axis, key, unit in zip(axes[:, column], ("seconds", "memory_mb"), ("CPU seconds", "MiB"), strict=True):
            for network in dict.fromkeys(r["network"] for r in rows if r["task"] == task):
                of = [r for r in rows if (r["task"], r["network"]) == (task, network) and not r["ended"]]
                x, y = ([float(row[each]) for row in of] for each in ("nodes", key))
                ours = network.removesuffix(PEER)
                style = "-" if ours == network else "--"
                axis.plot(x, y, style, marker="o", markersize=3, label=network, color=colours[ours])
            axis.set(xscale="log", yscale="log", ylabel=f"{task}, {unit}")
            axis.grid(alpha=0.3)
        axes[1, column].set_xlabel("nodes")
    axes[0, 0].legend(fontsize=8)
    figure.savefig(path, dpi=110)


def bench_growth(device: torch.device, cores: int, compiled: bool) -> None:
    """One thread of the CPU, whatever the device is."""
    torch.set_num_threads(1)
    rows = [row for task, network in CURVES for row in curve(task, network, [], 10.0, 10.0)]
    print(table(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--rows", nargs="*", default=[""], help="curves whose `task network` holds one of these")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--gb", type=float, default=10.0)
    options = parser.parse_args()
    if options.folder:
        options.folder.mkdir(parents=True, exist_ok=True)
    file = options.folder / "growth.csv" if options.folder else None
    rows: list[dict[str, Any]] = list(csv.DictReader(file.open())) if file and file.exists() else []
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], check=True, capture_output=True, text=True)
    about = {"device": devices.name(CPU), "commit": commit.stdout.strip(), "date": time.strftime("%Y-%m-%d")}
    for task, network in CURVES:
        if not any(part in f"{task} {network}" for part in options.rows):
            continue
        for row in curve(task, network, rows, options.seconds, options.gb):
            rows.append(row | about)
            print(row, file=sys.stderr, flush=True)
            if file:
                with file.open("w", newline="") as out:
                    writer = csv.DictWriter(out, FIELDS)
                    writer.writeheader()
                    writer.writerows(sorted(rows, key=lambda r: (r["task"], r["network"], int(r["nodes"]))))
    if options.folder:
        draw(rows, options.folder / "growth.png")
    print(table(rows))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
