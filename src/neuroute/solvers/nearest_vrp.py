"""Nearest neighbour for the 16 vehicle routing problems: of the customers that may come next the nearest."""

import numba
import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.problems.vrp import Vrp
from neuroute.problems.vrp_checker import EPS


def nearest_neighbour(instances: Vrp) -> np.ndarray:
    """Build solutions (count, 2, V) int64 that obey the rule "network"; a vehicle goes home if nobody else may come.

    float64, O(V^2) time per instance.  Raises NeurouteError if a customer cannot be served by a vehicle of its own.
    """
    count, customers = len(instances), instances.customers
    limit = np.full(count, np.inf) if instances.limit is None else instances.limit
    if instances.windows is None or instances.service is None:
        windows, service = np.zeros((count, customers + 1, 2)), np.zeros((count, customers + 1))
        windows[..., 1] = np.inf
    else:
        windows, service = instances.windows.astype(np.float64), instances.service.astype(np.float64)
    coords, demand = instances.coords.astype(np.float64), instances.demand.astype(np.int64)
    solutions = np.zeros((count, 2, customers), np.int64)
    for i in range(count):
        parts = (coords[i], demand[i], int(instances.capacity[i]), float(limit[i]), windows[i], service[i])
        if not _walk(*parts, bool(instances.switches.backhaul), instances.open, solutions[i]):
            raise NeurouteError(f"nearest: instance {i} has a customer that no vehicle can serve; leave it out")
    return solutions


@numba.njit(cache=True)
def _walk(
    points: np.ndarray,
    demand: np.ndarray,
    capacity: int,
    limit: float,
    windows: np.ndarray,
    service: np.ndarray,
    backhaul: bool,
    is_open: bool,
    solution: np.ndarray,
) -> bool:
    """Fill one solution (2, V); whether all could be served.  Of equally near customers the lowest comes first."""
    n = len(points)
    home = np.sqrt((points[:, 0] - points[0, 0]) ** 2 + (points[:, 1] - points[0, 1]) ** 2)
    visited = np.zeros(n, np.bool_)
    deliveries = (demand > 0).sum()
    place, load, clock, driven, served = 0, capacity if deliveries or not backhaul else 0, 0.0, 0.0, 0
    while served < n - 1:
        nearest, best = np.inf, 0
        for c in range(1, n):
            if visited[c] or demand[c] > load or (backhaul and load - demand[c] > capacity):
                continue
            way = np.sqrt((points[c, 0] - points[place, 0]) ** 2 + (points[c, 1] - points[place, 1]) ** 2)
            back = 0.0 if is_open else home[c]
            begins = max(clock + way, windows[c, 0])
            late = begins > windows[c, 1] + EPS
            if not is_open:
                late = late or begins + service[c] + back > windows[0, 1] + EPS
            if not late and driven + way + back <= limit + EPS and way < nearest:
                nearest, best = way, c
        if best == 0:
            if place == 0:
                return False
            place, clock, driven = 0, 0.0, 0.0
            load = capacity if deliveries or not backhaul else 0
            continue
        solution[0, served], solution[1, served] = best, place == 0
        clock = max(clock + nearest, windows[best, 0]) + service[best]
        driven += nearest
        load -= demand[best]
        deliveries -= demand[best] > 0
        visited[best] = True
        place, served = best, served + 1
    return True
