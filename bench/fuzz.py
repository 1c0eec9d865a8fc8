"""`python bench/fuzz.py`: files of every kind that is read, mutated by hypothesis.  Prints a Markdown table.

Whatever is done to a file, it gives an answer or one plain line (`NeurouteError`): no traceback, no hang above five
seconds, no more than 1 GiB.  An instance that is taken costs what `by_definition` computes of the file's own text.
`--keep FILE` goes on after the batches of an earlier call; `--faults FOLDER` keeps inputs that broke a rule.
"""

import argparse
import io
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
import torch
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from safetensors.torch import save

import neuroute
from neuroute.networks.foreign_weights import fit, read_weights
from neuroute.networks.weights import build
from neuroute.plan.build import build_plan
from neuroute.plan.config import load_config, parse_config
from neuroute.plan.digest import code_digest
from neuroute.plan.objects import Network
from neuroute.user.model import load_model
from neuroute.user.solve_file import read_start

ROOT = Path(__file__).resolve().parents[1]
SECONDS, GIB = 5, 2**30
MOST = 8 * GIB  # that a process may ask for, which is not yet to use it: a runaway ends here
LONGEST = 2010  # characters of a message, of which the middle is left out
MOST_NODES = 60  # of instances whose lengths are computed in plain Python
NOISE = 1e-9
BATCH = 1000  # inputs of a process, so that one that dies is seen


class Wrong(AssertionError):
    """A rule is broken."""


# -- whole files --------------------------------------------------------------------------------------------------


def section(kind: str, more: str = "", edge: str = "EUC_2D", body: str = "", n: int = 5) -> str:
    head = f"NAME : small\nCOMMENT : of a fuzzer\nTYPE : {kind}\nDIMENSION : {n}\nEDGE_WEIGHT_TYPE : {edge}\n"
    return f"{head}{more}{body}EOF\n"


