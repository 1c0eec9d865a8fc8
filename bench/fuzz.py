"""`python bench/fuzz.py`: files of every kind that is read, mutated by hypothesis.  Prints a Markdown table.

Whatever is done to a file, it gives an answer or one plain line (`NeurouteError`): no traceback, no hang above five
seconds, no more than 1 GiB.  An instance that is taken costs what `by_definition` computes of the file's own text.
`--keep FILE` goes on after the batches of an earlier call; `--faults FOLDER` keeps inputs that broke a rule.
"""

import argparse
import json
import logging
import math
import os
import pickle
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import by_definition as plain
import hypothesis
import numpy as np
from fuzz_inputs import (
    ARRAYS,
    CONFIG,
    EXPLICIT,
    LEHD_CVRP,
    LEHD_TSP,
    NESTED,
    POINTS,
    SOL,
    SOLOMON,
    TOUR,
    TSP,
    VRP,
    changed_arrays,
    changed_yaml,
    checkpoint,
    flipped,
    network,
    packed,
    pickled,
    point_lists,
    texts,
    torch_files,
    yaml_of,
)
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import neuroute
from neuroute.api.model import load_model
from neuroute.api.solve import read_start
from neuroute.networks.import_weights import fit, read_weights
from neuroute.pipeline.plan.build import build_plan
from neuroute.pipeline.plan.config import load_config, parse_config

SECONDS, GIB = 5, 2**30
MOST = 8 * GIB  # that a process may ask for, which is not yet to use it: a runaway ends here
LONGEST = 2010  # characters of a message, of which the middle is left out
MOST_NODES = 60  # of instances whose lengths are computed in plain Python
NOISE = 1e-9
BATCH = 1000  # inputs of a process, so that one that dies is seen


class Wrong(AssertionError):
    """A rule is broken."""


# -- what must hold -----------------------------------------------------------------------------------------------


class Kind(NamedTuple):
    """A kind of input: its file's name, mutants, what reads it, and how many of 100,000 are of it."""

    file: str
    mutants: st.SearchStrategy[bytes]
    read: Callable[[Path], None]
    share: int


def read_instances(path: Path) -> None:
    for instance in neuroute.load_all(path)[:3]:
        if instance.n > MOST_NODES:
            continue
        tour = list(range(instance.n))
        routes = [[customer] for customer in range(1, instance.n + 1)]
        cost = instance.cost(np.array(tour) if instance.problem == "tsp" else routes)
        if not math.isfinite(cost):
            raise Wrong(f"{instance}: costs {cost}")
        expected = by_text(path) if path.suffix in (".tsp", ".vrp", ".atsp") else by_arrays(instance)
        if abs(cost - expected) > NOISE * max(abs(expected), 1):
            raise Wrong(f"{instance}: costs {cost!r}, by definition {expected!r}")


def by_arrays(instance: neuroute.Instance) -> float:
    """The cost of a tour in order, or of a vehicle for each customer, of the instance's coordinates."""
    ways = plain.ways("EXACT_2D", instance.coords.tolist())
    if instance.problem == "tsp":
        return plain.tour_length(ways, range(len(ways)))
    back = 1 if instance.problem == "vrp" and instance.vrp.open else 2
    return sum(back * way for way in ways[0])


def by_text(path: Path) -> float:
    """The same, of a file's own text."""
    header, rows = dict[str, str](), dict[str, list[list[str]]]()
    name = ""
    for line in path.read_text().splitlines():
        words = line.split()
        if not words or line.strip() == "EOF":
            continue
        if words[0].rstrip(":").endswith("_SECTION"):
            rows[name := words[0].rstrip(":")] = []
        elif ":" in line and not words[0][0].isdigit():
            key, _, value = line.partition(":")
            header[key.strip()] = value.strip()
        else:
            rows[name].append(words)
    kind, has_vehicles = header["EDGE_WEIGHT_TYPE"], "CVRP" in header.get("TYPE", "TSP")
    depot = 0
    if kind == "EXPLICIT":
        ways = explicit(header, [int(word) for row in rows["EDGE_WEIGHT_SECTION"] for word in row])
        depot = int(rows["DEPOT_SECTION"][0][0]) - 1 if has_vehicles else 0
    else:
        nodes = [int(row[0]) for row in rows["NODE_COORD_SECTION"]]
        points = [(float(row[1]), float(row[2])) for row in rows["NODE_COORD_SECTION"]]
        scale = re.search(r"(?am)^COMMENT : coordinates times (10+|0\.0*1|1e[+-]\d\d)$", path.read_text())
        if scale and kind == "EUC_2D":
            kind, points = "EXACT_2D", [(x / float(scale[1]), y / float(scale[1])) for x, y in points]
        ways = plain.ways(kind, points)
        depot = nodes.index(int(rows["DEPOT_SECTION"][0][0])) if has_vehicles else 0
    if not has_vehicles:
        return plain.tour_length(ways, range(len(ways)))
    return sum(ways[depot][customer] + ways[customer][depot] for customer in range(len(ways)))


