"""LKH-3 (Helsgaun) as the user's own binary `LKH`, through the package lkh.

Never run with a real LKH here, whose licence keeps it from being installed: tests speak with a stand-in.
"""

import importlib
import re
import shutil
from typing import Any

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.problems.vrp import Vrp, from_routes
from neuroute.problems.vrp_checker import fault
from neuroute.solvers.base import GRID, Solver, installed_version, missing, on_grid, positive_seed, tsplib_text
from neuroute.solvers.vrp_grid import GridVrp, on_vrp_grid

HOW_TO_GET = (
    "download LKH-3 from http://webhotel4.ruc.dk/~keld/research/LKH-3, run `make`, put `LKH` on the PATH; "
    "free for academic use only"
)
RUNS = 1
TYPES = {"CVRP": "CVRP", "OVRP": "OVRP", "VRPL": "DCVRP", "VRPTW": "CVRPTW"}  # those of MVMoE's published references
VRP_TRIALS = 10_000  # of a run, as there; elsewhere LKH's default, as many as there are nodes


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
    """The routes of the best solution of RUNS runs, in HGS's default fleet, of which vehicles may stay at home."""
    vehicles = int(np.ceil(1.3 * demand.sum() / capacity)) + 3
    routes = _run(_vrplib_text(coords, demand, capacity, vehicles), len(coords), seed, mtsp_min_size=0)
    return [[node - 1 for node in route] for route in routes if route]


def solve_vrp(instance: Vrp, seed: int) -> np.ndarray:
    """The best solution (2, V) of the only instance of a batch of one, a CVRP, OVRP, VRPL or VRPTW, with any fleet.

    The published references give VRPL exactly 8 or 12 vehicles.  Raises NeurouteError for other problems, which LKH was
    not used for, and where the best solution breaks a constraint, which costs LKH no more than a penalty.
    """
    if instance.variant not in TYPES:
        raise NeurouteError(f"lkh3 does not solve {instance.variant} here; 'ortools' does")
    grid = on_vrp_grid(instance)
    service = None if grid.windows is None else grid.service
    text = _grid_text(instance, grid)
    routes = _run(text, grid.customers + 1, seed, service, mtsp_min_size=0, max_trials=VRP_TRIALS)
    solution = from_routes([[node - 1 for node in route] for route in routes if route])
    if reason := fault(instance, 0, solution):
        raise NeurouteError(f"lkh3: no routes found that keep to the constraints ({reason}); 'ortools' may find some")
    return solution


def _run(text: str, nodes: int, seed: int, service: np.ndarray | None = None, **parameters: Any) -> list[list[int]]:
    """Routes of LKH's nodes, which count from 1, without depots.  Raises NeurouteError with what LKH said.

    service (nodes,): how long each stop takes; the package writes that section, but cannot read it.
    """
    lkh = importlib.import_module("lkh")
    problem = lkh.LKHProblem.parse(text)
    if service is not None:
        problem.service_time_section = [[i, int(time)] for i, time in enumerate(service, 1)]
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
    return (
        f"NAME : instance\nTYPE : CVRP\nDIMENSION : {len(coords)}\nCAPACITY : {capacity}\nVEHICLES : {vehicles}\n"
        f"EDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n{_rows(on_grid(coords))}\n"
        f"DEMAND_SECTION\n{_rows(demand)}\nDEPOT_SECTION\n1\n-1\nEOF\n"
    )


def _grid_text(instance: Vrp, grid: GridVrp) -> str:
    """The instance in grid units, ways rounded up (CEIL_2D) as everywhere in `vrp_grid`."""
    head = (
        f"NAME : instance\nTYPE : {TYPES[instance.variant]}\nDIMENSION : {grid.customers + 1}\n"
        f"CAPACITY : {grid.capacity}\nVEHICLES : {grid.customers}\nEDGE_WEIGHT_TYPE : CEIL_2D\n"
    )
    head += "" if grid.limit is None else f"DISTANCE : {grid.limit}\n"
    text = f"{head}NODE_COORD_SECTION\n{_rows(instance.coords[0].astype(np.float64) * GRID)}\n"
    text += f"DEMAND_SECTION\n{_rows(grid.demand)}\n"
    if grid.windows is not None:
        text += f"TIME_WINDOW_SECTION\n{_rows(grid.windows)}\n"
    return f"{text}DEPOT_SECTION\n1\n-1\nEOF\n"


def _rows(of_nodes: np.ndarray) -> str:
    """A line for each node: its number, from 1, and what it has."""
    values = np.asarray(of_nodes).reshape(len(of_nodes), -1).tolist()
    return "\n".join(" ".join(map(str, [i, *row])) for i, row in enumerate(values, 1))


SOLVER = Solver("lkh3", False, HOW_TO_GET, version, solve, solve_cvrp, solve_vrp)
