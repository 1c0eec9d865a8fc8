"""Hybrid genetic search (Vidal, 2022) through the package hygese; a TSP is a CVRP with one vehicle.

The budget is a number of iterations without improvement, not seconds: labels must not depend on the machine's load.
"""

import importlib

import numpy as np

from neuroute.solvers.base import Solver, installed_version

HOW_TO_GET = "run `pip install hygese`"
ITERATIONS = 2_000
SPAN = 1_000.0  # HGS refuses distances of a very small scale


def version() -> str:
    return installed_version("hygese", "hgs", HOW_TO_GET)


def solve(coords: np.ndarray, seed: int) -> np.ndarray:
    """The best tour (n,) found over coords (n, 2)."""
    hygese = importlib.import_module("hygese")
    points = np.asarray(coords, dtype=np.float64)
    points = (points - points.min(axis=0)) * (SPAN / np.ptp(points, axis=0).max())
    search = hygese.Solver(hygese.AlgorithmParameters(nbIter=ITERATIONS, seed=seed % 2**31), verbose=False)
    found = search.solve_tsp({"x_coordinates": points[:, 0], "y_coordinates": points[:, 1]}, rounding=False)
    (route,) = found.routes
    return np.array([0, *route], dtype=np.int64)


SOLVER = Solver("hgs", False, HOW_TO_GET, version, solve)
