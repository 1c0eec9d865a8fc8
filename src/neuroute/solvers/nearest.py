"""Nearest neighbour from node 0: the simplest tour, and the yardstick that no label may exceed.

For the CVRP see `nearest_cvrp`.
"""

import numba
import numpy as np

from neuroute.solvers.base import Solver, installed_version
from neuroute.solvers.nearest_cvrp import solve_cvrp

HOW_TO_GET = "run `pip install numba`"


def version() -> str:
    return installed_version("numba", "nearest", HOW_TO_GET)


def solve(coords: np.ndarray, seed: int) -> np.ndarray:
    """Tour (n,) of coords (n, 2): O(n^2) time, O(n) memory, float64; the seed plays no part."""
    return _walk(np.asarray(coords, dtype=np.float64))[0]


def nearest_neighbour_lengths(coords: np.ndarray) -> np.ndarray:
    """Lengths of the nearest-neighbour tours of coords (count, n, 2): float64 (count,)."""
    return _lengths(np.asarray(coords, dtype=np.float64))


@numba.njit(cache=True)
def _walk(points: np.ndarray) -> tuple[np.ndarray, float]:
    """(tour, length).  Of equally near nodes the lowest comes first."""
    n = len(points)
    tour = np.zeros(n, np.int64)
    left = np.arange(n)  # left[:remaining] are the unvisited nodes, in no order
    x, y = points[:, 0].copy(), points[:, 1].copy()
    px, py = x[0], y[0]
    remaining, here, length = n, 0, 0.0
    for step in range(n):
        remaining -= 1
        tour[step] = left[here]
        left[here], x[here], y[here] = left[remaining], x[remaining], y[remaining]
        if remaining == 0:
            break
        nearest = np.inf
        for k in range(remaining):
            d = (x[k] - px) * (x[k] - px) + (y[k] - py) * (y[k] - py)
            if d < nearest or (d == nearest and left[k] < left[here]):
                nearest, here = d, k
        length += np.sqrt(nearest)
        px, py = x[here], y[here]
    length += np.sqrt((px - points[0, 0]) ** 2 + (py - points[0, 1]) ** 2)
    return tour, length


@numba.njit(cache=True)
def _lengths(coords: np.ndarray) -> np.ndarray:
    lengths = np.empty(len(coords))
    for i in range(len(coords)):
        lengths[i] = _walk(coords[i])[1]
    return lengths


SOLVER = Solver("nearest", False, HOW_TO_GET, version, solve, solve_cvrp)
