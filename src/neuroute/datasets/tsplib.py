"""TSPLIB files: instances (.tsp), tours (.tour), and distances as TSPLIB defines them (Reinelt, 1991)."""

import logging
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.core.files import write_text
from neuroute.core.text import printable
from neuroute.datasets.sections import check_known, coord_rows, coordinates, edge_type_of, read_text, split, whole

log = logging.getLogger(__name__)
EDGE_TYPES = ("EUC_2D", "CEIL_2D", "ATT", "GEO")


@dataclass(frozen=True)
class TsplibInstance:
    """A symmetric TSP instance with coordinates (n, 2) float64 in the file's own units."""

    name: str
    edge_type: str
    coords: np.ndarray
    numbers: np.ndarray | None = None  # (n,) of the nodes in the file; None: 1 to n

    def unit_square(self) -> np.ndarray:
        """Return float32 coordinates (n, 2) in the unit square."""
        return scale_to_unit(self.coords)

    def length(self, tour: np.ndarray, rounded: bool = True) -> float:
        """Return the length of a tour (n,) in TSPLIB's integer distances, or (EUC_2D, CEIL_2D) unrounded ones."""
        a, b = self.coords[tour], self.coords[np.roll(tour, -1)]
        return float(distances(a, b, self.edge_type, rounded).sum())


class TourInstance(Protocol):
    """What a tour file needs to know of an instance."""

    @property
    def name(self) -> str: ...
    @property
    def edge_type(self) -> str: ...
    @property
    def numbers(self) -> np.ndarray | None: ...
    def length(self, solution: np.ndarray, /) -> float: ...


def scale_to_unit(coords: np.ndarray) -> np.ndarray:
    """Return coords (n, 2) in the unit square, by one offset and one scale for both axes, as the papers do: float32."""
    low, high = coords.min(), coords.max()
    return np.asarray((coords - low) / (high - low), dtype=np.float32)


def distances(a: np.ndarray, b: np.ndarray, edge_type: str, rounded: bool = True) -> np.ndarray:
    """Return the distances (k,) between the rows of a and b (k, 2) by TSPLIB's definitions."""
    if edge_type == "GEO":
        # TSPLIB's own constants: degrees.minutes, pi with five decimals, an idealised sphere.
        (lat_a, lon_a), (lat_b, lon_b) = (_radians(x).T for x in (a, b))
        q1, q2, q3 = np.cos(lon_a - lon_b), np.cos(lat_a - lat_b), np.cos(lat_a + lat_b)
        arc = np.arccos(0.5 * ((1 + q1) * q2 - (1 - q1) * q3))
        return np.asarray(np.floor(6378.388 * arc + 1.0))
    plain: np.ndarray = np.hypot(*(a - b).T)
    if edge_type == "ATT":
        plain = plain / math.sqrt(10.0)
        nearest: np.ndarray = np.floor(plain + 0.5)
        return nearest + (nearest < plain) if rounded else plain
    if not rounded or edge_type == "EXACT_2D":  # of instances that are no file of TSPLIB's
        return plain
    return np.asarray(np.ceil(plain) if edge_type == "CEIL_2D" else np.floor(plain + 0.5))


def _radians(x: np.ndarray) -> np.ndarray:
    degrees = np.trunc(x)
    return np.asarray(3.141592 * (degrees + 5.0 * (x - degrees) / 3.0) / 180.0)


def read_tsplib(path: Path) -> TsplibInstance:
    """Return the instance.  Raises NeurouteError, naming file, line and mend, if it is no plain instance."""
    instance = parse_tsplib(read_text(path, "a TSPLIB .tsp file"), str(path), path.stem)
    _warn_of_coincident(str(path), instance.coords)
    return instance


def parse_tsplib(text: str, where: str, name: str) -> TsplibInstance:
    """Return the instance of a file's text; `name` is for a file that states none."""
    parts = split(text, where)
    edge_type = edge_type_of(parts, EDGE_TYPES, "lkh, or concorde, hgs, insertion, nearest, ortools, pyvrp")
    kind = parts.header.get("TYPE", "TSP")
    if kind.split()[:1] != ["TSP"]:
        raise NeurouteError(f"{where}: TYPE {kind or 'nothing'} is not read; only symmetric TSP files are")
    check_known(parts, "NODE_COORD_SECTION")
    nodes, coords = coordinates(parts)
    numbers = None if nodes == list(range(1, len(nodes) + 1)) else np.array(nodes)
    return TsplibInstance(parts.header.get("NAME", name), edge_type, coords, numbers)


