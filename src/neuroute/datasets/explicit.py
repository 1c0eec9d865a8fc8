"""TSPLIB and VRPLIB files of distances instead of coordinates (EDGE_WEIGHT_TYPE EXPLICIT): TSP, ATSP and CVRP."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.datasets.sections import VEHICLES, Sections, check_known, read_text, split, whole
from neuroute.datasets.vrplib import check_routes, loads
from neuroute.problems.tsp import FEWEST_NODES, is_permutation
from neuroute.problems.vrp import to_routes

# format -> (upper triangle, with the diagonal); by columns, a symmetric matrix is its other triangle by rows
TRIANGLES = {
    "UPPER_ROW": (True, False),
    "LOWER_COL": (True, False),
    "LOWER_ROW": (False, False),
    "UPPER_COL": (False, False),
    "UPPER_DIAG_ROW": (True, True),
    "LOWER_DIAG_COL": (True, True),
    "LOWER_DIAG_ROW": (False, True),
    "UPPER_DIAG_COL": (False, True),
}
FORMATS = ("FULL_MATRIX", *TRIANGLES)
LARGEST = 999_999_999  # of distances, so that sums stay exact
TYPES = {"TSP": "tsp", "ATSP": "tsp", "CVRP": "cvrp"}


@dataclass(frozen=True)
class MatrixInstance:
    """A TSP or a CVRP in distances between its nodes; with vehicles, row 0 is the depot, wherever the file has it."""

    name: str
    ways: np.ndarray  # (n, n) int64, from the row's node to the column's; 0 on the diagonal
    demand: np.ndarray | None = None  # (n,) int64, 0 at the depot
    capacity: int | None = None

    @property
    def edge_type(self) -> str:
        return "EXPLICIT"

    @property
    def numbers(self) -> None:
        """Of nodes in the file: 1 to n."""
        return None

    @property
    def problem(self) -> str:
        return "tsp" if self.demand is None else "cvrp"

    @property
    def n(self) -> int:
        """How many nodes there are; with vehicles, how many customers."""
        return len(self.ways) - (self.demand is not None)

    @property
    def symmetric(self) -> bool:
        return bool((self.ways == self.ways.T).all())

    def length(self, solution: np.ndarray) -> float:
        """Return the length of a tour (n,), or of customers and flags (2, n - 1).

        Raises NeurouteError if it is no solution.
        """
        if self.demand is None or self.capacity is None:
            if solution.shape != (len(self.ways),) or not is_permutation(solution[None]).all():
                raise NeurouteError(f"{self.name}: not a tour of its {len(self.ways)} nodes")
            path = np.append(solution, solution[0])
        else:
            routes = to_routes(solution)
            check_routes(routes, self.demand, self.capacity, self.name)
            path = np.concatenate([[0, *route] for route in routes] + [[0]]).astype(np.int64)
        return float(self.ways[path[:-1], path[1:]].sum())


def is_explicit(path: Path) -> bool:
    """Whether a file is one of TSPLIB's or VRPLIB's that holds distances.  Raises NeurouteError if it is no text."""
    if path.suffix not in (".tsp", ".vrp") or not path.exists():
        return path.suffix == ".atsp"
    return split(read_text(path, "a TSPLIB or VRPLIB file"), str(path)).header.get("EDGE_WEIGHT_TYPE") == "EXPLICIT"


def read_explicit(path: Path) -> MatrixInstance:
    """Return the instance.  Raises NeurouteError, naming file and mend, if it is none."""
    return parse_explicit(read_text(path, "a TSPLIB or VRPLIB file"), str(path), path.stem)


def parse_explicit(text: str, where: str, name: str) -> MatrixInstance:
    """Return the instance of a file's text; `name` is for a file that states none."""
    parts = split(text, where)
    kind = parts.header.get("TYPE", "missing").split()[:1]
    if not kind or kind[0] not in TYPES:
        raise NeurouteError(f"{where}: TYPE {' '.join(kind) or 'nothing'} is not read; only {', '.join(TYPES)} are")
    # coordinates beside distances are for drawings
    check_known(parts, "EDGE_WEIGHT_SECTION", "NODE_COORD_SECTION", *(VEHICLES if TYPES[kind[0]] == "cvrp" else ()))
    ways = _matrix(parts)
    name = parts.header.get("NAME", name)
    if kind[0] == "TSP" and (ways != ways.T).any():
        i, j = np.argwhere(ways != ways.T)[0].tolist()
        raise NeurouteError(
            f"{where}: {ways[i, j]} from node {i + 1} to {j + 1}, {ways[j, i]} back; a TSP is symmetric: is TYPE "
            "ATSP meant?"
        )
    if TYPES[kind[0]] == "tsp":
        return MatrixInstance(name, ways)
    capacity, demand, order = loads(parts, list(range(1, len(ways) + 1)))
    return MatrixInstance(name, ways[np.ix_(order, order)], demand, capacity)


