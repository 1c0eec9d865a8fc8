"""Nearest neighbour: always to the nearest node that may come next.  No label may be longer than what it gives."""

import numba
import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.problems.vrp import EPS, Vrp
from neuroute.solvers.base import Solver, check_demands, installed_version

HOW_TO_GET = "run `pip install numba`"
CHUNK = 2**20  # nodes of the VRP instances that are solved at a time


def solve(coords: np.ndarray, seed: int) -> np.ndarray:
    """Return the tour (n,) from node 0 over coords (n, 2).  O(n^2) time, O(n) memory; the seed is not used."""
    order, _, _ = _walk(np.asarray(coords, dtype=np.float64), np.zeros(len(coords), np.int64), 0)
    return np.concatenate([[0], order])


def tour_lengths(coords: np.ndarray) -> np.ndarray:
    """Return the lengths (count,) float64 of the tours over coords (count, n, 2)."""
    count, n, _ = coords.shape
    return _lengths(coords.astype(np.float64), np.zeros((count, n), np.int64), np.zeros(count, np.int64))


def solve_cvrp(coords: np.ndarray, demand: np.ndarray, capacity: int, seed: int) -> list[list[int]]:
    """Return routes of customers 1..n; coords (n + 1, 2) and demand (n + 1,), depot first.

    The vehicle drives to the nearest customer that fits, else to the depot.  O(n^2) time, O(n) memory; the seed is not
    used.  Raises NeurouteError if a customer demands more than the capacity.
    """
    check_demands("nearest", demand, capacity)
    order, via, _ = _walk(np.asarray(coords, dtype=np.float64), np.asarray(demand, dtype=np.int64), int(capacity))
    return [route.tolist() for route in np.split(order, np.flatnonzero(via)[1:]) if len(route)]


def cvrp_lengths(instances: Vrp) -> np.ndarray:
    """Return the lengths (count,) float64 of the routes of instances whose customers all fit."""
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
    """Return customers (n,) in visiting order, 1 where one is reached through the depot (n,), length of the routes.

    points (n + 1, 2); a customer alone never demands more than the capacity.  Of equally near customers the lowest
    comes first.  Without demands it is the tour of the TSP from node 0.
    """
    n = len(points) - 1
    order, via = np.zeros(n, np.int64), np.zeros(n, np.int64)
    waiting = np.arange(1, n + 1)  # waiting[:remaining] are the customers to serve, in no order
    x, y, need = points[1:, 0].copy(), points[1:, 1].copy(), demand[1:].copy()
    px, py, capacity_left = points[0, 0], points[0, 1], capacity
    remaining, length, fresh = n, 0.0, True  # fresh: the vehicle is at the depot
    while remaining:
        nearest, best = np.inf, -1
        for k in range(remaining):
            if need[k] <= capacity_left:
                d = (x[k] - px) * (x[k] - px) + (y[k] - py) * (y[k] - py)
                if d < nearest or (d == nearest and waiting[k] < waiting[best]):
                    nearest, best = d, k
        if best < 0:  # nothing fits
            dx, dy = points[0, 0] - px, points[0, 1] - py
            length += np.sqrt(dx * dx + dy * dy)
            px, py, capacity_left, fresh = points[0, 0], points[0, 1], capacity, True
            continue
        length += np.sqrt(nearest)
        px, py, capacity_left = x[best], y[best], capacity_left - need[best]
        order[n - remaining], via[n - remaining] = waiting[best], fresh
        fresh = False
        remaining -= 1
        waiting[best], x[best], y[best] = waiting[remaining], x[remaining], y[remaining]
        need[best] = need[remaining]
    dx, dy = points[0, 0] - px, points[0, 1] - py
    return order, via, length + np.sqrt(dx * dx + dy * dy)


def vrp_solutions(instances: Vrp) -> np.ndarray:
    """Return solutions (count, 2, V) int64 of any of the 16 problems, by the rules that networks keep to.

    Raises NeurouteError if a customer can be served by no vehicle.
    """
    size = max(1, CHUNK // (instances.customers + 1))
    parts = [_drive(instances[first : first + size]) for first in range(0, len(instances), size)]
    return np.concatenate([np.empty((0, 2, instances.customers), dtype=np.int64), *parts])


def _drive(instances: Vrp) -> np.ndarray:
    """Return what `vrp_solutions` does, all instances step by step at once."""
    count, customers, row = len(instances), instances.customers, np.arange(len(instances))
    demand, capacity = instances.demand, instances.capacity
    points = np.moveaxis(instances.coords.astype(np.float64), -1, 0).copy()  # (2, count, n + 1)
    home = np.zeros(demand.shape) if instances.open else _distance(points, points[..., :1])
    if instances.windows is not None and instances.service is not None:
        opens, closes = np.moveaxis(instances.windows.astype(np.float64), -1, 0).copy()
    order, via = np.zeros((2, count, customers), dtype=np.int64)
    closed = np.zeros(demand.shape, dtype=bool)
    closed[:, 0] = True
    current, served = np.zeros((2, count), dtype=np.int64)
    load, clock, length = _full(demand, closed, capacity), np.zeros(count), np.zeros(count)
    for _ in range(2 * customers):
        if (served == customers).all():
            break
        way = _distance(points, points[:, row, current, None])
        shut = closed | (demand > load[:, None]) | (load[:, None] - demand > capacity[:, None])
        if instances.limit is not None:
            shut |= length[:, None] + way + home > instances.limit[:, None] + EPS
        if instances.windows is not None and instances.service is not None:
            begins = np.maximum(clock[:, None] + way, opens)
            ends = begins + instances.service
            shut |= begins > closes + EPS
            if not instances.open:
                shut |= ends + home > closes[:, :1] + EPS
        stop = np.where(shut, np.inf, way).argmin(1)
        stop[shut.all(1)] = 0
        serves = stop > 0
        order[row[serves], served[serves]] = stop[serves]
        via[row[serves], served[serves]] = current[serves] == 0
        closed[row, stop] = True
        served += serves
        load = np.where(serves, load - demand[row, stop], _full(demand, closed, capacity))
        length = np.where(serves, length + way[row, stop], 0.0)
        if instances.windows is not None:
            clock = np.where(serves, ends[row, stop], 0.0)
        current = stop
    if (served < customers).any():
        which = int((served < customers).argmax())
        who = int((~closed[which]).argmax())
        raise NeurouteError(f"nearest: no vehicle can serve customer {who} of instance {which}; correct it")
    return np.stack([order, via], axis=1)


def _distance(points: np.ndarray, others: np.ndarray) -> np.ndarray:
    x, y = points - others
    return np.asarray(np.sqrt(x * x + y * y))


def _full(demand: np.ndarray, closed: np.ndarray, capacity: np.ndarray) -> np.ndarray:
    """Return the load (count,) that leaves the depot: the capacity, or 0 once there are only pick-ups left."""
    return np.where(((demand > 0) & ~closed).any(1), capacity, 0)


SOLVER = Solver("nearest", False, HOW_TO_GET, installed_version("numba", "nearest", HOW_TO_GET), solve, solve_cvrp)
