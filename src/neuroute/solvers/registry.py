"""Solvers by name.  A solver's module is imported when the solver is asked for."""

from collections.abc import Mapping
from typing import Any, cast

from neuroute.core.dotted import parts, resolve
from neuroute.core.errors import NeurouteError
from neuroute.solvers.base import Solver

# Solutions that come with a published test set: `neuroute label` reads them, nothing is solved.
NAME_THE_FILE = "name the file in config.yaml: test_sets, testsets_dir"


def _refuse(*_: Any) -> Any:
    raise NeurouteError(f"published solutions are missing; {NAME_THE_FILE}, a file with solutions")


PUBLISHED = Solver("published", False, NAME_THE_FILE, lambda: "published", _refuse, _refuse)

SOLVERS = {
    "concorde": "neuroute.solvers.concorde:SOLVER",
    "concorde-6h": "neuroute.solvers.concorde:SIX_HOURS",
    "lkh": "neuroute.solvers.lkh:LKH",
    "lkh-long": "neuroute.solvers.lkh:LONG",
    "lkh3": "neuroute.solvers.lkh3:LKH3",
    "lkh3-short": "neuroute.solvers.lkh3:SHORT",
    "hgs": "neuroute.solvers.hgs:SOLVER",
    "hgs-short": "neuroute.solvers.hgs:SHORT",
    "hgs-long": "neuroute.solvers.hgs:LONG",
    "hgs-timed": "neuroute.solvers.hgs:TIMED",
    "insertion": "neuroute.solvers.insertion:SOLVER",
    "insertion-angle": "neuroute.solvers.insertion:ANGLE",
    "insertion-published": "neuroute.solvers.insertion:PUBLISHED",
    "nearest": "neuroute.solvers.nearest:SOLVER",
    "ortools": "neuroute.solvers.ortools:SOLVER",
    "ortools-x10": "neuroute.solvers.ortools:X10",
    "ortools-short": "neuroute.solvers.ortools:SHORT",
    "ortools-network": "neuroute.solvers.ortools:NETWORK",
    "pyvrp": "neuroute.solvers.pyvrp:SOLVER",
    "pyvrp-long": "neuroute.solvers.pyvrp:LONG",
    "pyvrp-short": "neuroute.solvers.pyvrp:SHORT",
    "savings": "neuroute.solvers.savings:SOLVER",
    **{name: place for _, solvers in parts("solvers", "SOLVERS") for name, place in solvers.items()},
}
FROM_FILES = {"published": "neuroute.solvers.registry:PUBLISHED"}
# Who stands in for one that is missing, the best first: each solves whatever a scale asks of it; OR-Tools has no equal.
NEXT_BEST = {
    "concorde": ("lkh", "lkh3", "hgs", "pyvrp", "ortools"),
    "concorde-6h": ("lkh", "lkh3"),
    "lkh": ("lkh3", "concorde", "hgs", "pyvrp", "ortools"),
    "lkh-long": ("lkh3", "concorde", "hgs", "pyvrp", "ortools"),
    "lkh3": ("pyvrp", "ortools"),
    "lkh3-short": ("pyvrp-short", "ortools-short"),
    "hgs": ("pyvrp", "ortools"),
    "hgs-short": ("pyvrp-short", "ortools-short"),
    "hgs-long": ("pyvrp", "ortools"),
    "hgs-timed": ("pyvrp", "ortools"),
    "pyvrp": ("ortools",),
    "pyvrp-long": ("ortools-x10",),
    "pyvrp-short": ("ortools-short",),
}


def entry(name: str) -> str:
    """Return where the solver of that name is: `package.module:NAME`.  Raises NeurouteError for an unknown name."""
    # The table is addressed by name: else the digest of every label would hang on all of it.
    solvers = cast(Mapping[str, str], cast(Any, resolve(f"{__name__}:SOLVERS")))
    if name in FROM_FILES:
        return FROM_FILES[name]
    if name not in solvers:
        raise NeurouteError(f"unknown solver '{name}'; known: {', '.join(solvers)}")
    return solvers[name]


def get(name: str) -> Solver:
    """Return the solver of that name, installed or not.  Raises NeurouteError for an unknown name."""
    return cast(Solver, resolve(entry(name)))


def is_installed(name: str) -> bool:
    try:
        get(name).version()
    except NeurouteError:
        return False
    return True


def stand_in(name: str) -> str | None:
    """Return the best installed solver that can do the work of another; None if there is none."""
    return next((other for other in NEXT_BEST.get(name, ()) if is_installed(other)), None)
