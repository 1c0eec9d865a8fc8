"""Hybrid genetic search (Vidal, 2022) through the package hygese, for CVRP; a TSP is a CVRP with one vehicle.

The budget is a number of iterations without improvement, not seconds: labels must not depend on the machine's load.
"""

import importlib
from typing import Any

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.solvers.base import Solver, installed_version

HOW_TO_GET = "run `pip install hygese`"
ITERATIONS = 2_000
MOST_ITERATIONS = 100_000
SPAN = 1_000.0  # HGS refuses distances of a very small scale


def version() -> str:
    return installed_version("hygese", "hgs", HOW_TO_GET)


def solve(coords: np.ndarray, seed: int, iterations: int = ITERATIONS) -> np.ndarray:
    """Return the best tour (n,) over coords (n, 2)."""
    (route,) = _search(seed, iterations).solve_tsp(_scaled(coords), rounding=False).routes
    return np.array([0, *route], dtype=np.int64)


def solve_cvrp(
    coords: np.ndarray, demand: np.ndarray, capacity: int, seed: int, iterations: int = ITERATIONS
) -> list[list[int]]:
    """Return the routes of the best solution with HGS's default fleet: 1.3 times what the demands fill, and 3 more.

    A search that meets no feasible solution (about one in a thousand of the short ones) is repeated, twice as long.
    Raises NeurouteError if the demands seem not to fit at all.
    """
    data = _scaled(coords) | {"demands": np.asarray(demand, dtype=np.float64), "vehicle_capacity": float(capacity)}
    while iterations <= MOST_ITERATIONS:
        best = _search(seed, iterations).solve_cvrp(data, rounding=False)
        if routes := [[int(customer) for customer in route] for route in best.routes if len(route)]:
            return routes
        iterations *= 2
    raise NeurouteError(f"hgs: no feasible routes in {MOST_ITERATIONS} iterations; check the demands")


def _search(seed: int, iterations: int) -> Any:
    hygese = importlib.import_module("hygese")
    return hygese.Solver(hygese.AlgorithmParameters(nbIter=iterations, seed=seed % 2**31), verbose=False)


def _scaled(coords: np.ndarray) -> dict[str, Any]:
    points = np.asarray(coords, dtype=np.float64)
    points = (points - points.min(axis=0)) * (SPAN / np.ptp(points, axis=0).max())
    return {"x_coordinates": points[:, 0], "y_coordinates": points[:, 1]}


SOLVER = Solver("hgs", False, HOW_TO_GET, version, solve, solve_cvrp)
# For training labels: within about 1 % of the full budget on 100 customers.
SHORT = SOLVER.variant("hgs-short", "solve", "solve_cvrp", iterations=100)
# The budget of MVMoE's published references.
LONG = SOLVER.variant("hgs-long", "solve", "solve_cvrp", iterations=20_000)
