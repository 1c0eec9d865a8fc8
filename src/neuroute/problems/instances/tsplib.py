"""Files of TSPLIB and VRPLIB: instances (.tsp, .atsp, .vrp), in coordinates or in distances; tours and routes.

`TYPE` says what there is to solve, whatever the file's name ends in.  Solomon's files (.txt) have a name, a section
VEHICLE (number and capacity) and a section CUSTOMER with a row of seven numbers per node, the depot first; they are
taken as the published code of MVMoE takes them (Zhou et al., 2024).  The number of vehicles is not followed: neither
the environments nor MVMoE's Table 7 keep to it.
"""

import logging
import math
import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import dropwhile
from pathlib import Path
from typing import Any, cast

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.core.text import printable
from neuroute.problems.instances.arrays import LARGEST, check_distances, check_windows
from neuroute.problems.instances.distances import HORIZON, closing_in_reach
from neuroute.problems.instances.instance import Instance
from neuroute.problems.instances.sections import (
    NUMBER,
    NotRead,
    Parts,
    check_known,
    of_nodes,
    places,
    read_text,
    split,
    whole,
)
from neuroute.problems.tsp import FEWEST_NODES, check_coordinates
from neuroute.problems.vrp import LARGEST_LOAD, Vrp, check_instances

log = logging.getLogger(__name__)
# TYPE -> (edge types, keys and sections that are read beside those of all files)
_FLEET = ("CAPACITY", "VEHICLES", "DISTANCE", "SERVICE_TIME", "DEMAND_SECTION", "DEPOT_SECTION")
_PLANE = ("EUC_2D", "CEIL_2D", "EXACT_2D")
KINDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "TSP": ((*_PLANE, "ATT", "GEO", "EXPLICIT"), ()),
    "ATSP": (("EXPLICIT",), ()),
    "CVRP": ((*_PLANE, "EXPLICIT"), _FLEET),
    "ACVRP": (("EXPLICIT",), _FLEET),
    "CVRPTW": ((*_PLANE, "EXPLICIT"), (*_FLEET, "TIME_WINDOW_SECTION", "SERVICE_TIME_SECTION")),
}
KINDS["VRPTW"] = KINDS["CVRPTW"]
PICKUP = "pickup and delivery"
OTHERS = {
    "HCP": "a Hamiltonian cycle", "SOP": "a sequential ordering", "TOUR": "a tour alone", "MDVRP": "several depots",
    "PDTSP": PICKUP, "PDPTW": PICKUP, "VRPSPD": PICKUP, "OVRP": "open routes: see .npz", "VRPB": "backhauls: see .npz",
}  # fmt: skip
# What says nothing of what is solved; coordinates beside distances are for drawings
HARMLESS = ("NAME", "COMMENT", "TYPE", "DIMENSION", "DISPLAY_DATA_TYPE", "NODE_COORD_TYPE", "EDGE_WEIGHT_TYPE",
            "EDGE_WEIGHT_FORMAT", "DISPLAY_DATA_SECTION", "NODE_COORD_SECTION")  # fmt: skip
# What files of the plain CVRP may say, too (Christofides's and Li's sets), and learned solvers do not follow
LIMITS = {"DISTANCE": "its limit on the length of a route", "SERVICE_TIME": "its time at each customer",
          "VEHICLES": "its number of vehicles"}  # fmt: skip
FORMATS = ("FULL_MATRIX", "UPPER_ROW", "LOWER_COL", "LOWER_ROW", "UPPER_COL", "UPPER_DIAG_ROW", "LOWER_DIAG_COL",
           "LOWER_DIAG_ROW", "UPPER_DIAG_COL")  # fmt: skip


