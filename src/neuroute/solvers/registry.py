"""Solvers by name.  A solver's module is imported when it is asked for."""

import importlib

from neuroute.core.errors import NeurouteError
from neuroute.solvers.base import Solver

MODULES = {
    "concorde": "neuroute.solvers.concorde",
    "lkh": "neuroute.solvers.lkh",
    "lkh3": "neuroute.solvers.lkh3",
    "hgs": "neuroute.solvers.hgs",
    "hgs-short": "neuroute.solvers.hgs_short",
    "hgs-long": "neuroute.solvers.hgs_long",
    "insertion": "neuroute.solvers.insertion",
    "insertion-angle": "neuroute.solvers.insertion_cvrp",
    "insertion-published": "neuroute.solvers.insertion_published",
    "nearest": "neuroute.solvers.nearest",
    "ortools": "neuroute.solvers.ortools_vrp",
    "ortools-x10": "neuroute.solvers.ortools_x10",
    "ortools-short": "neuroute.solvers.ortools_short",
    "ortools-network": "neuroute.solvers.ortools_network",
    "pyvrp": "neuroute.solvers.pyvrp_vrp",
    "pyvrp-short": "neuroute.solvers.pyvrp_short",
}


def get(name: str) -> Solver:
    """The solver of that name, installed or not.  Raises NeurouteError for an unknown name."""
    if name not in MODULES:
        raise NeurouteError(f"unknown solver '{name}'; known: {', '.join(MODULES)}")
    solver: Solver = importlib.import_module(MODULES[name]).SOLVER
    return solver
