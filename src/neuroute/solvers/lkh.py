"""LKH (Helsgaun), twice: inside this process through elkai ("lkh"), and LKH-3 as the user's own binary ("lkh3").

LKH-3 was never run here, as its licence keeps it from being installed: tests speak with a stand-in.
"""

import importlib
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.problems.vrp import Vrp, from_routes
from neuroute.problems.vrp_checker import fault
from neuroute.solvers.base import (
    GRID,
    Solver,
    installed_version,
    matrix_rows,
    matrix_text,
    missing,
    on_grid,
    positive_seed,
    tsplib_text,
)
from neuroute.solvers.lkh_rounds import NODES, solve_in_rounds
from neuroute.solvers.vrp_grid import GridVrp, on_vrp_grid

ELKAI = "run `pip install elkai`"
BINARY = (
    "download LKH-3 from http://webhotel4.ruc.dk/~keld/research/LKH-3, run `make`, put `LKH` on the PATH; "
    "free for academic use only"
)
# Its pins would put click back to 6 and networkx to 2; neither is needed to call the binary.
PACKAGE = (
    "run `pip install --no-deps lkh deprecated`, which calls the binary; the extra `lkh` has older networkx and click"
)
RUNS = 1
PRECISION = 100  # LKH's own: it counts in hundredths
MOST = 2**30  # in which it counts; beyond, an assertion of it ends the whole process
TYPES = {"CVRP": "CVRP", "OVRP": "OVRP", "VRPL": "DCVRP", "VRPTW": "CVRPTW"}  # those of MVMoE's published references
VRP_TRIALS = 10_000  # of a run, as there; elsewhere LKH's default, as many as there are nodes


def elkai_version() -> str:
    return installed_version("elkai", "lkh", ELKAI)


def solve_by_elkai(
    coords: np.ndarray, seed: int, seconds: float | None = None, runs: int = RUNS, folder: Path | None = None
) -> np.ndarray:
    """Return the best tour (n,) of so many runs over coords (n, 2); after so many seconds no further trial begins.

    Of a large instance, without `seconds`: of the rounds of `lkh_rounds`, whatever the runs, kept in the folder.
    """
    if len(coords) >= NODES and seconds is None:
        return solve_in_rounds(coords, seed, folder)
    return solve_text(tsplib_text(coords), len(coords), seed, seconds, runs=runs)