def parse(text: str, where: str, name: str, ignore: Collection[str] = ()) -> Instance:
    """Return the instance of a file's text, row 0 the depot, wherever the file has it.

    name: for a file that states none; ignore: keys and sections that are left out.  Solomon's files are read, too.
    Raises NotRead, naming `where`, for another problem, and NeurouteError, with line and mend, for no whole instance.
    """
    if any(line.strip().upper() in HEADINGS for line in text.splitlines()):
        return parse_solomon(text, where, name)
    parts = split(text, where, ignore)
    kind, edge_type = _kind(parts), parts.header.get("EDGE_WEIGHT_TYPE", "").upper()
    edge_types, more = KINDS[kind]
    is_explicit, has_vehicles = edge_type == "EXPLICIT", bool(more)
    no_matrix = edge_type in edge_types and not is_explicit
    check_known(parts, (*HARMLESS, *more, *([] if no_matrix else ["EDGE_WEIGHT_SECTION"])), kind)
    if edge_type not in edge_types:
        what = f"EDGE_WEIGHT_TYPE {edge_type[:60]} is not read with TYPE {kind}" if edge_type else "no EDGE_WEIGHT_TYPE"
        raise NotRead(f"{where}: {what}; one of {', '.join(edge_types)} is expected")
    name = parts.header.get("NAME", name)
    ways = coords = None
    if is_explicit:
        ways = _matrix(parts, kind)
        nodes = list(range(1, len(ways) + 1))
    else:
        section = "NODE_COORD_SECTION"
        table, dimension = parts.table(section), parts.header.get("DIMENSION", "")
        nodes = list(places(parts, section, table, "coordinates"))
        if whole(dimension) != len(nodes):
            raise NeurouteError(
                f"{parts.where}: DIMENSION says {dimension[:60] or 'nothing'}, but {len(nodes)} nodes have "
                "coordinates; is the file cut short?"
            )
        check_coordinates(table[:, 1:], parts.where)
        nodes, coords = nodes, table[:, 1:]
        size = float(np.ptp(coords, axis=0).max())
        if size <= 1 and edge_type in ("EUC_2D", "CEIL_2D", "ATT") and "TIME_WINDOW_SECTION" not in more:
            raise NeurouteError(
                f"{where}: coordinates span {size:.3g}, and {edge_type} rounds distances to whole numbers; multiply "
                "them by 10000, say, or write EXACT_2D"
            )
    library = "" if is_explicit else "cvrplib" if has_vehicles else "tsplib"
    instance = Instance(name, coords, ways=ways, distances=edge_type, library=library, ignored=parts.ignored)
    if not has_vehicles:
        return instance if nodes == list(range(1, len(nodes) + 1)) else replace(instance, numbers=np.array(nodes))
    capacity, demand, order = _loads(parts, nodes)
    points, ways = (None if coords is None else coords[order]), (None if ways is None else ways[np.ix_(order, order)])
    instance = replace(instance, points=points, demand=demand, capacity=capacity, ways=ways)
    return instance if "TIME_WINDOW_SECTION" not in more else _with_windows(parts, instance, nodes, order)


def _kind(parts: Parts) -> str:
    """Return what there is to solve: the first word of TYPE.  Raises NotRead for what is none of `KINDS`."""
    text = parts.header.get("TYPE")
    if text is None:
        kinds = {"TIME_WINDOW_SECTION": "CVRPTW", "DEMAND_SECTION": "CVRP"}
        return next((kind for section, kind in kinds.items() if section in parts.rows), "TSP")
    kind = (re.match(r"[A-Za-z0-9_-]*", text) or [""])[0].upper()
    if kind in ("CVRP", "ACVRP") and "TIME_WINDOW_SECTION" in parts.rows:
        return "CVRPTW"  # as some files of the field say it
    if kind not in KINDS:
        what = f"{kind or text[:60] or 'nothing'}{f' ({OTHERS[kind]})' if kind in OTHERS else ''}"
        raise NotRead(f"{parts.where}: TYPE {what} is not read; {', '.join(KINDS)} are")
    return kind


