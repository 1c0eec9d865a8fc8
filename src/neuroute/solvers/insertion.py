"""Random insertion: nodes in random order, each put where it lengthens the tour least (sit, Algorithms 1 and 2)."""

import numba
import numpy as np

from neuroute.solvers.base import Solver, installed_version

HOW_TO_GET = "run `pip install numba`"
BLOCK = 1024


def version() -> str:
    return installed_version("numba", "insertion", HOW_TO_GET)


def insertion_order(n: int, seed: int) -> np.ndarray:
    """A random permutation (n,) int64: the ranks of n Philox draws, the same under every numpy release."""
    return np.argsort(np.random.Philox(key=seed).random_raw(n), kind="stable")


def solve(coords: np.ndarray, seed: int) -> np.ndarray:
    """Tour (n,) of coords (n, 2): O(n^2) time, O(n) memory, float64."""
    order = insertion_order(len(coords), seed)
    return order[_insert(np.asarray(coords, dtype=np.float64)[order])]


def solve_cvrp(coords: np.ndarray, demand: np.ndarray, capacity: int, seed: int) -> list[list[int]]:
    """Routes of customers 1..n, inserted in random order; see `insertion_cvrp`."""
    from neuroute.solvers.insertion_cvrp import solve_cvrp as insert  # which takes the order from here

    return insert(coords, demand, capacity, seed, order="random")


@numba.njit(cache=True)
def _insert(points: np.ndarray) -> np.ndarray:
    """Insert points (n, 2) in the order given; the tour (n,) in positions of that order.

    `after[i]` is the successor of i.  Edges i -> after[i] are scanned in the order of i rather than along the
    tour, with both their ends side by side, so that memory is read in sequence; of equally cheap edges the first
    in that order is taken.
    """
    n = len(points)
    x, y = points[:, 0].copy(), points[:, 1].copy()
    after = np.zeros(n, np.int64)
    x_after, y_after, edge = np.empty(n), np.empty(n), np.empty(n)
    x_after[0], y_after[0], edge[0] = x[0], y[0], 0.0
    cost = np.empty(BLOCK)
    for node in range(1, n):
        px, py = x[node], y[node]
        best, where = np.inf, 0
        for first in range(0, node, BLOCK):
            size = min(BLOCK, node - first)
            for k in range(size):
                i = first + k
                dx, dy, ex, ey = x[i] - px, y[i] - py, x_after[i] - px, y_after[i] - py
                cost[k] = np.sqrt(dx * dx + dy * dy) + np.sqrt(ex * ex + ey * ey) - edge[i]
            least = np.inf
            for k in range(size):  # apart from the loop above, which the compiler then vectorises
                least = min(least, cost[k])
            if least < best:
                best = least
                for k in range(size):
                    if cost[k] == least:
                        where = first + k
                        break
        dx, dy = x[where] - px, y[where] - py
        ex, ey = x_after[where] - px, y_after[where] - py
        after[node], x_after[node], y_after[node] = after[where], x_after[where], y_after[where]
        edge[node] = np.sqrt(ex * ex + ey * ey)
        after[where], x_after[where], y_after[where] = node, px, py
        edge[where] = np.sqrt(dx * dx + dy * dy)
    tour = np.zeros(n, np.int64)
    for i in range(1, n):
        tour[i] = after[tour[i - 1]]
    return tour


SOLVER = Solver("insertion", False, HOW_TO_GET, version, solve, solve_cvrp)
