"""Savings (Clarke and Wright, 1964): routes of one customer each, joined end to end where that saves most.

Joining customers i and j saves d(0, i) + d(0, j) - w d(i, j), with w = 1 as published.  Another shape w makes routes
longer or rounder (Yellow, 1970); all of SHAPES are tried, and the shortest solution counts.  Of more than ALL_PAIRS
customers each is joined with one of its NEAREST first, then the ends of routes that are left with one of theirs, until
none can be: of the pairs farther apart hardly any saves enough to be taken.
"""

import time

import numba
import numpy as np

from neuroute.problems.cvrp import cost
from neuroute.problems.vrp import Vrp, from_routes
from neuroute.solvers.base import Solver, check_demands, installed_version

HOW_TO_GET = "run `pip install numba`"
ALL_PAIRS = 2000  # customers up to which all pairs are looked at
NEAREST = 100
SHAPES = tuple(w / 10 for w in range(7, 17))


def solve(coords: np.ndarray, seed: int, seconds: float | None = None) -> np.ndarray:
    """Return the tour (n,) of coords (n, 2): one route from node 0 that has room for all.  The seed is not used."""
    nodes = len(coords)
    (route,) = solve_cvrp(coords, np.minimum(np.arange(nodes), 1), nodes, seed, seconds)
    return np.array([0, *route])


def solve_cvrp(
    coords: np.ndarray, demand: np.ndarray, capacity: int, seed: int, seconds: float | None = None
) -> list[list[int]]:
    """Return routes of customers 1..n; coords (n + 1, 2) and demand (n + 1,), depot first.

    O(n^2 log n) time and O(n^2) memory up to ALL_PAIRS customers, about O(n log n) and O(n) beyond.  The seed is not
    used.  After so many seconds no further shape is tried; those near the published one then come first.  Raises
    NeurouteError if a customer demands more than the capacity.
    """
    check_demands("savings", demand, capacity)
    began, shapes = time.perf_counter(), SHAPES
    if seconds is not None:
        shapes = tuple(sorted(SHAPES, key=lambda shape: abs(shape - 1)))
    points, loads = np.asarray(coords, dtype=np.float64), np.asarray(demand, dtype=np.int64)
    instance = Vrp(points[None], loads[None], np.array([capacity]))
    pairs = _pairs(points, np.arange(1, len(points)))
    solutions = []
    for shape in shapes:
        routes = _routes(_join(points, pairs, loads, int(capacity), shape).tolist())
        solution = from_routes(routes)
        solutions.append((float(cost(instance, solution[None])[0]), routes))
        if seconds is not None and time.perf_counter() - began >= seconds:
            break
    return min(solutions, key=lambda each: each[0])[1]


def _pairs(points: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs of these customers that are looked at; the lower number comes first, and pairs in order."""
    count = len(ends)
    if count <= ALL_PAIRS:
        first, second = np.triu_indices(count, 1)
    else:
        from scipy.spatial import cKDTree  # a third of a second, which few instances need

        _, near = cKDTree(points[ends]).query(points[ends], NEAREST + 1)  # each is the nearest to itself, or level
        pair = np.repeat(np.arange(count), NEAREST + 1), near.reshape(-1)
        first, second = np.divmod(np.unique(np.minimum(*pair) * count + np.maximum(*pair)), count)
        first, second = first[first < second], second[first < second]
    return ends[first], ends[second]


def _join(
    points: np.ndarray, pairs: tuple[np.ndarray, np.ndarray], demand: np.ndarray, capacity: int, shape: float
) -> np.ndarray:
    """Return the two stops beside each customer (n + 1, 2) int64, 0 being the depot.

    Pairs that save most come first.  Where they are not all pairs, those of the ends that are left follow, until no two
    are joined.
    """
    out = np.sqrt(((points - points[0]) ** 2).sum(1))
    beside, load, above = np.zeros((len(demand), 2), np.int64), demand.copy(), np.arange(len(demand))
    ends = np.arange(1, len(demand))
    while True:
        first, second = pairs
        apart = np.sqrt(((points[first] - points[second]) ** 2).sum(1))
        by_saving = np.argsort(shape * apart - out[first] - out[second], kind="stable")
        joined = _link(first[by_saving], second[by_saving], capacity, beside, load, above)
        if len(ends) <= ALL_PAIRS or not joined:
            return beside
        ends = np.flatnonzero(beside[:, 1] == 0)[1:]
        pairs = _pairs(points, ends)


def _routes(beside: list[list[int]]) -> list[list[int]]:
    """Return routes, of the two stops beside each customer."""
    visited, routes = [False] * len(beside), list[list[int]]()
    for end in range(1, len(beside)):
        if visited[end] or 0 not in beside[end]:
            continue
        route, before, here = list[int](), 0, end
        while here:
            visited[here] = True
            route.append(here)
            one, other = beside[here]
            before, here = here, other if one == before else one
        routes.append(route)
    return routes


@numba.njit(cache=True)
def _link(
    first: np.ndarray,
    second: np.ndarray,
    capacity: int,
    beside: np.ndarray,  # (n + 1, 2): the stops beside each customer so far
    load: np.ndarray,  # (n + 1,): of its route, where the customer stands for it
    above: np.ndarray,  # (n + 1,): towards the customer that stands for its route
) -> int:
    """Join pairs, as they come, that are ends of two routes which one vehicle serves; return how many."""
    joined = 0
    for k in range(len(first)):
        i, j = first[k], second[k]
        if beside[i, 1] or beside[j, 1]:  # filled from the left: no end of a route
            continue
        a, b = i, j
        while above[a] != a:
            above[a] = above[above[a]]
            a = above[a]
        while above[b] != b:
            above[b] = above[above[b]]
            b = above[b]
        if a == b or load[a] + load[b] > capacity:
            continue
        above[b] = a
        load[a] += load[b]
        beside[i, 1 if beside[i, 0] else 0] = j
        beside[j, 1 if beside[j, 0] else 0] = i
        joined += 1
    return joined


SOLVER = Solver("savings", False, HOW_TO_GET, installed_version("numba", "savings", HOW_TO_GET), solve, solve_cvrp)
