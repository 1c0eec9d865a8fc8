"""LKH-3 (Helsgaun) as the user's own binary `LKH`, through the package lkh."""

import importlib
import re
import shutil
from typing import Any

import numpy as np

from neuroute.errors import NeurouteError
from neuroute.solvers.base import Solver, installed_version, missing, on_grid, positive_seed, tsplib_text

HOW_TO_GET = (
    "download LKH-3 from http://webhotel4.ruc.dk/~keld/research/LKH-3, run `make`, put `LKH` on the PATH; "
    "free for academic use only"
)
RUNS = 1


def version() -> str:
    binary = shutil.which("LKH")
    if binary is None:
        raise missing("lkh3", HOW_TO_GET)
    return f"LKH ({installed_version('lkh', 'lkh3', 'run `pip install lkh`')})"


def solve(coords: np.ndarray, seed: int) -> np.ndarray:
    """The best tour (n,) of RUNS runs over coords (n, 2)."""
    (tour,) = _run(tsplib_text(coords), len(coords), seed)
    return np.array(tour, dtype=np.int64) - 1


def solve_cvrp(coords: np.ndarray, demand: np.ndarray, capacity: int, seed: int) -> list[list[int]]:
    """The routes of the best solution of RUNS runs, in HGS's default fleet, of which vehicles may stay at home.

    Never run with a real LKH here, whose licence keeps it from being installed with the package.
    """
    vehicles = int(np.ceil(1.3 * demand.sum() / capacity)) + 3
    routes = _run(_vrplib_text(coords, demand, capacity, vehicles), len(coords), seed, mtsp_min_size=0)
    return [[node - 1 for node in route] for route in routes if route]


def _run(text: str, nodes: int, seed: int, **parameters: Any) -> list[list[int]]:
    """Routes of LKH's nodes, which count from 1, without depots.  Raises NeurouteError with what LKH said."""
    lkh = importlib.import_module("lkh")
    problem = lkh.LKHProblem.parse(text)
    try:
        routes: list[list[int]] = lkh.solve(
            "LKH", problem=problem, runs=RUNS, seed=positive_seed(seed), trace_level=0, **parameters
        )
    except Exception as error:  # the package raises nothing more precise
        lines = re.sub(r"\s+", " ", str(error)).strip()
        raise NeurouteError(f"LKH failed on an instance of {nodes} nodes: {lines[-200:]}") from None
    return routes


def _vrplib_text(coords: np.ndarray, demand: np.ndarray, capacity: int, vehicles: int) -> str:
    """The instance, depot first, put on the grid: distances are rounded to whole grid units."""
    points = "\n".join(f"{i} {x} {y}" for i, (x, y) in enumerate(on_grid(coords).tolist(), 1))
    demands = "\n".join(f"{i} {d}" for i, d in enumerate(np.asarray(demand).tolist(), 1))
    return (
        f"NAME : instance\nTYPE : CVRP\nDIMENSION : {len(coords)}\nCAPACITY : {capacity}\nVEHICLES : {vehicles}\n"
        f"EDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n{points}\nDEMAND_SECTION\n{demands}\n"
        "DEPOT_SECTION\n1\n-1\nEOF\n"
    )


SOLVER = Solver("lkh3", False, HOW_TO_GET, version, solve, solve_cvrp)
