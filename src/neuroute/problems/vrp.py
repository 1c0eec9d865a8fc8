"""Vehicle routing in the plane, from the CVRP to the 16 problems of MVMoE (Zhou et al., 2024): instances and solutions.

A solution of V customers is an array (2, V), the form in which LEHD (Luo et al., 2023) learns and builds it: row 0 the
customers 1..V in visiting order, row 1 how each is reached, 1 through the depot and 0 from the customer before it.
The first flag is therefore 1; each flag of 1 starts a route, which ends at the depot before the next one.  Open routes
do not drive there, so only the order of their customers counts, not the order of the routes.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import product
from typing import Literal, NamedTuple, get_args

import numpy as np

from neuroute.core.errors import NeurouteError

# -- The 16 vehicle routing problems of MVMoE (Zhou et al., 2024, Table 3): four switches on top of the CVRP, by name
# Any combination of the switches is a problem; nothing here, nor in the environment, is made for one of them.


class Switches(NamedTuple):
    """What holds besides the capacity."""

    open: bool = False  # O: a vehicle does not drive home
    backhaul: bool = False  # B: some customers have goods to be picked up
    limit: bool = False  # L: no route is longer than a limit
    windows: bool = False  # TW: service takes time, and begins within a window


def _name(switches: Switches) -> str:
    extras = ("B" * switches.backhaul) + ("L" * switches.limit) + ("TW" * switches.windows)
    return "O" * switches.open + "VRP" + extras if any(switches) else "CVRP"


SWITCHES: dict[str, Switches] = {_name(s): s for s in (Switches(*on) for on in product((False, True), repeat=4))}


class Variant(str):
    """The name of a variant.  Raises NeurouteError, with the names that are near, for any other text."""

    __slots__ = ()

    def __new__(cls, name: str) -> "Variant":
        if name not in SWITCHES:
            near = get_close_matches(str(name).upper(), SWITCHES, n=3, cutoff=0.5)
            meant = f"is {' or '.join(near)} meant?  All" if near else "all"
            raise NeurouteError(f"no routing problem '{name}'; {meant}: {', '.join(SWITCHES)}")
        return super().__new__(cls, name)

    @property
    def switches(self) -> Switches:
        return SWITCHES[self]


def variant_of(switches: Switches) -> Variant:
    """The variant in which these hold."""
    return Variant(_name(switches))


@dataclass(frozen=True)
class Vrp:
    """A batch of instances of V customers; row 0 of every array over nodes is the depot.  The CVRP has the first three.

    Loads are whole numbers, so that what fits is exact.  Vehicles are as many as it takes.  They drive at speed 1, so
    that a way takes as long as it is, and leave the depot at time 0.  `limit`, `windows` and `service` are in the unit
    of the coordinates; None where the problem has none.
    """

    coords: np.ndarray  # (count, 1 + V, 2) float32
    demand: np.ndarray  # (count, 1 + V) int64, 0 at the depot; below 0: as much is picked up (a backhaul)
    capacity: np.ndarray  # (count,) int64
    open: bool = False  # the way home is neither paid for nor part of the limits
    limit: np.ndarray | None = None  # (count,) float64, of the length of a route
    windows: np.ndarray | None = None  # (count, 1 + V, 2) float32: earliest and latest beginning of service
    service: np.ndarray | None = None  # (count, 1 + V) float32, 0 at the depot; there if windows are

    def __len__(self) -> int:
        return len(self.coords)

    def __getitem__(self, rows: slice | np.ndarray) -> "Vrp":
        limit, windows, service = (None if a is None else a[rows] for a in (self.limit, self.windows, self.service))
        coords, demand, capacity = self.coords[rows], self.demand[rows], self.capacity[rows]
        return Vrp(coords, demand, capacity, self.open, limit, windows, service)

    @property
    def customers(self) -> int:
        nodes: int = self.coords.shape[1]
        return nodes - 1

    @property
    def switches(self) -> Switches:
        """Of this batch: without a customer that has goods to be picked up, `backhaul` is off."""
        backhaul = bool((self.demand < 0).any())
        return Switches(self.open, backhaul, self.limit is not None, self.windows is not None)

    @property
    def variant(self) -> Variant:
        return variant_of(self.switches)


def lengths(instances: Vrp, solutions: np.ndarray) -> np.ndarray:
    """Euclidean length of solutions (count, 2, V): float64 (count,).  Open routes do not pay the way home."""
    order, starts = solutions[:, 0].astype(np.int64), solutions[:, 1].astype(bool)
    coords = instances.coords.astype(np.float64)
    points, depot = np.take_along_axis(coords, order[..., None], axis=1), coords[:, :1]
    before = np.where(starts[..., None], depot, np.concatenate([depot, points[:, :-1]], axis=1))
    total: np.ndarray = distances(points, before).sum(1)
    if instances.open:
        return total
    ends = np.concatenate([starts[:, 1:], np.ones_like(starts[:, :1])], axis=1)
    total = total + (distances(points, depot) * ends).sum(1)
    return total


def distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Euclidean distances (...) between points a and b (..., 2), the same on every machine."""
    # Not np.hypot: square root and product are exactly rounded everywhere.
    step = a - b
    length: np.ndarray = np.sqrt(step[..., 0] * step[..., 0] + step[..., 1] * step[..., 1])
    return length


