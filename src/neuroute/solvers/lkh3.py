"""LKH-3 (Helsgaun): the user's own binary where there is one, else the build in LKHpy.

LKHpy is an extension module that carries LKH-3.0.12 whole, run in a process of its own.  It exports LKH's functions and
variables, which `lkhpy_main` calls in the order of LKH's `main`.  Its Python functions are of no use here: they write
no tour, and fail where LKH doubles the nodes, as it does for the OVRP and the VRPTW.
"""

import importlib.util
import math
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np

from neuroute.core import limited
from neuroute.core.errors import NeurouteError
from neuroute.core.files import scratch_folder, settled_sha256
from neuroute.problems.vrp import Vrp, fault, from_routes
from neuroute.solvers.base import (
    GRID,
    Solver,
    matrix_rows,
    matrix_text,
    missing,
    on_grid,
    on_vrp_grid,
    positive_seed,
    tsplib_text,
)
from neuroute.solvers.lkh import BEST, MOST, PRECISION, countable, read_tour
from neuroute.solvers.lkhpy_main import run as lkh_main

LKHPY = "0.0.9"
# SHA-256 of its builds for CPython 3.11 and 3.12: in another one LKH's variables may be others.
BUILDS = (
    "bf57aa312f0935bb30f4dc1f2f417e0ab677d65889949fb4e1a95fc9725642b6",
    "7e03f66c73d0e751565d75afe2494b84ed49e9a2b360585ec6bc32a440870f47",
)
MOST_NODES = 4_000  # tried; from 4,400 on, vehicles counted, this build ends in the middle of its memory's bookkeeping
INSTALL = f"run `pip install --no-deps --only-binary LKHpy LKHpy=={LKHPY}`"
HOW_TO_GET = (
    f"{INSTALL} (Python 3.11 and 3.12 on Linux x86-64), or download LKH-3 from "
    "http://webhotel4.ruc.dk/~keld/research/LKH-3, run `make`, put `LKH` on the PATH; free for academic use only"
)
RUNS = 1
TYPES = {"CVRP": "CVRP", "OVRP": "OVRP", "VRPL": "DCVRP", "VRPTW": "CVRPTW"}  # those of MVMoE's published references
FEW_SEEDS = 1_000_003  # between the runs of few nodes
FEW_NODES, FEW_RUNS = 15, 10  # so few nodes: of routes of six customers one run in three was 14 % too long
VRP_TRIALS = 10_000  # of a run, as there; elsewhere LKH's default, as many as there are nodes
# SPECIAL sets the moves that vehicles need.  On TSPs it costs quality: 0.13 % at 100 nodes against 0 without it.
# MTSP_MIN_SIZE: vehicles may stay at home.
VEHICLES = ("SPECIAL", "MTSP_MIN_SIZE = 0")
GRACE_S = 60.0  # after the time limit, at which LKH begins no further trial


class NoTourError(NeurouteError):
    """LKH met no tour that keeps to the constraints."""


def limit_s(nodes: int) -> float:
    """Wall-clock seconds for an instance: some fifty times as many as LKH took for 500 and 1,000 customers."""
    return 600.0 + nodes


def version() -> str:
    """A binary by its contents: it does not say its version, and versions differ in what they find."""
    if path := shutil.which("LKH"):
        return f"LKH-3 (sha256 {settled_sha256(Path(path))[:16]})"
    _command()
    return f"LKHpy {LKHPY}, LKH-3.0.12"


def _command() -> list[str]:
    """Return what runs a parameter file, its last argument.

    Raises NeurouteError if there is nothing, or LKHpy is none of the builds.
    """
    if path := shutil.which("LKH"):
        return [path]
    spec = importlib.util.find_spec("LKHpy")  # without running it
    if spec is None or spec.origin is None:
        raise missing("lkh3", HOW_TO_GET)
    if settled_sha256(Path(spec.origin)) not in BUILDS:
        raise NeurouteError(f"{spec.origin}: not the published build of LKHpy {LKHPY}; {INSTALL} --force-reinstall")
    return [sys.executable, "-I", "-S", lkh_main.__code__.co_filename, spec.origin]


def check_nodes(nodes: int) -> None:
    """Raises NeurouteError if there are more than LKHpy's build takes, and no other LKH is there."""
    if nodes > MOST_NODES and shutil.which("LKH") is None:
        raise NeurouteError(
            f"lkh3: {nodes:,} nodes, LKHpy takes {MOST_NODES:,}; put your own `LKH` on the PATH, or take another solver"
        )


