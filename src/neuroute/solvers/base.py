"""What every solver offers, and the integer grid that the exact and local-search codes work on."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as package_version
from typing import Any

import numpy as np

from neuroute.core.errors import NeurouteError

GRID = 1e6  # grid units per unit of length


@dataclass(frozen=True)
class Solver:
    """A solver of TSP, and perhaps CVRP and the other routing instances.  One module per solver holds it as SOLVER.

    `version()` is cheap and raises NeurouteError, saying how to get the solver, when it is missing.
    `solve(coords (n, 2), seed)` returns a tour (n,) int64 of n >= 4 nodes; equal arguments give equal tours.
    `solve_cvrp(coords (n + 1, 2), demand (n + 1,), capacity, seed)`, depot first, returns routes of customers 1..n.
    `solve_vrp(instance, seed)` takes a `problems.vrp.Vrp` of one instance and returns a solution (2, n); it raises
    NeurouteError for a variant that the solver is not made for.
    """

    name: str
    optimal: bool  # tours are proven optimal on the integer grid
    how_to_get: str
    version: Callable[[], str]
    solve: Callable[[np.ndarray, int], np.ndarray]
    solve_cvrp: Callable[[np.ndarray, np.ndarray, int, int], list[list[int]]] | None = None
    solve_vrp: Callable[[Any, int], np.ndarray] | None = None


def missing(name: str, how_to_get: str) -> NeurouteError:
    return NeurouteError(f"solver '{name}' is not installed; {how_to_get}")


def installed_version(package: str, name: str, how_to_get: str) -> str:
    """Version of an installed distribution; raises NeurouteError for the solver `name` without it."""
    try:
        return f"{package} {package_version(package)}"
    except PackageNotFoundError:
        raise missing(name, how_to_get) from None


def on_grid(coords: np.ndarray) -> np.ndarray:
    """Coordinates (n, 2) as integers, int64: unit-square instances rounded to 1e-6, others fitted to that range."""
    coords = np.asarray(coords, dtype=np.float64)
    low, high = coords.min(), coords.max()
    if low < 0 or high > 1:
        coords = (coords - coords.min(axis=0)) / np.ptp(coords, axis=0).max()
    return np.rint(coords * GRID).astype(np.int64)


def tsplib_text(coords: np.ndarray) -> str:
    """The instance (n, 2), put on the grid, as a TSPLIB problem with distances rounded to whole grid units."""
    nodes = "\n".join(f"{i} {x} {y}" for i, (x, y) in enumerate(on_grid(coords).tolist(), 1))
    return (
        f"NAME : instance\nTYPE : TSP\nDIMENSION : {len(coords)}\nEDGE_WEIGHT_TYPE : EUC_2D\n"
        f"NODE_COORD_SECTION\n{nodes}\nEOF\n"
    )


def positive_seed(seed: int) -> int:
    """A seed from 1 to 2**31 - 1: zero asks Concorde and LKH for the time of day."""
    return seed % (2**31 - 1) + 1