POINTS = ((3, 14), (20, 3.5), (-7.25, 9), (41, 40), (12, 12))
COORDS = "NODE_COORD_SECTION\n" + "".join(f"{i} {x} {y}\n" for i, (x, y) in enumerate(POINTS, 1))
DEMANDS = "DEMAND_SECTION\n1 0\n2 4\n3 7\n4 2\n5 5\nDEPOT_SECTION\n1\n-1\n"
WAYS = np.array([[0, 7, 3, 9, 4], [7, 0, 6, 2, 8], [3, 6, 0, 5, 1], [9, 2, 5, 0, 6], [4, 8, 1, 6, 0]])
LOWER = "EDGE_WEIGHT_FORMAT : LOWER_DIAG_ROW\nEDGE_WEIGHT_SECTION\n0\n7 0\n3 6 0\n9 2 5 0\n4 8 1 6 0\n"
UPPER = "EDGE_WEIGHT_FORMAT : UPPER_ROW\nEDGE_WEIGHT_SECTION\n7 3 9 4\n6 2 8\n5 1\n6\n"
FULL = "EDGE_WEIGHT_FORMAT : FULL_MATRIX\nEDGE_WEIGHT_SECTION\n" + "".join(
    " ".join(map(str, row)) + "\n" for row in WAYS.tolist()
)
TSP = (
    *(section("TSP", edge=edge, body=COORDS) for edge in ("EUC_2D", "CEIL_2D", "ATT", "GEO")),
    section("TSP", body=COORDS).replace("of a fuzzer", "coordinates times 1000"),
)
EXPLICIT = tuple(section("TSP", edge="EXPLICIT", body=body) for body in (LOWER, UPPER, FULL))
VRP = (
    *(section("CVRP", "CAPACITY : 11\n", edge, COORDS + DEMANDS) for edge in ("EUC_2D", "CEIL_2D", "EXACT_2D")),
    section("CVRP", "CAPACITY : 11\n", "EXPLICIT", LOWER + DEMANDS),
)
SOLOMON = (
    "R of 4 customers\n\nVEHICLE\nNUMBER     CAPACITY\n   4           50\n\nCUSTOMER\n"
    "CUST NO.  XCOORD.   YCOORD.    DEMAND   READY TIME  DUE DATE   SERVICE   TIME\n\n"
    "0 35 35 0 0 230 0\n1 41 49 10 61 171 10\n2 35 17 7 50 160 10\n3 55 45 13 16 126 10\n4 55 20 19 49 159 10\n",
)
TOUR = ("NAME : t\nTYPE : TOUR\nDIMENSION : 5\nTOUR_SECTION\n1\n3\n2\n5\n4\n-1\nEOF\n", "TOUR_SECTION\n5 4 3 2 1 -1\n")
SOL = ("Route #1: 1 2\nRoute #2: 3 4\nCost 154\n", "Route #1: 4\nRoute #2: 2 1\nRoute #3: 3\n")
LEHD_TSP = (
    "0.1 0.2 0.9 0.3 0.4 0.8 0.5 0.5 output 1 2 4 3 1\n0.3 0.1 0.2 0.7 0.6 0.6 0.9 0.9 output 1 2 3 4 1\n",
    "0.1 0.2 0.9 0.3 0.4 0.8 0.5 0.5\n",
)
LEHD_CVRP = (
    "depot,0.5,0.5,customer,0.1,0.2,0.9,0.3,0.4,0.8,0.6,0.1,capacity,10,demand,0,4,5,6,3,cost,3.20998869,node_flag,1,2,3,4,1,0,1,0\n",
    "depot,0.5,0.5,customer,0.1,0.2,0.9,0.3,0.4,0.8,0.6,0.1,capacity,10,demand,0,4,5,6,3\n",
)
RNG = np.random.default_rng(0)
FEW: dict[str, Any] = {"coords": RNG.random((2, 5, 2))}
LOADS = {"demand": np.array([[0, 4, 5, 6, 3], [0, 1, 2, 3, 4]]), "capacity": np.array([10, 9])}
LATER: dict[str, Any] = {
    "windows": np.tile([0.0, 9.0], (2, 5, 1)),
    "service": np.array([[0, 0.1, 0.1, 0.1, 0.1]] * 2),
    "limit": np.array([4.0, 5.0]),
    "open": np.array(True),
    "variant": np.array("OVRPLTW"),
}
ARRAYS = (
    FEW,
    FEW | {"tour": np.array([[0, 1, 2, 3, 4], [4, 3, 1, 2, 0]])},
    FEW | LOADS,
    FEW | LOADS | {"node": np.array([[1, 2, 3, 4]] * 2), "via_depot": np.array([[1, 0, 1, 0]] * 2)},
    FEW | LOADS | LATER,
)