def solve(coords: np.ndarray, seed: int, seconds: float | None = None) -> np.ndarray:
    """Return the best tour (n,) of RUNS runs over coords (n, 2); after so many seconds no further trial begins."""
    return np.array(_run(tsplib_text(coords), len(coords), seed, seconds), dtype=np.int64) - 1


def solve_cvrp(
    coords: np.ndarray, demand: np.ndarray, capacity: int, seed: int, seconds: float | None = None
) -> list[list[int]]:
    """Return the routes of the best of RUNS runs with HGS's default fleet, of which vehicles may stay at home."""
    places = f"EDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n{_rows(on_grid(coords))}\n"  # rounded to whole grid units
    text = _text("CVRP", demand, capacity, fleet(demand, capacity), places)
    return routes_of(_run(text, len(coords), seed, seconds, *VEHICLES), len(coords))


def fleet(demand: np.ndarray, capacity: int) -> int:
    """HGS's default number of vehicles for demands, the depot's first, and never more than there are customers."""
    return min(int(np.ceil(1.3 * demand.sum() / capacity)) + 3, len(demand) - 1)


def solve_vrp(instance: Vrp, seed: int, seconds: float | None = None, trials: int = VRP_TRIALS) -> np.ndarray:
    """Return the best solution (2, V) of a batch of one CVRP, OVRP, VRPL or VRPTW.

    The fleet is HGS's default one, which finds shorter routes than a vehicle for each customer; where it finds none
    that keep to the constraints, breaking which costs LKH no more than a penalty, each customer may have one, and then
    another seed decides.  (The published references give VRPL exactly 8 or 12 vehicles.)  Raises NeurouteError for
    other problems, which LKH was not used for, and if no solution keeps to the constraints.
    """
    if instance.variant not in TYPES:
        raise NeurouteError(f"lkh3 does not solve {instance.variant} here; 'ortools' does")
    grid = on_vrp_grid(instance)
    few = fleet(grid.demand, grid.capacity)
    reason = ""
    for vehicles, again in ((few, 0), (grid.customers, 0), (grid.customers, 1)):
        limit = "" if grid.limit is None else f"DISTANCE : {grid.limit}\n"
        coords = _rows(instance.coords[0].astype(np.float64) * GRID)
        places, times = f"EDGE_WEIGHT_TYPE : CEIL_2D\n{limit}NODE_COORD_SECTION\n{coords}\n", ""
        if grid.windows is not None:
            times = f"TIME_WINDOW_SECTION\n{_rows(grid.windows)}\nSERVICE_TIME_SECTION\n{_rows(grid.service)}\n"
        text = _text(TYPES[instance.variant], grid.demand, grid.capacity, vehicles, places, times)
        try:
            tour = _run(text, grid.customers + 1, seed + again, seconds, *VEHICLES, f"MAX_TRIALS = {trials}")
        except NoTourError as error:
            reason = str(error)
            continue
        solution = from_routes(routes_of(tour, grid.customers + 1))
        reason = fault(instance, 0, solution) or ""  # some versions write what is not feasible
        if not reason:
            return solution
    raise NeurouteError(f"lkh3: no feasible routes found ({reason}); 'ortools' may find some")


def tour_of_ways(ways: np.ndarray, seed: int, seconds: float | None = None) -> np.ndarray:
    """Return what `solve` does, of whole distances (n, n), which may differ there and back."""
    ways = countable(ways)
    return tour_of_text(matrix_text(ways), len(ways), seed, seconds, float(ways.max()))


def tour_of_text(text: str, nodes: int, seed: int, seconds: float | None, largest: float) -> np.ndarray:
    """Return what `solve` does, of the text of a TSPLIB file of so many nodes and that largest distance."""
    return np.array(_run(text, nodes, seed, seconds, *_precision(largest)), dtype=np.int64) - 1


def routes_of_ways(
    ways: np.ndarray, demand: np.ndarray, capacity: int, seed: int, seconds: float | None = None
) -> list[list[int]]:
    """Return what `solve_cvrp` does, of whole distances (n, n), which may differ there and back."""
    kind, ways = "CVRP" if (ways == ways.T).all() else "ACVRP", countable(ways)
    text = _text(kind, demand, capacity, fleet(demand, capacity), matrix_rows(ways))
    how = (*VEHICLES, *_precision(float(ways.max())))
    return routes_of(_run(text, len(ways), seed, seconds, *how), len(ways))


def _precision(largest: float) -> tuple[str, ...]:
    """Return the parameter that says in which parts of a distance LKH-3 is to count, unless it is its own."""
    return () if largest * PRECISION <= MOST else (f"PRECISION = {int(MOST // largest)}",)


