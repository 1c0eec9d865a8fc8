"""Files of TSPLIB and VRPLIB: instances (.tsp, .atsp, .vrp), in coordinates or in distances; tours and routes."""

import logging
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.core.text import printable
from neuroute.instances.instance import Instance
from neuroute.instances.sections import (
    VEHICLES,
    check_known,
    coord_rows,
    coordinates,
    edge_type_of,
    loads,
    matrix,
    read_text,
    real,
    split,
    whole,
)  # fmt: skip

log = logging.getLogger(__name__)
TSP_TYPES = ("EUC_2D", "CEIL_2D", "ATT", "GEO")
VRP_TYPES = ("EUC_2D", "CEIL_2D", "EXACT_2D")  # EXACT_2D (Li): Euclidean, never rounded
TYPES = {"TSP": "tsp", "ATSP": "tsp", "CVRP": "cvrp"}  # of files of distances


def is_explicit(path: Path) -> bool:
    """Whether a file is one of TSPLIB's or VRPLIB's that holds distances.  Raises NeurouteError if it is no text."""
    if path.suffix not in (".tsp", ".vrp") or not path.exists():
        return path.suffix == ".atsp"
    return split(read_text(path, "a TSPLIB or VRPLIB file"), str(path)).header.get("EDGE_WEIGHT_TYPE") == "EXPLICIT"


def read_tsplib(path: Path) -> Instance:
    """Return the instance of a .tsp file.

    Raises NeurouteError, naming file, line and mend, if it is no plain TSP in coordinates.
    """
    instance = parse_tsplib(read_text(path, "a TSPLIB .tsp file"), str(path), path.stem)
    _warn_of_coincident(str(path), instance)
    return instance


def parse_tsplib(text: str, where: str, name: str) -> Instance:
    """Return the instance of a .tsp file's text; `name` is for a file that states none."""
    parts = split(text, where)
    edge_type = edge_type_of(parts, TSP_TYPES, "lkh, or concorde, hgs, insertion, nearest, ortools, pyvrp")
    kind = parts.header.get("TYPE", "TSP")
    if kind.split()[:1] != ["TSP"]:
        raise NeurouteError(f"{where}: TYPE {kind or 'nothing'} is not read; only symmetric TSP files are")
    check_known(parts, "NODE_COORD_SECTION")
    nodes, coords = coordinates(parts)
    numbers = None if nodes == list(range(1, len(nodes) + 1)) else np.array(nodes)
    name = parts.header.get("NAME", name)
    _check_rounding(coords, edge_type, where)
    return Instance(name, coords, distances=edge_type, library="tsplib", numbers=numbers)


def _check_rounding(coords: np.ndarray, edge_type: str, where: str) -> None:
    """Raises NeurouteError if distances are rounded to 0, 1 and 2 at most, so that lengths say nothing."""
    size = float(np.ptp(coords, axis=0).max())
    if edge_type in ("EUC_2D", "CEIL_2D", "ATT") and size <= 1:
        raise NeurouteError(
            f"{where}: its coordinates span {size:.3g}, and {edge_type} rounds distances to whole numbers; multiply "
            "them, by 10000 say, or write an .npz, whose distances are not rounded"
        )


def _warn_of_coincident(where: str, instance: Instance) -> None:
    """Warn of nodes on one point, which TSPLIB's own instances have."""
    coords, numbers = instance.coords, instance.numbers
    _, first, counts = np.unique(coords, axis=0, return_index=True, return_counts=True)
    if (counts > 1).any():
        one = coords[first[counts > 1][0]]
        same = np.flatnonzero((coords == one).all(axis=1))[:2]
        same = same + 1 if numbers is None else numbers[same]
        what = "%s: %d nodes lie on the point of another (first: the file's nodes %d and %d); kept as they are"
        log.warning(what, where, int((counts - 1).sum()), *same)


def read_vrplib(path: Path) -> Instance:
    """Return the instance of a .vrp file, row 0 the depot, wherever the file has it.

    Raises NeurouteError, naming file, line and mend, if it is no plain CVRP in coordinates.
    """
    return parse_vrplib(read_text(path, "a VRPLIB .vrp file"), str(path), path.stem)


def parse_vrplib(text: str, where: str, name: str) -> Instance:
    """Return the instance of a .vrp file's text; `name` is for a file that states none."""
    parts = split(text, where)
    kind = parts.header.get("TYPE")
    if kind is None:
        raise NeurouteError(f"{where}: no TYPE in the file; TYPE : CVRP is expected")
    if kind != "CVRP":
        raise NeurouteError(f"{where}: TYPE {kind or 'nothing'} is not read; only CVRP files are")
    edge_type = edge_type_of(parts, VRP_TYPES, "hgs, or nearest, ortools, pyvrp")
    check_known(parts, "NODE_COORD_SECTION", *VEHICLES)
    nodes, coords = coordinates(parts)
    capacity, demand, order = loads(parts, nodes)
    name = parts.header.get("NAME", name)
    _check_rounding(coords, edge_type, where)
    return Instance(name, coords[order], demand, capacity, distances=edge_type, library="cvrplib")


