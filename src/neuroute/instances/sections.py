"""The parts of TSPLIB and VRPLIB files: `KEY : value` lines, and sections of coordinates, loads and distances."""

import logging
import math
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neuroute.core.errors import NeurouteError, did_you_mean, near
from neuroute.core.files import check_regular
from neuroute.instances.arrays import without_diagonal
from neuroute.problems.tsp import FEWEST_NODES, check_coordinates

log = logging.getLogger(__name__)
# Keys and sections that say nothing of what is solved; of a file of distances, coordinates are for drawings.
HARMLESS = ("NAME", "COMMENT", "TYPE", "DIMENSION", "DISPLAY_DATA_TYPE", "NODE_COORD_TYPE", "EDGE_WEIGHT_TYPE",
            "EDGE_WEIGHT_FORMAT", "DISPLAY_DATA_SECTION")  # fmt: skip
VEHICLES = ("CAPACITY", "VEHICLES", "DISTANCE", "SERVICE_TIME", "DEMAND_SECTION", "DEPOT_SECTION")
# What files of the plain CVRP may say, too (Christofides's and Li's sets), and learned solvers do not follow
LIMITS = {"DISTANCE": "its limit on the length of a route", "SERVICE_TIME": "its time at each customer",
          "VEHICLES": "its number of vehicles"}  # fmt: skip
FORMATS = ("FULL_MATRIX", "UPPER_ROW", "LOWER_COL", "LOWER_ROW", "UPPER_COL", "UPPER_DIAG_ROW", "LOWER_DIAG_COL",
           "LOWER_DIAG_ROW", "UPPER_DIAG_COL")  # fmt: skip
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


@dataclass(frozen=True)
class Sections:
    """A file in parts; `where` names it in messages."""

    where: str
    header: dict[str, str]
    rows: dict[str, list[tuple[int, str]]]  # section -> (line number, text)


def read_text(path: Path, what: str) -> str:
    """Return the text of a file.  Raises NeurouteError, naming `what` is expected, if it cannot be read as text."""
    check_regular(path)
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors begin with a mark
    except OSError as error:
        raise NeurouteError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise NeurouteError(f"{path}: not a text file; {what} is expected") from None
    if match := CONTROL.search(text):
        line = text.count("\n", 0, match.start()) + 1
        raise NeurouteError(f"{path}, line {line}: a control character ({match[0]!r}); {what} is expected, plain text")
    return text


def real(text: str) -> float:
    """Return a number in ASCII digits, which may be infinite.  Raises ValueError for other text, such as `1_0`."""
    if "_" in text or not text.isascii():
        raise ValueError(text)
    return float(text)


def whole(text: str) -> int | None:
    """Return a whole number from 0 on in at most 9 digits, so that sums over an instance stay exact; else None."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else None


def split(text: str, where: str) -> Sections:
    """Return header and sections of a file's text.

    Raises NeurouteError for a key or a section that is there twice, and for lines that belong to none.
    """
    header: dict[str, str] = {}
    rows: dict[str, list[tuple[int, str]]] = {}
    current: list[tuple[int, str]] | None = None
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line == "EOF":
            continue
        key, colon, value = line.partition(":")
        first = line.split()[0].rstrip(":")
        if first.endswith("_SECTION"):
            if first in rows:
                raise NeurouteError(f"{where}, line {number}: a second {first}; put its rows into one")
            if line.removeprefix(first).strip(" \t:"):
                raise NeurouteError(f"{where}, line {number}: more than {first} on its line; put rows below it")
            current = rows[first] = []
        elif colon and not line[0].isdigit():
            key = key.strip()
            if key in header and key != "COMMENT":
                raise NeurouteError(
                    f"{where}, line {number}: {key} says {value.strip()[:60]}, and {header[key][:60]} above; leave one"
                )
            header[key] = value.strip()
        elif current is None:
            raise NeurouteError(f"{where}, line {number}: `{line[:60]}` is in no section, and no `KEY : value`")
        else:
            current.append((number, line))
    return Sections(where, header, rows)


def check_known(parts: Sections, *read: str) -> None:
    """Raises NeurouteError for a key or a section that is neither read nor harmless: what it asks is not followed."""
    names = (*read, *HARMLESS)
    strange = next((name for name in (*parts.header, *parts.rows) if name not in names), None)
    if strange is not None:
        raise NeurouteError(
            f"{parts.where}: {strange[:60]} is not read here, and what it says would be lost"
            f"{did_you_mean(near(strange[:60], names))}; leave it out to solve without it"
        )


def edge_type_of(parts: Sections, types: Collection[str], solvers: str) -> str:
    """Return a file's EDGE_WEIGHT_TYPE.  Raises NeurouteError for another one than these; solvers: of distances."""
    edge_type = parts.header.get("EDGE_WEIGHT_TYPE")
    if edge_type is None:
        raise NeurouteError(f"{parts.where}: no EDGE_WEIGHT_TYPE in the file; one of {', '.join(types)} is expected")
    if edge_type == "EXPLICIT":
        raise NeurouteError(
            f"{parts.where}: EDGE_WEIGHT_TYPE EXPLICIT is not read where networks need coordinates; `neuroute solve` "
            f"takes distances with --solver {solvers}"
        )
    if edge_type not in types:
        raise NeurouteError(f"{parts.where}: EDGE_WEIGHT_TYPE {edge_type} is not read; only {', '.join(types)} are")
    return edge_type