def packed(arrays: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def pickled() -> tuple[bytes, ...]:
    coords = FEW["coords"]
    loads = [(coords[0, 0].tolist(), coords[0, 1:].tolist(), [4, 5, 6, 3], 10.0)]
    contents: list[Any] = [coords.tolist(), coords, list(coords), loads]
    return tuple(pickle.dumps(each, protocol) for each in contents for protocol in (2, 4))


@cache
def network() -> Network:
    arguments = {"depth": 1, "width": 8, "heads": 1, "feed_forward": 8, "train_nodes": 9}
    return Network(kind="neuroute.networks.lehd:Lehd", arguments=arguments)


@cache
def weights() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    return {name: tensor.contiguous() for name, tensor in build(network()).state_dict().items()}


def checkpoint() -> tuple[bytes, ...]:
    about = {"run": "scaling/x", "network": network().model_dump(), "code": code_digest(network().kind)}
    return (save(weights(), metadata={"neuroute": json.dumps(about)}), save(weights()))


def torch_files() -> tuple[bytes, ...]:
    files = []
    for content, old in ((weights(), False), ({"model_state_dict": weights(), "epoch": 3}, True)):
        file = io.BytesIO()
        torch.save(content, file, _use_new_zipfile_serialization=not old)
        files.append(file.getvalue())
    return tuple(files)


def yaml_of(name: str) -> tuple[str, ...]:
    return ((ROOT / name).read_text(),)


CONFIG = (
    f"scale: {ROOT}/tests/data/micro.yaml\npapers: [pens]\ndevice: cpu\nmemory_gb: 2\nwork_dir: w\nresults_dir: r\n"
    "runs: {pens/pens_a: {seeds: 2, training: {learning_rate: 1.0e-3}}}\njobs_per_gpu: 1\n"
    "compare: {sets: [tsplib], methods: [nearest, lkh], seconds: 2}\nmachine: {job_hours: 4}\n",
)


# -- what is done to them -----------------------------------------------------------------------------------------

ODD = (
    *("", "0", "-1", "1", "1e309", "-1e309", "nan", "inf", "1_0", "١", "9" * 20, "9" * 5000, "1e-320", "0x10", "1.5"),
    *(":", "-0", "+3", "1e5", "EOF", "$x$", "\x1b[31m", "\x00", "\u2028", "\ufeff", "=1+1", "null", "[]", "{}", "true"),
    *("TSP", "CVRP", "GEO", "ATT", "EXPLICIT", "FULL_MATRIX", "UPPER_ROW", "2147483648", "99999999999999999999"),
)
WORDS = st.one_of(
    st.sampled_from(ODD),
    st.integers(-(2**40), 2**40).map(str),
    st.integers(-3, 20).map(str),
    st.floats().map(repr),
    st.floats(-180, 180).map(lambda number: f"{number:.3f}"),
    st.text(max_size=6),
)
NEW_LINES = (
    *(
        "FIXED_EDGES_SECTION",
        "1 2",
        "DIMENSION : 4",
        "TYPE : TSP",
        "CAPACITY : 5",
        "VEHICLES : 2",
        "EOF",
        "-1",
        "6 1 1",
    ),
    *("COMMENT : coordinates times 0", "NODE_COORD_TYPE : THREED_COORDS", "DISTANCE : 3", "6 1 1"),
)
LINES = st.sampled_from(NEW_LINES) | st.text(max_size=20)


@st.composite
def texts(draw: Any, files: tuple[str, ...]) -> bytes:
    """A text with some words, lines, or bytes changed."""
    lines = draw(st.sampled_from(files)).split("\n")
    for _ in range(draw(st.integers(1, 3))):
        row = draw(st.integers(0, len(lines) - 1))
        how = draw(st.sampled_from(("word", "word", "word", "drop", "twice", "swap", "new", "cut", "character")))
        if how == "word":
            words = re.split(r"([\s,:]+)", lines[row])
            words[draw(st.integers(0, len(words) - 1))] = draw(WORDS)
            lines[row] = "".join(words)
        elif how == "drop":
            del lines[row]
        elif how == "twice":
            lines.insert(row, lines[row])
        elif how == "swap":
            other = draw(st.integers(0, len(lines) - 1))
            lines[row], lines[other] = lines[other], lines[row]
        elif how == "new":
            lines.insert(row, draw(LINES))
        elif how == "cut":
            lines[row:] = [lines[row][: draw(st.integers(0, 40))]]
        else:
            at = draw(st.integers(0, len(lines[row])))
            lines[row] = lines[row][:at] + draw(st.characters(codec="utf-8")) + lines[row][at + draw(st.booleans()) :]
        lines = lines or [""]
    return "\n".join(lines).encode()


@st.composite
def flipped(draw: Any, files: tuple[bytes, ...]) -> bytes:
    """Bytes of which some are changed, left out or put in."""
    content = bytearray(draw(st.sampled_from(files)))
    for _ in range(draw(st.integers(1, 3))):
        how = draw(st.sampled_from(("flip", "flip", "set", "number", "cut", "drop", "put")))
        last = max(len(content) - 1, 0)
        # heads and ends of files say more than what is between
        places = ((0, last), (0, min(last, 400)), (max(last - 300, 0), last))
        at = draw(st.one_of(*(st.integers(*each) for each in places)))
        if how == "flip" and content:
            content[at] ^= 1 << draw(st.integers(0, 7))
        elif how == "set" and content:
            content[at] = draw(st.integers(0, 255))
        elif how == "number":
            size = draw(st.sampled_from((2, 4, 8)))
            value = draw(st.sampled_from((0, 1, 2**15, 2**31 - 1, 2**32 - 1, 2**40, 2**63 - 1)))
            content[at : at + size] = (value % 2 ** (8 * size)).to_bytes(size, "little")
        elif how == "cut":
            del content[at:]
        elif how == "drop":
            del content[at : at + draw(st.integers(1, 50))]
        else:
            content[at:at] = draw(st.binary(min_size=1, max_size=20))
    return bytes(content)


ODD_NUMBERS = (0.0, -1.0, 1.0, 0.5, math.nan, math.inf, -math.inf, 1e300, 1e-300, 2.0**63, 1e9)
NUMBERS = st.sampled_from(ODD_NUMBERS) | st.floats(-2, 12)


@st.composite
def changed_arrays(draw: Any) -> bytes:
    """An npz whose arrays have other numbers, types, shapes or names."""
    arrays = dict(draw(st.sampled_from(ARRAYS)))
    for _ in range(draw(st.integers(1, 2))):
        name = draw(st.sampled_from(sorted(arrays)))
        array = np.array(arrays[name])
        how = draw(st.sampled_from(("number", "number", "type", "shape", "gone", "other")))
        if how == "number" and array.dtype.kind in "fiub" and array.size:
            value = draw(NUMBERS)
            array = array.astype(np.float64) if array.dtype.kind != "f" and value % 1 else array.copy()
            with np.errstate(all="ignore"):
                place = draw(st.integers(0, array.size - 1))
                array.reshape(-1)[place] = np.array(value).astype(array.dtype)
        elif how == "type":
            with np.errstate(all="ignore"):
                kind = draw(st.sampled_from(("f2", "f4", ">f8", "i1", "u1", "i8", "u8", "?", "c16", "U3", "M8[s]")))
                array = array.astype(kind) if array.dtype.kind in "fiub" else np.array(draw(st.text(max_size=9)))
        elif how == "shape":
            array = draw(st.sampled_from((array[:0] if array.ndim else array, array[None], array.T, array.reshape(-1))))
        elif how == "gone" and len(arrays) > 1:
            del arrays[name]
            continue
        elif how == "other":
            arrays[draw(st.sampled_from(("tour", "length", "node", "windows", "x", "variant")))] = array
        arrays[name] = array
    return packed(arrays)


PLAIN = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.binary(max_size=5))
NESTED = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=5) | st.tuples(inner, inner), max_leaves=20)
POINTS_OF = st.lists(st.lists(st.floats(0, 1), min_size=2, max_size=2), min_size=5, max_size=5)