def _loads(parts: Parts, nodes: list[int]) -> tuple[int, np.ndarray, np.ndarray]:
    """Return the capacity, the demands (n + 1,), depot first, and the order that brings the depot to the front."""
    where, number = parts.where, parts.header.get("CAPACITY", "")
    has_windows = "TIME_WINDOW_SECTION" in parts.rows
    limits = {key: parts.header[key] for key in LIMITS if key in parts.header and not (has_windows and "TIME" in key)}
    if limits:
        ignored = " and ".join(f"{LIMITS[key]} ({value[:60]})" for key, value in limits.items())
        log.warning("%s: %s is ignored; routes are as many and as long as they need be", where, ignored)
    capacity = whole(number)
    if not capacity:
        raise NeurouteError(
            f"{where}: CAPACITY says {number[:60] or 'nothing'}; give a whole number above 0, of at most 9 digits"
        )
    demand = of_nodes(parts, "DEMAND_SECTION", nodes, "demand", LARGEST)[:, 0].astype(np.int64)
    depots = [number for number in parts.table("DEPOT_SECTION")[:, 0].tolist() if number != -1]
    if len(depots) != 1 or depots[0] not in nodes:
        names = " ".join(f"{number:g}" for number in depots)[:60] or "no node"
        raise NeurouteError(f"{where}: DEPOT_SECTION names {names}; one node is expected")
    depot = nodes.index(int(depots[0]))
    if demand[depot]:
        raise NeurouteError(f"{where}: the depot, node {nodes[depot]}, has a demand of {demand[depot]}; it must be 0")
    if demand.max() > capacity:
        most = nodes[int(demand.argmax())]
        raise NeurouteError(f"{where}: node {most} demands {demand.max()}, more than the capacity {capacity}; split it")
    order = np.array([depot, *(i for i in range(len(nodes)) if i != depot)])
    return capacity, demand[order], order


def _with_windows(parts: Parts, instance: Instance, nodes: list[int], order: np.ndarray) -> Instance:
    """Return the instance with its windows and times of service, which SERVICE_TIME may state for all customers."""
    largest = None if instance.ways is None else LARGEST  # distances are whole, and so is what is added to them
    windows = of_nodes(parts, "TIME_WINDOW_SECTION", nodes, "window", largest)[order]
    if "SERVICE_TIME_SECTION" in parts.rows:
        service = of_nodes(parts, "SERVICE_TIME_SECTION", nodes, "service time", largest)[order, 0]
    else:
        text = parts.header.get("SERVICE_TIME", "0")
        if not (NUMBER.fullmatch(text) if largest is None else whole(text) is not None):
            kind = "number" if largest is None else "whole number"
            raise NeurouteError(f"{parts.where}: SERVICE_TIME says {text[:60] or 'nothing'}; give a {kind}")
        service = np.full(len(nodes), float(text))
        service[0] = 0
    if instance.ways is not None:
        check_windows(instance.ways, windows, service, parts.where)
        return replace(instance, windows=windows, service=service, is_vrp=True)
    if instance.distances != "EXACT_2D":
        log.warning("%s: %s is taken as EXACT_2D: ways take the time that they are long, not rounded", parts.where,
                    instance.distances)  # fmt: skip
    timed = replace(instance, windows=windows, service=service, distances="EXACT_2D", is_vrp=True)
    return as_solomon(timed, parts.where)


def _matrix(parts: Parts, kind: str) -> np.ndarray:
    """Return distances (n, n) int64, 0 on the diagonal.  Raises NeurouteError if the section holds none."""
    where = parts.where
    form, dimension = parts.header.get("EDGE_WEIGHT_FORMAT", "nothing"), parts.header.get("DIMENSION", "nothing")
    n = whole(dimension)
    if n is None or n < FEWEST_NODES:
        raise NeurouteError(f"{where}: DIMENSION says {dimension[:60]}; give a whole number from {FEWEST_NODES} on")
    if form.upper() not in FORMATS:
        raise NotRead(f"{where}: EDGE_WEIGHT_FORMAT {form[:60]} is not read; only {', '.join(FORMATS)} are")
    form = form.upper()
    full, diagonal = form == "FULL_MATRIX", "DIAG" in form
    expected = n * n if full else n * (n + 1) // 2 if diagonal else n * (n - 1) // 2
    values = parts.table("EDGE_WEIGHT_SECTION")[:, 0]
    if len(values) != expected:
        raise NeurouteError(
            f"{where}: {len(values):,} numbers in EDGE_WEIGHT_SECTION; {form} of {n} nodes has {expected:,}; is the "
            "file cut short?"
        )
    ways = np.zeros((n, n))
    if full:
        ways[:] = values.reshape(n, n)
    else:
        offset = 0 if diagonal else 1
        upper = form.startswith("UPPER") == form.endswith("ROW")  # by columns a triangle is the other one by rows
        ways[np.triu_indices(n, offset) if upper else np.tril_indices(n, -offset)] = values
        ways = np.where(ways != 0, ways, ways.T)
    ways, _ = check_distances(ways, None, None, where)
    if kind == "TSP" and (ways != ways.T).any():
        i, j = np.argwhere(ways != ways.T)[0].tolist()
        raise NeurouteError(
            f"{where}: {ways[i, j]} from node {i + 1} to {j + 1}, {ways[j, i]} back; a TSP is symmetric: is TYPE "
            "ATSP meant?"
        )
    return ways