def canonical(solutions: np.ndarray) -> np.ndarray:
    """The same routes (count, 2, V), ordered by their first customers; none is turned around, which may be late."""
    order, starts = solutions[:, 0], solutions[:, 1] == 1
    first = np.maximum.accumulate(np.where(starts, np.arange(order.shape[1]), 0), axis=1)
    return order_routes(solutions, np.take_along_axis(order, first, axis=1))


def order_routes(solutions: np.ndarray, by: np.ndarray) -> np.ndarray:
    """The same routes (count, 2, V) in the order of `by` (count, V), which is a customer of each stop's route."""
    # No customer is in two routes, so the stops of a route stay together, and a stable sort keeps their order.
    place = np.argsort(by, axis=1, kind="stable")
    return np.take_along_axis(solutions, place[:, None], axis=2)


def from_routes(routes: Sequence[Sequence[int]]) -> np.ndarray:
    """Routes of customers, without the depot -> one solution (2, V) int64; empty routes vanish."""
    served = [route for route in routes if len(route)]
    order = [customer for route in served for customer in route]
    via = [int(place == 0) for route in served for place in range(len(route))]
    return np.array([order, via], dtype=np.int64)


def to_routes(solution: np.ndarray) -> list[list[int]]:
    """One solution (2, V) -> its routes of customers, without the depot."""
    order, via = solution
    return [part.tolist() for part in np.split(order, np.flatnonzero(via)[1:])]


def angle_order(coords: np.ndarray) -> np.ndarray:
    """Return customers 1..n by their angle around the depot, row 0 of coords (n + 1, 2), from -pi upwards."""
    out = coords[1:].astype(np.float64) - coords[0]
    return 1 + np.argsort(np.arctan2(out[:, 1], out[:, 0]), kind="stable")


def number_of_starts(instances: Vrp) -> int:
    """Count the customers that solutions of these instances may start at, the most that one of them has.

    A customer with goods to be picked up is none, unless an instance has no others.
    """
    deliveries = (instances.demand[:, 1:] > 0).sum(1)
    return int(max(deliveries.max(initial=0), (deliveries == 0).any() * instances.customers))


Rule = Literal["network", "in order", "free start"]
EPS = 1e-5  # what the published environments allow times and lengths to exceed
ROUNDING = 1e-9  # sums of ways in another order


def valid(instances: Vrp, solutions: np.ndarray, rule: Rule = "network", tolerance: float = EPS) -> np.ndarray:
    """Whether each of solutions (count, 2, V) may be driven: bool (count,).

    tolerance: by how much, in units of the coordinates, a time or a length may be exceeded; 1e-3 for the published
    reference solutions, which come from integer grids.
    """
    return np.array([fault(instances, i, s, rule, tolerance) is None for i, s in enumerate(solutions)], dtype=bool)


def fault(instances: Vrp, row: int, solution: np.ndarray, rule: Rule = "network", tolerance: float = EPS) -> str | None:
    """The first reason why a solution (2, V) of instance `row` may not be driven, with the customer; None: it may."""
    if rule not in get_args(Rule):
        raise NeurouteError(f"no backhaul rule '{rule}'; there are: {', '.join(get_args(Rule))}")
    order, via = solution.tolist()
    customers = instances.customers
    for customer in order:
        if not 1 <= customer <= customers:
            return f"there is no customer {customer} among 1..{customers}"
    times = Counter(order)
    for customer in range(1, customers + 1):
        if times[customer] != 1:
            return f"customer {customer} is served {times[customer]} times"
    if via[0] != 1 or not set(via) <= {0, 1}:
        return "the flags are not 0 and 1, beginning with 1"
    demand = instances.demand[row].tolist()
    routes = to_routes(solution)
    for number, route in enumerate(routes):
        rest = routes[number:] if rule == "in order" else [route]
        empty = all(demand[c] <= 0 for each in rest for c in each)
        why = _load_fault([demand[c] for c in route], int(instances.capacity[row]), empty, rule == "free start")
        why = why or _drive_fault(instances, row, route, tolerance + ROUNDING)
        if why:
            place, reason = why
            return f"route {number + 1}, {f'customer {route[place]}' if place < len(route) else 'way home'}: {reason}"
    return None


def _load_fault(demands: list[int], capacity: int, empty: bool, free: bool) -> tuple[int, str] | None:
    """(which stop, why) of the first stop at which the vehicle carries less than nothing, or more than it may."""
    least, most = (0, capacity) if free else (0, 0) if empty else (capacity, capacity)
    for place, demand in enumerate(demands):  # the loads at which it may have been so far are an interval
        least, most = max(0, least - demand), min(capacity, most - demand)
        if least > most:
            return (
                place,
                f"more than the capacity {capacity}" if demand < 0 else "more than what is left in the vehicle",
            )
    return None


