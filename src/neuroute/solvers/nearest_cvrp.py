"""Nearest neighbour for the CVRP: the simplest routes, and the yardstick that no label may exceed."""

import numba
import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.problems.vrp import Vrp


def solve_cvrp(coords: np.ndarray, demand: np.ndarray, capacity: int, seed: int) -> list[list[int]]:
    """Routes of customers 1..n; coords (n + 1, 2) and demand (n + 1,), depot first.

    The vehicle always goes to the nearest customer that fits, else to the depot.  The seed plays no part.  float64,
    O(n^2) time, O(n) memory.  Raises NeurouteError for a customer that demands more than the capacity.
    """
    if demand[1:].max(initial=0) > capacity:
        who = 1 + int(demand[1:].argmax())
        raise NeurouteError(f"nearest: customer {who} demands more than the capacity {capacity}; split it")
    order, via, _ = _walk(np.asarray(coords, dtype=np.float64), np.asarray(demand, dtype=np.int64), int(capacity))
    return [route.tolist() for route in np.split(order, np.flatnonzero(via)[1:]) if len(route)]


def nearest_neighbour_lengths(instances: Vrp) -> np.ndarray:
    """Lengths of the nearest-neighbour routes of instances whose customers all fit: float64 (batch,)."""
    coords = instances.coords.astype(np.float64)
    return _lengths(coords, instances.demand.astype(np.int64), instances.capacity.astype(np.int64))


@numba.njit(cache=True)
def _lengths(coords: np.ndarray, demand: np.ndarray, capacity: np.ndarray) -> np.ndarray:
    lengths = np.empty(len(coords))
    for i in range(len(coords)):
        lengths[i] = _walk(coords[i], demand[i], capacity[i])[2]
    return lengths


@numba.njit(cache=True)
def _walk(points: np.ndarray, demand: np.ndarray, capacity: int) -> tuple[np.ndarray, np.ndarray, float]:
    """(customers in visiting order, 1 where one is reached through the depot, length of the routes).

    points (n + 1, 2); a customer alone never demands more than the capacity.  Of equally near customers the lowest
    comes first.
    """
    n = len(points) - 1
    order, via = np.zeros(n, np.int64), np.zeros(n, np.int64)
    waiting = np.arange(1, n + 1)  # waiting[:remaining] are the customers to serve, in no order
    x, y, need = points[1:, 0].copy(), points[1:, 1].copy(), demand[1:].copy()
    px, py, left = points[0, 0], points[0, 1], capacity
    remaining, length, fresh = n, 0.0, True  # fresh: the vehicle is at the depot
    while remaining:
        nearest, best = np.inf, -1
        for k in range(remaining):
            if need[k] <= left:
                d = (x[k] - px) * (x[k] - px) + (y[k] - py) * (y[k] - py)
                if d < nearest or (d == nearest and waiting[k] < waiting[best]):
                    nearest, best = d, k
        if best < 0:  # nothing fits
            dx, dy = points[0, 0] - px, points[0, 1] - py
            length += np.sqrt(dx * dx + dy * dy)
            px, py, left, fresh = points[0, 0], points[0, 1], capacity, True
            continue
        length += np.sqrt(nearest)
        px, py, left = x[best], y[best], left - need[best]
        order[n - remaining], via[n - remaining] = waiting[best], fresh
        fresh = False
        remaining -= 1
        waiting[best], x[best], y[best] = waiting[remaining], x[remaining], y[remaining]
        need[best] = need[remaining]
    dx, dy = points[0, 0] - px, points[0, 1] - py
    return order, via, length + np.sqrt(dx * dx + dy * dy)
