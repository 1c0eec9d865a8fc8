"""LKH (Helsgaun) inside this process, through elkai."""

import importlib
import math
from pathlib import Path

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.solvers import limited
from neuroute.solvers.base import GRID, Solver, installed_version, positive_seed, tsplib_text
from neuroute.solvers.lkh_rounds import NODES, SECONDS, solve_in_rounds

ELKAI = "run `pip install elkai`"
RUNS = 1
PRECISION = 100  # LKH's own: it counts in hundredths
MOST = 2**30  # in which it counts; beyond, an assertion of it ends the whole process
BEST = "best.tour"  # in the folder of a limited process: the best tour so far


def limit_s(nodes: int) -> float:
    """Seconds for an instance: rounds have a limit, a run has none."""
    return SECONDS if nodes >= NODES else math.inf


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
    if (folder := limited.folder()) is not None:
        parameters += f"OUTPUT_TOUR_FILE = {folder / BEST}\n"
    try:
        tour = elkai.solve_problem(parameters, text)
    except SystemError:
        raise NeurouteError(f"LKH gave up on an instance of {nodes} nodes; try the solver 'lkh3'") from None
    return np.array(tour, dtype=np.int64) - 1


def read_tour(path: Path) -> list[int] | None:
    """Return the nodes of a tour that LKH wrote, which count from 1; None if there is none that is whole."""
    words = path.read_text().partition("TOUR_SECTION")[2].split() if path.exists() else []
    return [int(word) for word in words[: words.index("-1")]] if "-1" in words else None


LKH = Solver("lkh", False, ELKAI, installed_version("elkai", "lkh", ELKAI), solve_by_elkai, large=NODES, limit=limit_s)
# For references: one run is 0.0044 % above the optimum on 1,500 instances of 100 nodes, of which it misses 3.9 %.
LONG = LKH.variant("lkh-long", "solve", runs=10)