def explicit(header: dict[str, str], numbers: list[int]) -> list[list[float]]:
    n, form, at = int(header["DIMENSION"]), header["EDGE_WEIGHT_FORMAT"], iter(numbers)
    ways: list[list[float]] = [[0] * n for _ in range(n)]
    low = form in ("LOWER_DIAG_ROW", "LOWER_ROW", "UPPER_COL", "UPPER_DIAG_COL")
    for i in range(n):
        if form == "FULL_MATRIX":
            there = range(n)
        else:
            there = range(i + ("DIAG" in form)) if low else range(i + 1 - ("DIAG" in form), n)
        for j in there:
            ways[i][j] = next(at)
            if form != "FULL_MATRIX":
                ways[j][i] = ways[i][j]
    return [[0 if i == j else way for j, way in enumerate(row)] for i, row in enumerate(ways)]


def read_start_of(path: Path) -> None:
    """A solution of the whole file of its kind."""
    instance, ways = solved(path.suffix)
    stops = read_start(path, instance)
    if path.suffix == ".tour":
        expected = plain.tour_length(ways, stops.tolist()) if sorted(stops.tolist()) == [0, 1, 2, 3, 4] else math.nan
    else:
        order, via = stops.tolist()
        if sorted(order) != [1, 2, 3, 4]:
            raise Wrong(f"{order} are not the customers")
        before = [0 if by_depot else each for by_depot, each in zip(via, [0, *order], strict=False)]
        expected = sum(ways[a][b] for a, b in zip(before, order, strict=True))
        expected += sum(ways[a][0] for a, end in zip(order, [*via[1:], 1], strict=True) if end)
    if instance.cost(stops) != expected:
        raise Wrong(f"costs {instance.cost(stops)}, by definition {expected}")


@cache
def solved(suffix: str) -> tuple[neuroute.Instance, list[list[float]]]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "small.tsp" if suffix == ".tour" else "small.vrp")
        file.write_text(TSP[0] if suffix == ".tour" else VRP[0])
        return neuroute.load(file), plain.ways("EUC_2D", POINTS)


def read_config(path: Path) -> None:
    build_plan(load_config(path))


def read_scale(path: Path) -> None:
    build_plan(parse_config({"scale": str(path), "papers": ["pens"]}))


def read_model(path: Path) -> None:
    for parameter in load_model(path, "cpu").net.parameters():
        if not parameter.isfinite().all():
            raise Wrong("weights that are not finite are taken")


def read_tensors(path: Path) -> None:
    for tensor in fit(read_weights(path), network()).values():
        if not tensor.isfinite().all():
            raise Wrong("weights that are not finite are taken")


MICRO = yaml_of("tests/data/micro.yaml")
KINDS = {
    "TSPLIB .tsp": Kind("a.tsp", texts(TSP), read_instances, 22_000),
    "TSPLIB .tsp, EXPLICIT": Kind("a.tsp", texts(EXPLICIT), read_instances, 12_000),
    "VRPLIB .vrp": Kind("a.vrp", texts(VRP), read_instances, 17_000),
    "Solomon .txt": Kind("a.txt", texts(SOLOMON), read_instances, 10_000),
    ".tour": Kind("a.tour", texts(TOUR), read_start_of, 5_000),
    ".sol": Kind("a.sol", texts(SOL), read_start_of, 5_000),
    "LEHD .txt, TSP": Kind("a.txt", texts(LEHD_TSP), read_instances, 4_000),
    "LEHD .txt, CVRP": Kind("a.txt", texts(LEHD_CVRP), read_instances, 4_000),
    ".npz, arrays": Kind("a.npz", changed_arrays(), read_instances, 5_000),
    ".npz, bytes": Kind("a.npz", flipped(tuple(map(packed, ARRAYS))), read_instances, 4_000),
    ".pkl, values": Kind("a.pkl", (NESTED | point_lists()).map(pickle.dumps), read_instances, 2_000),
    ".pkl, bytes": Kind("a.pkl", flipped(pickled()), read_instances, 4_000),
    "config.yaml": Kind("config.yaml", changed_yaml(CONFIG) | texts(CONFIG), read_config, 2_000),
    "scale": Kind("scale.yaml", changed_yaml(MICRO) | texts(MICRO), read_scale, 1_000),
    ".safetensors": Kind("a.safetensors", flipped(checkpoint()[:1]), read_model, 1_000),
    ".safetensors, imported": Kind("a.safetensors", flipped(checkpoint()), read_tensors, 1_000),
    ".pt": Kind("a.pt", flipped(torch_files()), read_tensors, 1_000),
}


def check(kind: Kind, content: bytes, folder: Path) -> str:
    """Read an input; return whether it is "read" or "refused".  Raises Wrong if a rule is broken."""
    path = folder / kind.file
    path.write_bytes(content)
    before = resident()
    try:
        with bounded():
            kind.read(path)
    except neuroute.NeurouteError as error:
        text = str(error)
        if "\n" in text or len(text) > LONGEST or not text.isprintable():
            raise Wrong(f"no plain line: {text[:200]!r}") from error
        cause = error.__context__
        while cause is not None:
            if isinstance(cause, MemoryError):
                raise Wrong("more memory than there is") from error
            cause = cause.__context__
        outcome = "refused"
    except Wrong:
        raise
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        last = traceback.extract_tb(error.__traceback__)[-1]
        raise Wrong(f"{type(error).__name__}: {str(error)[:120]} ({Path(last.filename).name}:{last.lineno})") from error
    else:
        outcome = "read"
    if resident() - before > GIB:
        raise Wrong("more than 1 GiB")
    return outcome