def _run(text: str, nodes: int, seed: int, seconds: float | None, *more: str) -> list[int]:
    """Return LKH's tour: nodes count from 1, and numbers above `nodes` are the depot of further vehicles.

    Of few nodes with vehicles it is the best of several runs.  Raises NoTourError if LKH wrote none, as none that it
    met was feasible, and NeurouteError with LKH's last words, if it has not ended long after its time, or if nodes are
    missing.
    """
    if nodes < 3:  # LKH takes no fewer
        return list(range(1, nodes + 1))
    check_nodes(nodes)
    answers, error = list[tuple[float, list[int]]](), NoTourError()
    runs = FEW_RUNS if nodes <= FEW_NODES and VEHICLES[0] in more else 1
    limit = (limit_s(nodes) if seconds is None else seconds) / runs
    for run in range(runs):
        try:
            answers.append(_run_once(text, nodes, seed + run * FEW_SEEDS, limit, *more))
        except NoTourError as none:
            error = none
    if not answers:
        raise error
    return min(answers)[1]


def _run_once(text: str, nodes: int, seed: int, limit: float, *more: str) -> tuple[float, list[int]]:
    """Return the length of LKH's tour, and the tour."""
    with scratch_folder("lkh3-") as folder:
        problem, tour, parameters = (folder / name for name in ("problem", "tour", "parameters"))
        problem.write_text(text)
        lines = [f"PROBLEM_FILE = {problem}", f"TOUR_FILE = {tour}", f"RUNS = {RUNS}", f"SEED = {positive_seed(seed)}"]
        if (best_folder := limited.folder()) is not None:
            lines.append(f"OUTPUT_TOUR_FILE = {best_folder / BEST}")
        parameters.write_text("\n".join([*more, *lines, f"TIME_LIMIT = {limit}", "TRACE_LEVEL = 0", ""]))
        try:
            process = subprocess.run(
                [*_command(), str(parameters)],
                stdin=subprocess.DEVNULL,  # it waits for a key when it fails
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=2 * limit + GRACE_S,
            )
        except subprocess.TimeoutExpired as error:
            raise NeurouteError(
                f"LKH gave no answer to an instance of {nodes} nodes in {error.timeout:.0f} s"
            ) from None
        if process.returncode:
            why = " ".join(process.stdout.rpartition("*** Error ***")[2].split())[-200:]
            if process.returncode < 0:
                why = f"ended by {signal.Signals(-process.returncode).name} {why}".strip()
            why = why or f"no tour, exit status {process.returncode}"
            raise NeurouteError(f"LKH failed on an instance of {nodes} nodes: {why}")
        if not tour.exists():
            raise NoTourError(f"LKH found no tour of {nodes} nodes that keeps to the constraints")
        tour_nodes, written = read_tour(tour), re.search(r"Length = (-?\d+)", tour.read_text())
    if tour_nodes is None or sorted(node for node in tour_nodes if node <= nodes) != list(range(1, nodes + 1)):
        raise NeurouteError(f"LKH wrote no tour of the {nodes} nodes that it was given")
    return float(written[1]) if written else math.inf, tour_nodes


def routes_of(tour: list[int], nodes: int) -> list[list[int]]:
    """Cut a tour at the depot, node 1, and at its copies; customers count from 1."""
    routes: list[list[int]] = [[]]
    for node in tour:
        if node == 1 or node > nodes:
            routes.append([])
        else:
            routes[-1].append(node - 1)
    return [route for route in routes if route]


def _text(kind: str, demand: np.ndarray, capacity: int, vehicles: int, places: str, more: str = "") -> str:
    """Return an instance, depot first, as a VRPLIB problem; `places`: its distances, `more`: sections that follow."""
    return (
        f"NAME : instance\nTYPE : {kind}\nDIMENSION : {len(demand)}\nCAPACITY : {capacity}\nVEHICLES : {vehicles}\n"
        f"{places}DEMAND_SECTION\n{_rows(demand)}\n{more}DEPOT_SECTION\n1\n-1\nEOF\n"
    )


def _rows(values: np.ndarray) -> str:
    """Return a line for each node: its number, from 1, and its values."""
    rows = np.asarray(values).reshape(len(values), -1).tolist()
    return "\n".join(" ".join(map(str, [i, *row])) for i, row in enumerate(rows, 1))


LKH3 = Solver("lkh3", False, HOW_TO_GET, version, solve, solve_cvrp, solve_vrp, limit=limit_s)
# For the smallest scale.
SHORT = LKH3.variant("lkh3-short", "solve_vrp", trials=50)
