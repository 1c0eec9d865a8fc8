"""The capacitated vehicle routing problem in the plane: instances, and the form, feasibility and length of solutions.

A solution of V customers is an array (2, V), the form in which LEHD (Luo et al., 2023) learns and builds it: row 0 the
customers 1..V in visiting order, row 1 how each is reached, 1 through the depot and 0 from the customer before it.
The first flag is therefore 1; each flag of 1 starts a route, which ends at the depot before the next one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from neuroute.core.errors import NeurouteError


@dataclass(frozen=True)
class Cvrp:
    """A batch of instances of V customers.  Loads are whole numbers, so that what fits is exact."""

    coords: np.ndarray  # (batch, V + 1, 2), row 0 the depot
    demand: np.ndarray  # (batch, V + 1) int64, 0 at the depot
    capacity: np.ndarray  # (batch,) int64

    def __len__(self) -> int:
        return len(self.coords)

    def __getitem__(self, rows: slice | np.ndarray) -> "Cvrp":
        return Cvrp(self.coords[rows], self.demand[rows], self.capacity[rows])

    @property
    def customers(self) -> int:
        return self.coords.shape[1] - 1


def check_instances(instances: Cvrp, where: str) -> None:
    """Raises NeurouteError, naming `where` and the instance, for what is no capacitated instance."""
    coords, demand, capacity = instances.coords, instances.demand, instances.capacity
    nodes = coords.shape[:2]
    if coords.ndim != 3 or coords.shape[-1] != 2 or demand.shape != nodes or capacity.shape != nodes[:1]:
        raise NeurouteError(
            f"{where}: coordinates {coords.shape}, demands {demand.shape} and capacities {capacity.shape} do not fit; "
            "give (count, V + 1, 2), (count, V + 1) and (count,)"
        )
    faults = {
        "a coordinate is not a finite number; correct it": ~np.isfinite(coords).all((1, 2)),
        "the depot (row 0) has a demand; give it 0": demand[:, 0] != 0,
        "a customer's demand is not above 0; correct it": (demand[:, 1:] <= 0).any(1),
        "a customer demands more than the capacity; split it": (demand > capacity[:, None]).any(1),
    }
    for why, bad in faults.items():
        if bad.any():
            raise NeurouteError(f"{where}, instance {int(bad.argmax())}: {why}")


def cost(instances: Cvrp, solutions: np.ndarray) -> np.ndarray:
    """Euclidean length of solutions (batch, 2, V), all ways to and from the depot included: float64 (batch,)."""
    order, via = solutions[:, 0].astype(np.int64), solutions[:, 1].astype(bool)
    coords = instances.coords.astype(np.float64)
    points, depot = np.take_along_axis(coords, order[..., None], axis=1), coords[:, :1]
    before = np.concatenate([depot, points[:, :-1]], axis=1)
    out = _distance(points, depot)
    through = np.concatenate([np.zeros_like(out[:, :1]), out[:, :-1]], axis=1) + out
    return np.where(via, through, _distance(points, before)).sum(1) + out[:, -1]


def _distance(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    # Not np.hypot: square root and product are exactly rounded everywhere.
    step = a - b
    return np.sqrt(step[..., 0] * step[..., 0] + step[..., 1] * step[..., 1])


def is_feasible(instances: Cvrp, solutions: np.ndarray) -> np.ndarray:
    """Whether each of solutions (batch, 2, V) serves every customer once and overloads no route: bool (batch,)."""
    order, via = solutions[:, 0].astype(np.int64), solutions[:, 1]
    customers = instances.customers
    once = (np.sort(order, axis=1) == np.arange(1, customers + 1)).all(1)
    flags = (via[:, 0] == 1) & ((via == 0) | (via == 1)).all(1)
    served = np.take_along_axis(instances.demand, order.clip(0, customers), axis=1)
    route = np.arange(len(order))[:, None] * customers + route_numbers(via == 1).clip(0)
    loads = np.bincount(route.ravel(), served.ravel(), order.size).reshape(order.shape)
    return once & flags & (loads <= instances.capacity[:, None]).all(1)


def route_numbers(via: np.ndarray) -> np.ndarray:
    """Which route each stop belongs to, counted from 0: flags (batch, V) -> int64 (batch, V)."""
    return np.cumsum(via, axis=1, dtype=np.int64) - 1


def canonical(solutions: np.ndarray) -> np.ndarray:
    """The same routes (batch, 2, V), each from the smaller of its two ends on, ordered by these ends."""
    order, via = solutions[:, 0], solutions[:, 1].astype(bool)
    first, last = _route_ends(via)
    stop = np.arange(order.shape[1])
    head, tail = np.take_along_axis(order, first, axis=1), np.take_along_axis(order, last, axis=1)
    turned = np.take_along_axis(order, np.where(head > tail, first + last - stop, stop), axis=1)
    # No customer is in two routes, so the stops of a route stay together, and a stable sort keeps their order.
    by_end = np.argsort(np.minimum(head, tail), axis=1, kind="stable")
    return np.stack([np.take_along_axis(a, by_end, axis=1) for a in (turned, solutions[:, 1])], axis=1)


def _route_ends(via: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the first and of the last stop of each stop's route: flags (batch, V) -> two int64 (batch, V)."""
    size = via.shape[1]
    stop = np.arange(size)
    closes = np.concatenate([via[:, 1:], np.ones_like(via[:, :1])], axis=1)
    first = np.maximum.accumulate(np.where(via, stop, 0), axis=1)
    last = np.minimum.accumulate(np.where(closes, stop, size - 1)[:, ::-1], axis=1)[:, ::-1]
    return first, last


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