def _drive_fault(instances: Vrp, row: int, route: list[int], tolerance: float) -> tuple[int, str] | None:
    """(which stop, why) of the first stop that is too late or too far; the stop after all others is the depot."""
    place, clock, driven = instances.coords[row, 0].astype(np.float64), 0.0, 0.0
    for stop, node in enumerate(route if instances.open else [*route, 0]):
        there = instances.coords[row, node].astype(np.float64)
        way = float(np.sqrt(((there - place) ** 2).sum()))
        place, clock, driven = there, clock + way, driven + way
        if instances.limit is not None and driven > float(instances.limit[row]) + tolerance:
            return stop, f"a length of {driven:.6g}, more than the limit {float(instances.limit[row]):.6g}"
        if instances.windows is not None and instances.service is not None:
            opens, closes = (float(t) for t in instances.windows[row, node])
            clock = max(clock, opens)
            if clock > closes + tolerance:
                return stop, f"reached at {clock:.6g}, after its window closes at {closes:.6g}"
            clock += float(instances.service[row, node])
    return None


# -- Whether every customer of instances of the 16 vehicle routing problems can be served, by a vehicle of its own
# If so, a solution can always be completed: a vehicle drives only where it gets home from, and each of the
# customers that are left can be the only one of a route.

LARGEST_LOAD = 10**9  # of a demand or a capacity that users bring: sums of them are exact


def check_instances(instances: Vrp, where: str) -> None:
    """Raises NeurouteError, naming `where`, the instance and the customer, for what cannot be served."""
    nodes = instances.demand.shape
    if instances.coords.ndim != 3 or nodes != instances.coords.shape[:2] or instances.coords.shape[2] != 2:
        raise NeurouteError(
            f"{where}: coordinates {instances.coords.shape} and demands {nodes} do not fit; give (count, V + 1, 2) and "
            "(count, V + 1)"
        )
    if (instances.windows is None) != (instances.service is None):
        raise NeurouteError(f"{where}: time windows and service times belong together; give both or none")
    shapes = {"capacity": nodes[:1], "limit": nodes[:1], "windows": (*nodes, 2), "service": nodes}
    for name, shape in shapes.items():
        array = getattr(instances, name)
        if array is not None and array.shape != shape:
            raise NeurouteError(f"{where}: '{name}' has shape {array.shape}; give {shape}")
    _check_numbers(instances, where)
    demand, capacity = instances.demand, instances.capacity[:, None]
    faults = {
        "it demands more than the capacity; split it": demand > capacity,
        "its goods to be picked up are more than the capacity; split it": -demand > capacity,
    }
    out = np.sqrt(((instances.coords.astype(np.float64) - instances.coords[:, :1]) ** 2).sum(-1))
    if instances.limit is not None:
        way, there = (out, "there") if instances.open else (2 * out, "there and back")
        why = f"the way {there} alone is longer than the limit; raise it"
        faults[why] = way > instances.limit[:, None] + EPS
    if instances.windows is not None and instances.service is not None:
        opens, closes = (instances.windows[..., i].astype(np.float64) for i in (0, 1))
        faults["no vehicle gets there before its window closes; widen it"] = out > closes + EPS
        if not instances.open:
            back = np.maximum(out, opens) + instances.service + out
            why = "no vehicle that serves it is back before the depot closes; widen the depot's window"
            faults[why] = back > closes[:, :1] + EPS
    _refuse(faults, where)


def _check_numbers(instances: Vrp, where: str) -> None:
    faults = {
        "a coordinate is not a finite number; correct it": ~np.isfinite(instances.coords).all(-1),
        "the capacity is not above 0; give vehicles that carry something": instances.capacity <= 0,
        "the depot has a demand; give it 0": instances.demand[:, 0] != 0,
    }
    if instances.limit is not None:
        why = "the limit of a route is not a finite number above 0; correct it, or leave it out"
        faults[why] = ~((instances.limit > 0) & np.isfinite(instances.limit))
    if instances.windows is not None and instances.service is not None:
        opens, closes = instances.windows[..., 0], instances.windows[..., 1]
        faults |= {
            "a time of its window is no number; correct it": np.isnan(instances.windows).any(-1) | np.isposinf(opens),
            "its window closes before it opens; swap the two": closes < opens,
            "its service time is not a number from 0 on; correct it": ~(
                np.isfinite(instances.service) & (instances.service >= 0)
            ),
            "the depot has a service time; give it 0": instances.service[:, 0] != 0,
            "the depot does not open at 0, when vehicles leave; count time from there": opens[:, 0] != 0,
        }
    _refuse(faults, where)


def _refuse(faults: dict[str, np.ndarray], where: str) -> None:
    """For the first fault that there is, of its first instance and node.

    faults: why, and how to mend it -> bool (count, 1 + V) or (count,)
    """
    for why, bad in faults.items():
        if bad.any():
            instance, *node = np.argwhere(bad)[0].tolist()
            which = "" if not node else f", customer {node[0]}" if node[0] else ", the depot"
            raise NeurouteError(f"{where}, instance {instance}{which}: {why}")
