"""LKH (Helsgaun) inside this process, through the package elkai: near-optimal tours on the 1e-6 grid."""

import importlib

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.solvers.base import Solver, installed_version, positive_seed, tsplib_text

HOW_TO_GET = "run `pip install elkai`"
RUNS = 1


def version() -> str:
    return installed_version("elkai", "lkh", HOW_TO_GET)


def solve(coords: np.ndarray, seed: int) -> np.ndarray:
    """The best tour (n,) of RUNS runs over coords (n, 2)."""
    elkai = importlib.import_module("elkai._elkai")  # the public functions give no hold on the seed
    parameters = f"RUNS = {RUNS}\nSEED = {positive_seed(seed)}\nTRACE_LEVEL = 0\nPROBLEM_FILE = :stdin:\n"
    try:
        tour = elkai.solve_problem(parameters, tsplib_text(coords))
    except SystemError:
        raise NeurouteError(f"LKH gave up on an instance of {len(coords)} nodes; try the solver 'lkh3'") from None
    return np.array(tour, dtype=np.int64) - 1


SOLVER = Solver("lkh", False, HOW_TO_GET, version, solve)
