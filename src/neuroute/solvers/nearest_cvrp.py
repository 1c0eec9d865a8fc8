"""Nearest neighbour for the CVRP: the simplest routes, and the yardstick that no label may exceed."""

import numba
import numpy as np

from neuroute.problems.cvrp import Cvrp


def nearest_neighbour_lengths(instances: Cvrp) -> np.ndarray:
    """Lengths when the vehicle always goes to the nearest customer that fits, else to the depot: float64 (batch,)."""
    coords = instances.coords.astype(np.float64)
    return _lengths(coords, instances.demand.astype(np.int64), instances.capacity.astype(np.int64))


@numba.njit(cache=True)
def _lengths(coords: np.ndarray, demand: np.ndarray, capacity: np.ndarray) -> np.ndarray:
    lengths = np.empty(len(coords))
    for i in range(len(coords)):
        lengths[i] = _walk(coords[i], demand[i], capacity[i])
    return lengths


@numba.njit(cache=True)
def _walk(points: np.ndarray, demand: np.ndarray, capacity: int) -> float:
    """Length of the routes over points (n + 1, 2); a customer alone never demands more than the capacity."""
    n = len(points) - 1
    waiting = np.ones(n + 1, np.bool_)
    waiting[0] = False
    here, left, served, length = 0, capacity, 0, 0.0
    while served < n:
        nearest, best = np.inf, 0  # the depot, when nothing fits
        for k in range(1, n + 1):
            if waiting[k] and demand[k] <= left:
                dx, dy = points[k, 0] - points[here, 0], points[k, 1] - points[here, 1]
                if dx * dx + dy * dy < nearest:
                    nearest, best = dx * dx + dy * dy, k
        dx, dy = points[best, 0] - points[here, 0], points[best, 1] - points[here, 1]
        length += np.sqrt(dx * dx + dy * dy)
        here, left = best, left - demand[best]
        if best == 0:
            left = capacity
        else:
            waiting[best] = False
            served += 1
    dx, dy = points[0, 0] - points[here, 0], points[0, 1] - points[here, 1]
    return length + np.sqrt(dx * dx + dy * dy)
