"""Inputs of `bench/fuzz.py`: whole files of every kind that is read, and what is changed in them."""

import io
import json
import math
import pickle
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from hypothesis import strategies as st
from safetensors.torch import save

from neuroute.core.digest import code_digest
from neuroute.networks.weights import build
from neuroute.specs.objects import Network

ROOT = Path(__file__).resolve().parents[1]

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