def _matrix(parts: Sections) -> np.ndarray:
    """Return distances (n, n) int64, 0 on the diagonal."""
    where = parts.where
    form, dimension = parts.header.get("EDGE_WEIGHT_FORMAT", "nothing"), parts.header.get("DIMENSION", "nothing")
    n = whole(dimension)
    if n is None or n < FEWEST_NODES:
        raise NeurouteError(f"{where}: DIMENSION says {dimension[:60]}; give a whole number from {FEWEST_NODES} on")
    if form not in FORMATS:
        raise NeurouteError(f"{where}: EDGE_WEIGHT_FORMAT {form} is not read; only {', '.join(FORMATS)} are")
    full, (upper, diagonal) = form == "FULL_MATRIX", TRIANGLES.get(form, (True, True))
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
        rows = np.triu_indices(n, offset) if upper else np.tril_indices(n, -offset)
        ways[rows] = values
        ways = np.maximum(ways, ways.T)
    return _without_diagonal(ways, where)


def _without_diagonal(ways: np.ndarray, where: str) -> np.ndarray:
    """Return distances with 0 on the diagonal: what files have there stands for "never"."""
    np.fill_diagonal(ways, 0)
    if not ways.any():
        raise NeurouteError(f"{where}: all distances are 0; give at least one that is not")
    return ways


def matrix_instance(
    distances: np.ndarray, demand: np.ndarray | None, capacity: int | None, name: str
) -> MatrixInstance:
    """Return the instance of arrays (n, n) and (n,), the depot first.

    Raises NeurouteError if they are none, with the first reason.
    """
    values = np.array(distances, dtype=np.float64)
    n = len(values) if values.ndim else 0
    if values.shape != (n, n) or n < FEWEST_NODES:
        raise NeurouteError(f"{name}: distances of shape {values.shape}; give (n, n), with n from {FEWEST_NODES} on")
    np.fill_diagonal(values, 0)
    if (bad := _no_whole_numbers(values)).any():
        i, j = np.argwhere(bad)[0].tolist()
        raise NeurouteError(
            f"{name}: a distance of {values[i, j]:g} from node {i} to {j}; give whole numbers from 0 to {LARGEST:,} "
            "(scale others, and round them)"
        )
    ways = _without_diagonal(values.astype(np.int64), name)
    if demand is None and capacity is None:
        return MatrixInstance(name, ways)
    if demand is None or capacity is None:
        raise NeurouteError(f"{name}: demand and capacity make a CVRP together; give both or none")
    loads = np.array(demand, dtype=np.float64)
    if loads.shape != (n,) or _no_whole_numbers(loads).any() or loads[0]:
        raise NeurouteError(f"{name}: demand is ({n},) whole numbers from 0 on here, with 0 first, at the depot")
    if not 0 < capacity <= LARGEST or capacity % 1 or loads.max() > capacity:
        raise NeurouteError(
            f"{name}: a capacity of {capacity}; give a whole number that no demand is above ({loads.max():.0f})"
        )
    return MatrixInstance(name, ways, loads.astype(np.int64), int(capacity))


def _no_whole_numbers(values: np.ndarray) -> np.ndarray:
    """Whether each is no whole number from 0 to LARGEST."""
    inside = (values >= 0) & (values <= LARGEST)
    return np.asarray(~inside | (np.where(inside, values, 0) % 1 != 0))


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