def coordinates(parts: Sections) -> tuple[list[int], np.ndarray]:
    """Return the file's node numbers, and their coordinates (n, 2) float64.

    Raises NeurouteError if a row is malformed, a node appears twice, DIMENSION disagrees, or they are no instance.
    """
    points: dict[int, tuple[float, float]] = {}
    for number, line in parts.rows.get("NODE_COORD_SECTION", []):
        node, point = _node(line, f"{parts.where}, line {number}")
        if node in points:
            raise NeurouteError(f"{parts.where}, line {number}: node {node} appears twice; give each node one line")
        points[node] = point
    dimension = parts.header.get("DIMENSION", "")
    if whole(dimension) != len(points):
        raise NeurouteError(
            f"{parts.where}: DIMENSION says {dimension or 'nothing'}, but {len(points)} nodes have coordinates; "
            "is the file cut short?"
        )
    coords = np.array(list(points.values()), dtype=np.float64).reshape(-1, 2)
    check_coordinates(coords, parts.where)
    return list(points), coords


def _node(line: str, where: str) -> tuple[int, tuple[float, float]]:
    parts = line.split()
    try:
        node, x, y = whole(parts[0]), real(parts[1]), real(parts[2])
    except (ValueError, IndexError):
        node = None
    if node is None:
        raise NeurouteError(f"{where}: expected `node x y`, got `{line[:60]}`")
    if len(parts) > 3:
        raise NeurouteError(f"{where}: {len(parts) - 1} coordinates; only two-dimensional instances are read")
    if not (math.isfinite(x) and math.isfinite(y)):
        raise NeurouteError(f"{where}: node {node} has a coordinate that is not a number")
    return node, (x, y)


def loads(parts: Sections, nodes: list[int]) -> tuple[int, np.ndarray, np.ndarray]:
    """Return the capacity, the demands (n + 1,), depot first, and the order that brings the depot to the front.

    Raises NeurouteError if they are no instance's.
    """
    where = parts.where
    if ignored := [f"{what} ({parts.header[key][:60]})" for key, what in LIMITS.items() if key in parts.header]:
        log.warning("%s: %s is ignored; routes are as many and as long as they need be", where, " and ".join(ignored))
    number = parts.header.get("CAPACITY", "")
    capacity = whole(number)
    if not capacity:
        raise NeurouteError(
            f"{where}: CAPACITY says {number[:60] or 'nothing'}; give a whole number above 0, of at most 9 digits"
        )
    demand = _demands(parts, nodes)
    depot = nodes.index(_depot(parts, nodes))
    if demand[depot]:
        raise NeurouteError(f"{where}: the depot, node {nodes[depot]}, has a demand of {demand[depot]}; it must be 0")
    if demand.max() > capacity:
        most = nodes[int(demand.argmax())]
        raise NeurouteError(f"{where}: node {most} demands {demand.max()}, more than the capacity {capacity}; split it")
    order = np.array([depot, *(i for i in range(len(nodes)) if i != depot)])
    return capacity, demand[order], order


