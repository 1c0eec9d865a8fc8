"""Vehicle routing in the plane, from the CVRP to the 16 problems of MVMoE (Zhou et al., 2024): instances and solutions.

A solution of V customers is an array (2, V), the form in which LEHD (Luo et al., 2023) learns and builds it: row 0 the
customers 1..V in visiting order, row 1 how each is reached, 1 through the depot and 0 from the customer before it.
The first flag is therefore 1; each flag of 1 starts a route, which ends at the depot before the next one.  Open routes
do not drive there, so only the order of their customers counts, not the order of the routes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import product
from typing import NamedTuple

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
