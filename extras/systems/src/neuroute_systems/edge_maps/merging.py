"""A tour of a sparse map of edges: the best edges first, as long as they are parts of a tour; and 2-opt.

Scores of an edge are its probability in both directions, over its length (Graikos et al., 2022; Sun and Yang, 2023).
In print all pairs of nodes are sorted; pairs off the map, which come last and in any order there, join pieces here from
the end of one to the nearest end of another.
"""

import numba
import numpy as np

from neuroute.solvers.base import check_map

EPS = 1e-6  # of a gain of 2-opt, as published
TINY = 1e-12  # of a length that is divided by


def merge(coords: np.ndarray, neighbours: np.ndarray, heat: np.ndarray) -> np.ndarray:
    """Return the tour (n,) of coords (n, 2) by the probabilities heat (n, k) of edges to neighbours (n, k).

    Raises NeurouteError for a map that is not finite.
    """
    check_map(heat)
    points = np.ascontiguousarray(coords, dtype=np.float64)
    n, k = neighbours.shape
    tail, head = np.repeat(np.arange(n), k), neighbours.ravel()
    low, high = np.minimum(tail, head), np.maximum(tail, head)
    edges, place = np.unique(low * n + high, return_inverse=True)
    probability = np.bincount(place, heat.ravel().astype(np.float64), len(edges))
    low, high = edges // n, edges % n
    apart = np.sqrt(((points[low] - points[high]) ** 2).sum(axis=1))
    order = np.argsort(-probability / np.maximum(apart, TINY), kind="stable")
    tour: np.ndarray = _merge(points, low[order], high[order])
    return tour


@numba.njit(cache=True)
def _merge(points: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Take edges in their order where both ends are ends of different pieces; then join pieces, from node 0's on."""
    n = len(points)
    linked, other_end = np.full((n, 2), -1, np.int64), np.arange(n)
    for e in range(len(low)):
        a, b = low[e], high[e]
        if a == b or linked[a, 1] >= 0 or linked[b, 1] >= 0 or other_end[a] == b:
            continue
        linked[a, 1 if linked[a, 0] >= 0 else 0] = b
        linked[b, 1 if linked[b, 0] >= 0 else 0] = a
        u, v = other_end[a], other_end[b]
        other_end[u], other_end[v] = v, u
    tour, visited = np.empty(n, np.int64), np.zeros(n, np.bool_)
    here = 0  # an end of node 0's piece
    before = -1
    while linked[here, 1] >= 0:
        after = linked[here, 0] if linked[here, 0] != before else linked[here, 1]
        before, here = here, after
        if here == 0:
            break
    number = 0
    while True:
        before = -1
        while here >= 0:
            tour[number], visited[here] = here, True
            number += 1
            after = linked[here, 0] if linked[here, 0] != before else linked[here, 1]
            before, here = here, after
        if number == n:
            return tour
        nearest, here = np.inf, -1
        for node in range(n):
            if not visited[node] and linked[node, 1] < 0:
                x, y = points[node, 0] - points[before, 0], points[node, 1] - points[before, 1]
                if x * x + y * y < nearest:
                    nearest, here = x * x + y * y, node


@numba.njit(cache=True)
def two_opt(points: np.ndarray, start: np.ndarray, most: int) -> np.ndarray:
    """Improve a tour (n,) of points (n, 2) float64 by at most so many exchanges of two edges, each the best there is.

    O(n^2) time for each.
    """
    n, tour = len(start), start.copy()
    x, y = points[tour, 0].copy(), points[tour, 1].copy()
    edge = np.empty(n)
    for _ in range(most):
        for i in range(n):
            j = i + 1 if i + 1 < n else 0
            edge[i] = np.sqrt((x[i] - x[j]) ** 2 + (y[i] - y[j]) ** 2)
        best, first, last = -EPS, 0, 0
        for i in range(n - 2):
            ax, ay, bx, by = x[i], y[i], x[i + 1], y[i + 1]
            for j in range(i + 2, n if i else n - 1):
                k = j + 1 if j + 1 < n else 0
                change = np.sqrt((ax - x[j]) ** 2 + (ay - y[j]) ** 2) + np.sqrt((bx - x[k]) ** 2 + (by - y[k]) ** 2)
                change -= edge[i] + edge[j]
                if change < best:
                    best, first, last = change, i + 1, j
        if last == 0:
            break
        for values in (x, y):
            values[first : last + 1] = values[first : last + 1][::-1].copy()
        tour[first : last + 1] = tour[first : last + 1][::-1].copy()
    return tour
