"""The capacitated vehicle routing problem: a `Vrp` without switches, in forms that only it allows.

Routes may be turned around, and whole batches of solutions are checked without a loop over stops.
"""

from collections.abc import Sequence

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.problems.vrp import Vrp, distances, order_routes


def check_instances(instances: Vrp, where: str) -> None:
    """Raises NeurouteError, naming `where` and the instance, if one is no capacitated instance."""
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


def cost(instances: Vrp, solutions: np.ndarray) -> np.ndarray:
    """Euclidean length of solutions (batch, 2, V), all ways to and from the depot included: float64 (batch,).

    `vrp.lengths` adds the same ways in another order, so that the last digits may differ.
    """
    order, via = solutions[:, 0].astype(np.int64), solutions[:, 1].astype(bool)
    coords = instances.coords.astype(np.float64)
    points, depot = np.take_along_axis(coords, order[..., None], axis=1), coords[:, :1]
    before = np.concatenate([depot, points[:, :-1]], axis=1)
    out = distances(points, depot)
    through = np.concatenate([np.zeros_like(out[:, :1]), out[:, :-1]], axis=1) + out
    length: np.ndarray = np.where(via, through, distances(points, before)).sum(1) + out[:, -1]
    return length


def is_feasible(instances: Vrp, solutions: np.ndarray) -> np.ndarray:
    """Whether each of solutions (batch, 2, V) serves every customer once and overloads no route: bool (batch,)."""
    order, via = solutions[:, 0].astype(np.int64), solutions[:, 1]
    customers = instances.customers
    once = (np.sort(order, axis=1) == np.arange(1, customers + 1)).all(1)
    flags = (via[:, 0] == 1) & ((via == 0) | (via == 1)).all(1)
    served = np.take_along_axis(instances.demand, order.clip(0, customers), axis=1)
    route = (np.cumsum(via == 1, axis=1, dtype=np.int64) - 1).clip(0)  # of each stop, counted from 0
    route += np.arange(len(order))[:, None] * customers
    loads = np.bincount(route.ravel(), served.ravel(), order.size).reshape(order.shape)
    feasible: np.ndarray = once & flags & (loads <= instances.capacity[:, None]).all(1)
    return feasible


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


def canonical(solutions: np.ndarray) -> np.ndarray:
    """The same routes (batch, 2, V), each from the smaller of its two ends on, ordered by these ends."""
    order, via = solutions[:, 0], solutions[:, 1].astype(bool)
    # Positions of the first and of the last stop of each stop's route: flags (batch, V) -> two int64 (batch, V).
    size = via.shape[1]
    place = np.arange(size)
    closes = np.concatenate([via[:, 1:], np.ones_like(via[:, :1])], axis=1)
    first = np.maximum.accumulate(np.where(via, place, 0), axis=1)
    last = np.minimum.accumulate(np.where(closes, place, size - 1)[:, ::-1], axis=1)[:, ::-1]
    stop = np.arange(order.shape[1])
    head, tail = np.take_along_axis(order, first, axis=1), np.take_along_axis(order, last, axis=1)
    turned = np.take_along_axis(order, np.where(head > tail, first + last - stop, stop), axis=1)
    return order_routes(np.stack([turned, solutions[:, 1]], axis=1), np.minimum(head, tail))
