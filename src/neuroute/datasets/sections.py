"""The text form that TSPLIB and VRPLIB files share: `KEY : value` lines and sections of numbered rows."""

import math
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neuroute.core.errors import NeurouteError, did_you_mean, near
from neuroute.core.files import check_regular
from neuroute.problems.tsp import check_coordinates

# Keys and sections that say nothing of what is solved; of a file of distances, coordinates are for drawings.
HARMLESS = ("NAME", "COMMENT", "TYPE", "DIMENSION", "DISPLAY_DATA_TYPE", "NODE_COORD_TYPE", "EDGE_WEIGHT_TYPE",
            "EDGE_WEIGHT_FORMAT", "DISPLAY_DATA_SECTION")  # fmt: skip
VEHICLES = ("CAPACITY", "VEHICLES", "DISTANCE", "SERVICE_TIME", "DEMAND_SECTION", "DEPOT_SECTION")
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
        text = path.read_text()
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


def coord_rows(coords: np.ndarray) -> str:
    """Return the rows of a NODE_COORD_SECTION, nodes from 1; numbers read back as they are."""
    rows = ((int(x) if x % 1 == 0 else x for x in row) for row in coords.tolist())
    return "\n".join(f"{i} {x!r} {y!r}" for i, (x, y) in enumerate(rows, 1))


SCALED = "COMMENT : coordinates times "


def stated_scale(text: str) -> float | None:
    """Return by what `neuroute export` multiplied a file's coordinates before it rounded them; None: no file of its."""
    match = re.search(rf"^{SCALED}(10+|0\.0*1|1e[+-][0-9]{{2}})$", text, re.MULTILINE)
    return float(match[1]) or None if match else None
