"""LKH-3 (Helsgaun) as the user's own binary `LKH`, through the package lkh."""

import importlib
import re
import shutil

import numpy as np

from neuroute.errors import NeurouteError
from neuroute.solvers.base import Solver, installed_version, missing, positive_seed, tsplib_text

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
    lkh = importlib.import_module("lkh")
    problem = lkh.LKHProblem.parse(tsplib_text(coords))
    try:
        (tour,) = lkh.solve("LKH", problem=problem, runs=RUNS, seed=positive_seed(seed), trace_level=0)
    except Exception as error:  # the package raises nothing more precise
        lines = re.sub(r"\s+", " ", str(error)).strip()
        raise NeurouteError(f"LKH failed on an instance of {len(coords)} nodes: {lines[-200:]}") from None
    return np.array(tour, dtype=np.int64) - 1


SOLVER = Solver("lkh3", False, HOW_TO_GET, version, solve)