def parse_explicit(text: str, where: str, name: str) -> Instance:
    """Return the instance of the text of a file of distances; `name` is for a file that states none.

    Raises NeurouteError, naming `where` and the mend, if it is none.
    """
    parts = split(text, where)
    kind = parts.header.get("TYPE", "missing").split()[:1]
    if not kind or kind[0] not in TYPES:
        raise NeurouteError(f"{where}: TYPE {' '.join(kind) or 'nothing'} is not read; only {', '.join(TYPES)} are")
    # coordinates beside distances are for drawings
    check_known(parts, "EDGE_WEIGHT_SECTION", "NODE_COORD_SECTION", *(VEHICLES if TYPES[kind[0]] == "cvrp" else ()))
    ways = matrix(parts)
    name = parts.header.get("NAME", name)
    if kind[0] == "TSP" and (ways != ways.T).any():
        i, j = np.argwhere(ways != ways.T)[0].tolist()
        raise NeurouteError(
            f"{where}: {ways[i, j]} from node {i + 1} to {j + 1}, {ways[j, i]} back; a TSP is symmetric: is TYPE "
            "ATSP meant?"
        )
    if TYPES[kind[0]] == "tsp":
        return Instance(name, ways=ways, distances="EXPLICIT")
    capacity, demand, order = loads(parts, list(range(1, len(ways) + 1)))
    return Instance(name, None, demand, capacity, ways=ways[np.ix_(order, order)], distances="EXPLICIT")


def format_instance(instance: Instance, comment: str = "") -> str:
    """Return the text of a .tsp or .vrp file, whose coordinates read back as they are; nodes are numbered from 1."""
    about = f"COMMENT : {comment}\n" if comment else ""
    kind, capacity, more = "TSP", "", ""
    if instance.demand is not None:
        kind, capacity = "CVRP", f"CAPACITY : {instance.capacity}\n"
        demands = "\n".join(f"{i} {demand}" for i, demand in enumerate(instance.demand.tolist(), 1))
        more = f"DEMAND_SECTION\n{demands}\nDEPOT_SECTION\n1\n-1\n"
    return (
        f"NAME : {instance.name}\n{about}TYPE : {kind}\nDIMENSION : {instance.nodes}\n"
        f"EDGE_WEIGHT_TYPE : {instance.distances}\n{capacity}NODE_COORD_SECTION\n{coord_rows(instance.coords)}\n"
        f"{more}EOF\n"
    )


def read_tour(path: Path, instance: Instance) -> np.ndarray:
    """Return the tour (n,) int64 of a TSPLIB .tour file, as rows of the instance's coordinates.

    Raises NeurouteError if the file cannot be read, or the tour misses or repeats a node or is of another instance.
    """
    parts, n = split(read_text(path, "a TSPLIB .tour file"), str(path)), instance.n
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


def read_solution(path: Path) -> tuple[list[list[int]], float | None]:
    """Return routes of customers 1..n of a VRPLIB .sol file, and the cost that it states.

    Raises NeurouteError if there are no routes or a row cannot be read.
    """
    routes: list[list[int]] = []
    cost: float | None = None
    for number, raw in enumerate(read_text(path, "a VRPLIB .sol file").splitlines(), 1):
        key, _, value = raw.strip().partition(":")
        try:
            if key.lower().startswith("route"):
                customers = [whole(word) for word in value.split()]
                routes.append([customer for customer in customers if customer is not None])
                if None in customers:
                    raise ValueError
            elif key.lower().startswith("cost"):
                cost = real(raw.split()[-1])
                if not math.isfinite(cost):
                    raise ValueError
        except ValueError:
            raise NeurouteError(f"{path}, line {number}: expected `Route #k: customers` or `Cost c`") from None
    if not routes:
        raise NeurouteError(f"{path}: no line `Route #k: customers`; a VRPLIB .sol file is expected")
    return routes, cost


def format_tour(name: str, instance: Instance, tour: np.ndarray) -> str:
    """Return the text of a .tour file."""
    numbers = tour + 1 if instance.numbers is None else instance.numbers[tour]
    lines = "\n".join(map(str, numbers.tolist()))
    return printable(
        f"NAME : {name}\nCOMMENT : {instance.name}, length {instance.length(tour):.10g} ({instance.distances})\n"
        f"TYPE : TOUR\nDIMENSION : {len(tour)}\nTOUR_SECTION\n{lines}\n-1\nEOF\n"
    )


def format_solution(routes: Sequence[Sequence[int]], cost: float) -> str:
    """Return the text of a .sol file of routes of customers 1..n."""
    lines = (f"Route #{number}: {' '.join(map(str, route))}\n" for number, route in enumerate(routes, 1))
    return "".join(lines) + f"Cost {cost:.10g}\n"
