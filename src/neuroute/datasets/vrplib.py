"""VRPLIB files: capacitated instances (.vrp), their solutions (.sol), and what routes cost."""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.core.files import write_text
from neuroute.datasets.sections import (
    VEHICLES,
    Sections,
    check_known,
    coord_rows,
    coordinates,
    edge_type_of,
    read_text,
    real,
    split,
    whole,
)
from neuroute.datasets.tsplib import distances, scale_to_unit

log = logging.getLogger(__name__)
# What files of the plain CVRP may say, too (Christofides's and Li's sets), and learned solvers do not follow
LIMITS = {"DISTANCE": "its limit on the length of a route", "SERVICE_TIME": "its time at each customer",
          "VEHICLES": "its number of vehicles"}  # fmt: skip
EDGE_TYPES = ("EUC_2D", "CEIL_2D", "EXACT_2D")  # EXACT_2D (Li): Euclidean, never rounded


@dataclass(frozen=True)
class VrplibInstance:
    """A capacitated VRP instance in the file's own units; row 0 is the depot, wherever the file has it.

    Customers 1..n stand in the file's order.
    """

    name: str
    edge_type: str
    coords: np.ndarray  # (n + 1, 2) float64
    demand: np.ndarray  # (n + 1,) int64, 0 at the depot
    capacity: int

    def unit_square(self) -> np.ndarray:
        """Return float32 coordinates (n + 1, 2) in the unit square, the depot's included."""
        return scale_to_unit(self.coords)

    def cost(self, routes: Sequence[Sequence[int]], rounded: bool = True) -> float:
        """Return the length of routes of customers, depot to depot, in the library's distances or unrounded ones."""
        path = np.concatenate([[0, *route] for route in routes] + [[0]]).astype(np.int64)
        return float(distances(self.coords[path[:-1]], self.coords[path[1:]], self.edge_type, rounded).sum())

    def check(self, routes: Sequence[Sequence[int]], where: str) -> None:
        """Raises NeurouteError unless every customer is served once and no route carries more than the capacity."""
        check_routes(routes, self.demand, self.capacity, where)


def check_routes(routes: Sequence[Sequence[int]], demand: np.ndarray, capacity: int, where: str) -> None:
    """Do what `VrplibInstance.check` does, with demands (n + 1,)."""
    check_served(routes, len(demand) - 1, where)
    for number, route in enumerate(routes, 1):
        load = int(demand[list(route)].sum())
        if load > capacity:
            raise NeurouteError(f"{where}: route {number} carries {load}, more than the capacity {capacity}")


def check_served(routes: Sequence[Sequence[int]], n: int, where: str) -> None:
    """Raises NeurouteError unless each of customers 1..n is served once."""
    strange = next((c for route in routes for c in route if not 1 <= c <= n), None)
    if strange is not None:
        mend = "; leave the depot out of the routes" if strange == 0 else ""
        raise NeurouteError(f"{where}: there is no customer {strange} among 1..{n}{mend}")
    served = np.bincount([c for route in routes for c in route], minlength=n + 1)
    if (served[1:] != 1).any():
        customer = int(np.flatnonzero(served[1:] != 1)[0]) + 1
        raise NeurouteError(f"{where}: customer {customer} is served {served[customer]} times; once is meant")


def read_vrplib(path: Path) -> VrplibInstance:
    """Return the instance.  Raises NeurouteError, naming file, line and mend, if it is no plain CVRP instance."""
    return parse_vrplib(read_text(path, "a VRPLIB .vrp file"), str(path), path.stem)


def parse_vrplib(text: str, where: str, name: str) -> VrplibInstance:
    """Return the instance of a file's text; `name` is for a file that states none."""
    parts = split(text, where)
    kind = parts.header.get("TYPE")
    if kind is None:
        raise NeurouteError(f"{where}: no TYPE in the file; TYPE : CVRP is expected")
    if kind != "CVRP":
        raise NeurouteError(f"{where}: TYPE {kind or 'nothing'} is not read; only CVRP files are")
    edge_type = edge_type_of(parts, EDGE_TYPES, "hgs, or nearest, ortools, pyvrp")
    check_known(parts, "NODE_COORD_SECTION", *VEHICLES)
    nodes, coords = coordinates(parts)
    capacity, demand, order = loads(parts, nodes)
    return VrplibInstance(parts.header.get("NAME", name), edge_type, coords[order], demand, capacity)


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


def read_solution(path: Path) -> tuple[list[list[int]], float | None]:
    """Return routes of customers 1..n, and the cost that the file states.

    Raises NeurouteError if there are no routes or a row cannot be read.
    """
    routes: list[list[int]] = []
    cost: float | None = None
    for number, raw in enumerate(read_text(path, "a VRPLIB .sol file").splitlines(), 1):
        key, _, value = raw.strip().partition(":")
        try:
            if key.lower().startswith("route"):
                routes.append([_customer(word) for word in value.split()])
            elif key.lower().startswith("cost"):
                cost = real(raw.split()[-1])
                if not math.isfinite(cost):
                    raise ValueError
        except ValueError:
            raise NeurouteError(f"{path}, line {number}: expected `Route #k: customers` or `Cost c`") from None
    if not routes:
        raise NeurouteError(f"{path}: no line `Route #k: customers`; a VRPLIB .sol file is expected")
    return routes, cost


def _customer(word: str) -> int:
    """Raises ValueError if it is no whole number from 0 on."""
    if (customer := whole(word)) is None:
        raise ValueError(word)
    return customer


def write_solution(path: Path, routes: Sequence[Sequence[int]], cost: float) -> None:
    """Write routes of customers 1..n as a VRPLIB .sol file, with their cost, whole or not at all."""
    write_text(path, format_solution(routes, cost))


def format_solution(routes: Sequence[Sequence[int]], cost: float) -> str:
    """Return the text of a .sol file."""
    lines = (f"Route #{number}: {' '.join(map(str, route))}\n" for number, route in enumerate(routes, 1))
    return "".join(lines) + f"Cost {cost:.10g}\n"


def format_vrplib(instance: VrplibInstance, comment: str = "") -> str:
    """Return the text of a .vrp file, whose coordinates read back as they are; the depot is node 1."""
    about = f"COMMENT : {comment}\n" if comment else ""
    demands = "\n".join(f"{i} {demand}" for i, demand in enumerate(instance.demand.tolist(), 1))
    return (
        f"NAME : {instance.name}\n{about}TYPE : CVRP\nDIMENSION : {len(instance.coords)}\n"
        f"EDGE_WEIGHT_TYPE : {instance.edge_type}\nCAPACITY : {instance.capacity}\n"
        f"NODE_COORD_SECTION\n{coord_rows(instance.coords)}\nDEMAND_SECTION\n{demands}\n"
        f"DEPOT_SECTION\n1\n-1\nEOF\n"
    )