class Hang(BaseException):
    """Not an Exception, which readers may catch."""


@contextmanager
def bounded() -> Iterator[None]:
    """End what takes more than SECONDS of processor time, or far more of any other."""

    def late(*_: object) -> None:
        raise Hang(f"more than {SECONDS} s")

    before = [(each, signal.signal(each, late)) for each in (signal.SIGPROF, signal.SIGALRM)]
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.setitimer(signal.ITIMER_REAL, 12 * SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for each, handler in before:
            signal.signal(each, handler)


# -- a long run ---------------------------------------------------------------------------------------------------


def resident() -> int:
    """The most bytes that this process has had in memory."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most


def run_batch(name: str, number: int, inputs: int, faults: Path | None) -> dict[str, Any]:
    """Read so many inputs in this process."""
    kind, counts, wrong = KINDS[name], Counter[str](), list[str]()
    data = int(re.search(r"VmData:\s+(\d+)", Path("/proc/self/status").read_text())[1]) * 1024  # type: ignore[index]
    resource.setrlimit(resource.RLIMIT_DATA, (data + MOST, data + MOST))
    before, seconds = resident(), 0.0
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="neuroute-fuzz-") as folder:

        @hypothesis.seed(number)
        @settings(max_examples=inputs, phases=[Phase.generate], deadline=None, database=None,
                  suppress_health_check=list(HealthCheck))  # fmt: skip
        @given(kind.mutants)
        def run(content: bytes) -> None:
            nonlocal seconds
            began = time.process_time()
            try:
                counts[check(kind, content, Path(folder))] += 1
            except Wrong as error:
                counts["wrong"] += 1
                wrong.append(str(error))
                if faults is not None:
                    faults.mkdir(exist_ok=True)
                    (faults / f"{re.sub('[^a-z]+', '_', name)}-{number}-{len(wrong)}-{kind.file}").write_bytes(content)
            seconds = max(seconds, time.process_time() - began)

        run()
    return {"kind": name, "number": number, **counts, "said": wrong, "s": seconds, "mib": (resident() - before) / 2**20}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--kind", choices=KINDS, action="append", help="only this kind")
    parser.add_argument("--keep", type=Path, default=Path("fuzz.jsonl"), help="a file of batches")
    parser.add_argument("--faults", type=Path, help="a folder for inputs that broke a rule")
    parser.add_argument("--batch", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.batch:
        name, number, inputs = options.batch
        print(json.dumps(run_batch(name, int(number), int(inputs), options.faults)))
        return
    lines = options.keep.read_text().splitlines() if options.keep.exists() else []
    done = {(each["kind"], each["number"]) for each in map(json.loads, lines)}
    for name in options.kind or KINDS:
        share = KINDS[name].share * options.inputs // 100_000
        for number, first in enumerate(range(0, share, BATCH)):
            if (name, number) in done:
                continue
            command = [sys.executable, __file__, "--batch", name, str(number), str(min(BATCH, share - first))]
            command += ["--faults", str(options.faults)] if options.faults else []
            ended = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
            if ended.returncode:
                line = json.dumps({"kind": name, "number": number, "wrong": 1, "said": [ended.stderr[-300:]]})
            else:
                line = ended.stdout.strip().splitlines()[-1]
            for said in json.loads(line)["said"]:
                print(f"{name}: {said}", file=sys.stderr, flush=True)
            lines.append(line)
            with options.keep.open("a") as file:
                file.write(line + "\n")
    report([json.loads(line) for line in lines])


def report(batches: list[dict[str, Any]]) -> None:
    print(f"{time.strftime('%Y-%m-%d')}, hypothesis {hypothesis.__version__}.\n")
    heads = ("input", "mutated", "read", "refused in a line", "rule broken", "longest s", "most MiB")
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    total = Counter[str]()
    for name in dict.fromkeys(batch["kind"] for batch in batches):
        mine = [batch for batch in batches if batch["kind"] == name]
        counts = {how: sum(batch.get(how, 0) for batch in mine) for how in ("read", "refused", "wrong")}
        total.update(counts)
        most = [max(batch.get(what, 0) for batch in mine) for what in ("s", "mib")]
        cells = " | ".join(f"{count:,}" for count in (sum(counts.values()), *counts.values()))
        print(f"| {name} | {cells} | {most[0]:.2f} | {most[1]:.0f} |")
    print(f"| all | {total.total():,} | {total['read']:,} | {total['refused']:,} | {total['wrong']:,} | | |")
    sys.exit(total["wrong"] > 0)


if __name__ == "__main__":
    main()