def format_instance(instance: Instance, comment: str = "") -> str:
    """Return the text of a .tsp or .vrp file, whose coordinates read back as they are; nodes are numbered from 1."""
    about = f"COMMENT : {comment}\n" if comment else ""
    kind, capacity, more = "TSP", "", ""
    if instance.demand is not None:
        kind, capacity = "CVRP", f"CAPACITY : {instance.capacity}\n"
        demands = "\n".join(f"{i} {demand}" for i, demand in enumerate(instance.demand.tolist(), 1))
        more = f"DEMAND_SECTION\n{demands}\nDEPOT_SECTION\n1\n-1\n"
    points = ((int(x) if x % 1 == 0 else x for x in row) for row in instance.coords.tolist())
    rows = "\n".join(f"{i} {x!r} {y!r}" for i, (x, y) in enumerate(points, 1))
    return (
        f"NAME : {instance.name}\n{about}TYPE : {kind}\nDIMENSION : {instance.nodes}\n"
        f"EDGE_WEIGHT_TYPE : {instance.distances}\n{capacity}NODE_COORD_SECTION\n{rows}\n{more}EOF\n"
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
    nodes = parts.table("TOUR_SECTION")[:, 0]
    tour = nodes[: int(np.argmax([*(nodes == -1), True]))]
    if (nodes[len(tour) :] != -1).any():
        raise NeurouteError(f"{path}: nodes after the end (-1) of the tour; keep one tour in a file")
    if len(unknown := tour[~np.isin(tour, numbers)]):
        raise NeurouteError(f"{path}: there is no node {unknown[0]:g} in {instance.name}")
    order = np.argsort(numbers)
    rows = order[np.searchsorted(numbers, tour, sorter=order)]
    if (wrong := np.flatnonzero((visits := np.bincount(rows, minlength=n)) != 1)).size:
        node = wrong[0]
        raise NeurouteError(f"{path}: node {numbers[node]} is visited {visits[node]} times; once is meant")
    return np.asarray(rows, dtype=np.int64)


def read_solution(path: Path) -> tuple[list[list[int]], float | None]:
    """Return routes of customers 1..n of a VRPLIB .sol file, and the cost that it states.

    Raises NeurouteError if there are no routes or a row cannot be read.
    """
    routes: list[list[int]] = []
    cost: float | None = None
    for line, raw in enumerate(read_text(path, "a VRPLIB .sol file").splitlines(), 1):
        key, _, value = raw.strip().lower().partition(":")
        customers = [whole(word) for word in value.split()] if key.startswith("route") else []
        figure = raw.split()[-1] if key.startswith("cost") else "0"
        if None in customers or not NUMBER.fullmatch(figure) or math.isinf(float(figure)):
            raise NeurouteError(f"{path}, line {line}: expected `Route #k: customers` or `Cost c`")
        if key.startswith("route"):
            routes.append([customer for customer in customers if customer is not None])
        cost = float(figure) if key.startswith("cost") else cost
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


HEADINGS = ("VEHICLE", "CUSTOMER")


def parse_solomon(text: str, where: str, name: str) -> Instance:
    """Return the instance of a file's text; `name` is for a file that states none, `where` for messages.

    Raises NeurouteError, naming file, line and mend, if it is no whole instance that can be served.
    """
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    headings = {line.upper(): place for place, (_, line) in enumerate(lines) if line.upper() in HEADINGS}
    if len(headings) < 2:
        raise NeurouteError(f"{where}: no sections VEHICLE and CUSTOMER; one of Solomon's .txt files is expected")
    vehicle, customer = (headings[each] for each in HEADINGS)
    sections = (lines[vehicle + 1 : customer], lines[customer + 1 :])
    rows = [list(dropwhile(lambda line: line[1][0].isalpha(), section)) for section in sections]  # names of columns
    parts = Parts(where, {}, dict(zip(HEADINGS, rows, strict=True)))
    fleet, table = (parts.table(each) for each in HEADINGS)
    if len(fleet) != 1 or (fleet % 1 != 0).any() or not 0 < fleet[0, 1] <= LARGEST_LOAD:
        raise NeurouteError(f"{where}: section VEHICLE needs one row `vehicles capacity`, in whole numbers")
    vehicles, capacity = fleet[0].astype(np.int64).tolist()
    if len(table) < 2:
        raise NeurouteError(f"{where}: {len(table)} rows in section CUSTOMER; the depot and its customers are expected")
    wrong = (table[:, 0] != np.arange(len(table))) | (table[:, 3] % 1 != 0) | ~(np.abs(table[:, 3]) <= LARGEST_LOAD)
    if wrong.any() or not np.isfinite(table).all():
        row = int(np.argmax(wrong | ~np.isfinite(table).all(1)))
        raise NeurouteError(
            f"{parts.line('CUSTOMER', row)}: row {row} is `{parts.rows['CUSTOMER'][row][1][:60]}`; nodes are numbered "
            f"from 0 on, and demands are whole numbers up to {LARGEST_LOAD:,}"
        )
    title = re.match(r"\s*\S+ of (\d+) customers *\n", text)  # of our own files; Solomon's say no number
    if title and whole(title[1]) != len(table) - 1:
        raise NeurouteError(
            f"{where}: {len(table) - 1} customers, not {title[1][:20]} as stated; is the file cut short?"
        )
    if not text.endswith("\n"):
        raise NeurouteError(f"{where}: its last line does not end: cut short?  If not, end the line")
    name = lines[0][1].split()[0] if vehicle else name
    windows = Instance(
        name, table[:, 1:3], table[:, 3].astype(np.int64), capacity, windows=table[:, 4:6], service=table[:, 6],
        vehicles=vehicles, is_vrp=True,
    )  # fmt: skip
    return as_solomon(windows, where)


def as_solomon(instance: Instance, where: str) -> Instance:
    """Return an instance with time windows by Solomon's rules.  Raises NeurouteError if it cannot be served."""
    coords, windows = instance.coords, closing_in_reach(instance.vrp)
    assert windows is not None
    # Coordinates come into [0, 1], times into [0, 3].
    scale = max(float(coords.max()), float(windows[0, 0, 1]) / HORIZON)
    fills = np.ptp(coords) >= np.abs(coords).max() / 10  # others are moved, too
    instance = replace(instance, library="solomon", scale=scale if fills else None)
    check_instances(instance.vrp, where)
    check_instances(cast(Vrp, instance.inputs()), f"{where}, as networks take it (in the unit square, float32)")
    return instance


def format_solomon(instance: Instance) -> str:
    """Return the text of a file, with a vehicle for each customer; numbers read back as they are."""
    n, vrp = instance.n, instance.vrp
    columns: list[Any] = [vrp.coords[0], vrp.demand[0], instance.windows, instance.service]
    table = np.column_stack(columns)
    rows = "\n".join(
        f"{i:5} {' '.join(f'{int(v) if v % 1 == 0 else v!r:>10}' for v in row)}" for i, row in enumerate(table.tolist())
    )
    return (
        f"{instance.name} of {n} customers\n\nVEHICLE\nNUMBER     CAPACITY\n{n:4} {instance.capacity:12}\n\nCUSTOMER\n"
        f"CUST NO.  XCOORD.   YCOORD.    DEMAND   READY TIME  DUE DATE   SERVICE   TIME\n\n{rows}\n"
    )