def solve_text(
    text: str, nodes: int, seed: int, seconds: float | None = None, largest: float = GRID, runs: int = RUNS
) -> np.ndarray:
    """Return what `solve_by_elkai` does, of the text of a TSPLIB file of so many nodes and that largest distance.

    Raises NeurouteError if a distance is more than LKH counts with.
    """
    if largest > MOST:
        raise NeurouteError(f"lkh: a distance of {largest:,.0f}; give none above {MOST:,}: scale the instance down")
    precision = min(PRECISION, int(MOST // max(largest, 1)))
    elkai = importlib.import_module("elkai._elkai")  # the public functions do not take a seed
    parameters = f"RUNS = {runs}\nSEED = {positive_seed(seed)}\nTRACE_LEVEL = 0\nPROBLEM_FILE = :stdin:\n"
    parameters += "" if precision == PRECISION else f"PRECISION = {precision}\n"
    parameters += "" if seconds is None else f"TIME_LIMIT = {seconds}\n"
    try:
        tour = elkai.solve_problem(parameters, text)
    except SystemError:
        raise NeurouteError(f"LKH gave up on an instance of {nodes} nodes; try the solver 'lkh3'") from None
    return np.array(tour, dtype=np.int64) - 1


def version() -> str:
    if shutil.which("LKH") is None:
        raise missing("lkh3", BINARY)
    return f"LKH ({installed_version('lkh', 'lkh3', PACKAGE)})"


def solve(coords: np.ndarray, seed: int, seconds: float | None = None) -> np.ndarray:
    """Return the best tour (n,) of RUNS runs over coords (n, 2); after so many seconds no further trial begins."""
    (tour,) = _run(tsplib_text(coords), len(coords), seed, time_limit=seconds)
    return np.array(tour, dtype=np.int64) - 1


def solve_cvrp(
    coords: np.ndarray, demand: np.ndarray, capacity: int, seed: int, seconds: float | None = None
) -> list[list[int]]:
    """Return the routes of the best of RUNS runs with HGS's default fleet, of which vehicles may stay at home."""
    vehicles = int(np.ceil(1.3 * demand.sum() / capacity)) + 3
    text = _vrplib_text(coords, demand, capacity, vehicles)
    routes = _run(text, len(coords), seed, mtsp_min_size=0, time_limit=seconds)
    return [[node - 1 for node in route] for route in routes if route]


def solve_vrp(instance: Vrp, seed: int, seconds: float | None = None) -> np.ndarray:
    """Return the best solution (2, V) of a batch of one CVRP, OVRP, VRPL or VRPTW, with any fleet.

    The published references give VRPL exactly 8 or 12 vehicles.  Raises NeurouteError for other problems, which LKH was
    not used for, and if the best solution breaks a constraint, which costs LKH no more than a penalty.
    """
    if instance.variant not in TYPES:
        raise NeurouteError(f"lkh3 does not solve {instance.variant} here; 'ortools' does")
    grid = on_vrp_grid(instance)
    service = None if grid.windows is None else grid.service
    text = _grid_text(instance, grid)
    more = {"mtsp_min_size": 0, "max_trials": VRP_TRIALS, "time_limit": seconds}
    routes = _run(text, grid.customers + 1, seed, service, **more)
    solution = from_routes([[node - 1 for node in route] for route in routes if route])
    if reason := fault(instance, 0, solution):
        raise NeurouteError(f"lkh3: no routes found that keep to the constraints ({reason}); 'ortools' may find some")
    return solution


def tour_of_ways(ways: np.ndarray, seed: int, seconds: float | None = None) -> np.ndarray:
    """Return what `solve` does, of whole distances (n, n), which may differ there and back."""
    return tour_of_text(matrix_text(ways), len(ways), seed, seconds, float(ways.max()))


def tour_of_text(text: str, nodes: int, seed: int, seconds: float | None, largest: float) -> np.ndarray:
    """Return what `solve` does, of the text of a TSPLIB file of so many nodes and that largest distance.

    Raises NeurouteError if a distance is more than LKH counts with.
    """
    (tour,) = _run(text, nodes, seed, time_limit=seconds, precision=_precision(largest))
    return np.array(tour, dtype=np.int64) - 1


def routes_of_ways(
    ways: np.ndarray, demand: np.ndarray, capacity: int, seed: int, seconds: float | None = None
) -> list[list[int]]:
    """Return what `solve_cvrp` does, of whole distances (n, n), which may differ there and back."""
    kind = "CVRP" if (ways == ways.T).all() else "ACVRP"
    text = (
        f"NAME : instance\nTYPE : {kind}\nDIMENSION : {len(ways)}\nCAPACITY : {capacity}\n"
        f"VEHICLES : {int(np.ceil(1.3 * demand.sum() / capacity)) + 3}\n{matrix_rows(ways)}"
        f"DEMAND_SECTION\n{_rows(demand)}\nDEPOT_SECTION\n1\n-1\nEOF\n"
    )
    precision = _precision(float(ways.max()))
    routes = _run(text, len(ways), seed, mtsp_min_size=0, time_limit=seconds, precision=precision)
    return [[node - 1 for node in route] for route in routes if route]


def _precision(largest: float) -> int | None:
    """Return in which parts of a distance LKH-3 is to count; None: its own.

    Raises NeurouteError for a distance that is too large.
    """
    if largest > MOST:
        raise NeurouteError(f"lkh3: a distance of {largest:,.0f}; give none above {MOST:,}: scale the instance down")
    return None if largest * PRECISION <= MOST else int(MOST // largest)


def _run(text: str, nodes: int, seed: int, service: np.ndarray | None = None, **parameters: Any) -> list[list[int]]:
    """Return routes of LKH's nodes, which count from 1, without depots.  Raises NeurouteError with LKH's last words.

    service (nodes,): grid units that each stop takes; the package writes that section, but cannot read it.
    """
    lkh = importlib.import_module("lkh")
    parameters = {name: value for name, value in parameters.items() if value is not None}
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
    """Return the instance, depot first, put on the grid: distances are rounded to whole grid units."""
    return (
        f"NAME : instance\nTYPE : CVRP\nDIMENSION : {len(coords)}\nCAPACITY : {capacity}\nVEHICLES : {vehicles}\n"
        f"EDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n{_rows(on_grid(coords))}\n"
        f"DEMAND_SECTION\n{_rows(demand)}\nDEPOT_SECTION\n1\n-1\nEOF\n"
    )


def _grid_text(instance: Vrp, grid: GridVrp) -> str:
    """Return the instance in grid units, distances rounded up (CEIL_2D) as everywhere in `vrp_grid`."""
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


def _rows(values: np.ndarray) -> str:
    """Return a line for each node: its number, from 1, and its values."""
    rows = np.asarray(values).reshape(len(values), -1).tolist()
    return "\n".join(" ".join(map(str, [i, *row])) for i, row in enumerate(rows, 1))


LKH = Solver("lkh", False, ELKAI, elkai_version, solve_by_elkai, large=NODES)
# For references: one run is 0.0044 % above the optimum on 1,500 instances of 100 nodes, of which it misses 3.9 %.
LONG = LKH.variant("lkh-long", "solve", runs=10)
LKH3 = Solver("lkh3", False, BINARY, version, solve, solve_cvrp, solve_vrp)