def _demands(parts: Sections, nodes: list[int]) -> np.ndarray:
    """(n + 1,) in the order of `nodes`."""
    demands: dict[int, int] = {}
    for number, line in parts.rows.get("DEMAND_SECTION", []):
        words = line.split()
        node, demand = map(whole, words) if len(words) == 2 else (None, None)
        if node is None or demand is None:
            raise NeurouteError(
                f"{parts.where}, line {number}: expected `node demand` in whole numbers from 0 on, got `{line[:60]}`"
            )
        if node in demands:
            raise NeurouteError(f"{parts.where}, line {number}: node {node} has a second demand; give it one line")
        demands[node] = demand
    if set(demands) != set(nodes):
        node = min(set(demands) ^ set(nodes))
        missing = "demand" if node in nodes else "coordinates"
        raise NeurouteError(f"{parts.where}: node {node} has no {missing}; every node needs both")
    return np.array([demands[node] for node in nodes], dtype=np.int64)


def _depot(parts: Sections, nodes: list[int]) -> int:
    words = [w for _, line in parts.rows.get("DEPOT_SECTION", []) for w in line.split()]
    numbers = words[: words.index("-1")] if "-1" in words else words
    depot = whole(numbers[0]) if len(numbers) == 1 else None
    if depot not in nodes:
        raise NeurouteError(
            f"{parts.where}: DEPOT_SECTION names {' '.join(numbers)[:60] or 'no node'}; one node is expected"
        )
    return depot


def matrix(parts: Sections) -> np.ndarray:
    """Return distances (n, n) int64, 0 on the diagonal.  Raises NeurouteError if the section holds none."""
    where = parts.where
    form, dimension = parts.header.get("EDGE_WEIGHT_FORMAT", "nothing"), parts.header.get("DIMENSION", "nothing")
    n = whole(dimension)
    if n is None or n < FEWEST_NODES:
        raise NeurouteError(f"{where}: DIMENSION says {dimension[:60]}; give a whole number from {FEWEST_NODES} on")
    if form not in FORMATS:
        raise NeurouteError(f"{where}: EDGE_WEIGHT_FORMAT {form} is not read; only {', '.join(FORMATS)} are")
    full, diagonal = form == "FULL_MATRIX", "DIAG" in form
    expected = n * n if full else n * (n + 1) // 2 if diagonal else n * (n - 1) // 2
    values = _numbers(parts)
    if len(values) != expected:
        raise NeurouteError(
            f"{where}: {len(values):,} numbers in EDGE_WEIGHT_SECTION; {form} of {n} nodes has {expected:,}; is the "
            "file cut short?"
        )
    if full:
        ways = values.reshape(n, n).copy()
    else:
        ways = np.zeros((n, n), dtype=np.int64)
        offset = 0 if diagonal else 1
        upper = form.startswith("UPPER") == form.endswith("ROW")  # by columns a triangle is the other one by rows
        rows = np.triu_indices(n, offset) if upper else np.tril_indices(n, -offset)
        ways[rows] = values
        ways = np.maximum(ways, ways.T)
    return without_diagonal(ways, where)


def _numbers(parts: Sections) -> np.ndarray:
    """Return the whole numbers of the section, however its lines are broken."""
    rows = parts.rows.get("EDGE_WEIGHT_SECTION", [])
    for number, line in rows:
        for word in line.split():
            if whole(word) is None:
                raise NeurouteError(
                    f"{parts.where}, line {number}: a distance of {word[:20]}; give whole numbers from 0 on, of at "
                    "most 9 digits (scale others)"
                )
    return np.array([word for _, line in rows for word in line.split()], dtype=np.int64)


def coord_rows(coords: np.ndarray) -> str:
    """Return the rows of a NODE_COORD_SECTION, nodes from 1; numbers read back as they are."""
    rows = ((int(x) if x % 1 == 0 else x for x in row) for row in coords.tolist())
    return "\n".join(f"{i} {x!r} {y!r}" for i, (x, y) in enumerate(rows, 1))


SCALED = "COMMENT : coordinates times "


def stated_scale(text: str) -> float | None:
    """Return by what `neuroute export` multiplied a file's coordinates before it rounded them; None: no file of its."""
    match = re.search(rf"^{SCALED}(10+|0\.0*1|1e[+-][0-9]{{2}})$", text, re.MULTILINE)
    return float(match[1]) or None if match else None