def _warn_of_coincident(where: str, coords: np.ndarray) -> None:
    """Warn of nodes on one point, which TSPLIB's own instances have."""
    _, first, counts = np.unique(coords, axis=0, return_index=True, return_counts=True)
    if (counts > 1).any():
        one = coords[first[counts > 1][0]]
        same = np.flatnonzero((coords == one).all(axis=1))[:2] + 1
        extra = int((counts - 1).sum())
        log.warning(
            "%s: %d nodes lie on the point of another (first: the file's nodes %d and %d); kept as they are",
            where, extra, *same,
        )  # fmt: skip


def format_tsplib(instance: TsplibInstance, comment: str = "") -> str:
    """Return the text of a .tsp file, whose coordinates read back as they are; nodes are numbered from 1."""
    about = f"COMMENT : {comment}\n" if comment else ""
    return (
        f"NAME : {instance.name}\n{about}TYPE : TSP\nDIMENSION : {len(instance.coords)}\n"
        f"EDGE_WEIGHT_TYPE : {instance.edge_type}\nNODE_COORD_SECTION\n{coord_rows(instance.coords)}\nEOF\n"
    )


def read_tour(path: Path, instance: TsplibInstance) -> np.ndarray:
    """Return the tour (n,) int64 of a TSPLIB .tour file, as rows of the instance's coordinates.

    Raises NeurouteError if the file cannot be read, or the tour misses or repeats a node or is of another instance.
    """
    parts = split(read_text(path, "a TSPLIB .tour file"), str(path))
    n = len(instance.coords)
    if "TOUR_SECTION" not in parts.rows:
        raise NeurouteError(f"{path}: no TOUR_SECTION; a TSPLIB .tour file is expected")
    dimension = parts.header.get("DIMENSION", str(n))
    if whole(dimension) != n:
        raise NeurouteError(
            f"{path}: DIMENSION says {dimension[:60]}, but {instance.name} has {n} nodes; it is of another one"
        )
    numbers = np.arange(1, n + 1) if instance.numbers is None else instance.numbers
    row = {int(number): i for i, number in enumerate(numbers)}
    words = [(line, word) for line, text in parts.rows["TOUR_SECTION"] for word in text.split()]
    end = next((place for place, (_, word) in enumerate(words) if word == "-1"), len(words))
    tour: list[int] = []
    for line, word in words[:end]:
        node = whole(word)
        if node not in row:
            raise NeurouteError(f"{path}, line {line}: there is no node {word[:20]} in {instance.name}")
        tour.append(row[node])
    if further := [line for line, word in words[end:] if word != "-1"]:
        raise NeurouteError(f"{path}, line {further[0]}: nodes after the end (-1) of the tour; keep one tour in a file")
    visits = np.bincount(np.array(tour, dtype=np.int64), minlength=n)
    if (visits != 1).any():
        node = int(np.flatnonzero(visits != 1)[0])
        raise NeurouteError(f"{path}: node {numbers[node]} is visited {visits[node]} times; once is meant")
    return np.array(tour, dtype=np.int64)


def write_tour(path: Path, instance: TourInstance, tour: np.ndarray) -> None:
    """Write a tour (n,) as a TSPLIB .tour file, whole or not at all."""
    write_text(path, format_tour(path.name, instance, tour))


def format_tour(name: str, instance: TourInstance, tour: np.ndarray) -> str:
    """Return the text of a .tour file."""
    numbers = tour + 1 if instance.numbers is None else instance.numbers[tour]
    lines = "\n".join(map(str, numbers.tolist()))
    return printable(
        f"NAME : {name}\nCOMMENT : {instance.name}, length {instance.length(tour):.10g} ({instance.edge_type})\n"
        f"TYPE : TOUR\nDIMENSION : {len(tour)}\nTOUR_SECTION\n{lines}\n-1\nEOF\n"
    )


def all_distances(coords: np.ndarray, edge_type: str) -> np.ndarray:
    """Return TSPLIB's distances (n, n) int64 between coordinates (n, 2)."""
    n = len(coords)
    ways = np.empty((n, n), dtype=np.int64)
    for i in range(n):
        ways[i] = distances(np.broadcast_to(coords[i], (n, 2)), coords, edge_type)
    np.fill_diagonal(ways, 0)
    return ways