@st.composite
def point_lists(draw: Any) -> list[Any]:
    """What Kool et al.'s pickles hold, of which a part may be something else."""
    points = [draw(POINTS_OF) for _ in range(draw(st.integers(1, 2)))]
    instances: list[Any] = [*points]
    if draw(st.booleans()):
        instances = [[each[0], each[1:], [1.0] * (len(each) - 1), 9.0] for each in points]
    place: Any = instances
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(place) - 1))
        if not isinstance(place[at], list) or not place[at]:
            place[at] = draw(NUMBERS | NESTED)
            break
        place = place[at]
    return instances


@st.composite
def changed_yaml(draw: Any, files: tuple[str, ...]) -> bytes:
    """YAML of which some values, anywhere, are others."""
    content = yaml.safe_load(draw(st.sampled_from(files)))
    for _ in range(draw(st.integers(1, 2))):
        place = content
        while True:
            key = draw(st.sampled_from(sorted(place, key=str) if isinstance(place, dict) else list(range(len(place)))))
            inside = place[key]
            if not isinstance(inside, dict | list) or not inside or draw(st.integers(0, 5)) == 0:
                break
            place = inside
        how = draw(st.sampled_from(("value", "value", "value", "near", "gone", "key")))
        if how == "gone":
            del place[key]
        elif how == "key" and isinstance(place, dict):
            place[draw(st.one_of(st.text(max_size=8), st.integers(-2, 2000), st.none()))] = inside
        elif how == "near" and isinstance(inside, int | float):
            near = (0, -1, 1, 2, inside * 2, inside + 0.5, float(inside), str(inside), 10**9)
            place[key] = draw(st.sampled_from(near))
        else:
            place[key] = draw(st.one_of(NUMBERS, NESTED, st.sampled_from(ODD[:8] + ODD[-8:])))
        if not content:
            break
    return yaml.safe_dump(content, allow_unicode=True).encode()


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
