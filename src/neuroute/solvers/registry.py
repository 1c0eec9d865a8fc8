"""Solvers by name, and which of them work here.  A solver's module is imported when the solver is asked for."""

import time
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any, cast

import numpy as np

from neuroute.core.dotted import parts, resolve
from neuroute.core.errors import NeurouteError
from neuroute.core.limited import call
from neuroute.problems.tsp import is_permutation, tour_length
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


ACADEMIC = "free for academic use only"
# What the project is asked for by name -> the packages that do its work, and why these.
ASKED = {
    "snakemake": (("snakemake",), ""),
    "torch": (("torch",), ""),
    "pandas": (("pandas",), ""),
    "numpy": (("numpy",), ""),
    "matplotlib": (("matplotlib",), ""),
    "pyconcorde": (("pyconcorde", "ml4co-kit"), f"ml4co-kit carries its extension, built; Concorde: {ACADEMIC}"),
    "lkh": (("elkai", "LKHpy"), f"they carry LKH and LKH-3; the package lkh is a wrapper without LKH; LKH: {ACADEMIC}"),
    "hygese": (("hygese",), ""),
}
COORDS = np.array([[0.1, 0.2], [0.9, 0.1], [0.6, 0.4], [0.8, 0.8], [0.3, 0.9], [0.2, 0.6], [0.5, 0.5]])
TIMEOUT = 120.0  # seconds; the first call compiles


def examine() -> Iterator[str]:
    """Yield a line per known solver: how well it solves an instance, or what to do, and who does its work meanwhile.

    One that crashes or hangs costs only its own process.
    """
    answers = {name: _ask(name) for name in SOLVERS}
    best = min((a["length"] for a in answers.values() if "length" in a), default=1.0)
    for name, a in answers.items():
        if "length" in a:
            yield f"{name:19} ok       {a['length'] / best:.4f} x best, {a['seconds']:.4f} s   {a['version']}"
        else:
            able = [other for other in NEXT_BEST.get(name, ()) if "length" in answers.get(other, {})]
            yield f"{name:19} missing  {f'{able[0]} stands in; ' if able else ''}{a['remedy']}"


def packages() -> list[str]:
    """Return a line for each package that the project is asked for: what does its work here, and why that."""
    lines = []
    for name_asked, (names, why) in ASKED.items():
        there = " and ".join(f"{name} {number}" for name in names if (number := _version(name)))
        lines.append(f"{name_asked:19} {there or 'missing'}{why and f'   ({why})'}")
    return lines


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _ask(name: str) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = call(f"{__name__}:_try", TIMEOUT, name)
        return answer
    except (TimeoutError, NeurouteError) as error:
        what = str(error) or f"no answer in {TIMEOUT:.0f} s"
        return {"remedy": f"{what}; reinstall it: {get(name).how_to_get}"}


def _try(name: str) -> dict[str, Any]:
    solver = get(name)
    try:
        which = solver.version()
        solver.solve(COORDS, 0)  # loads and compiles
        start = time.perf_counter()
        tour = solver.solve(COORDS, 0)
        seconds = time.perf_counter() - start
    except NeurouteError as error:
        return {"remedy": str(error)}
    if not is_permutation(tour[None])[0]:
        return {"remedy": f"installed, but returned no tour; reinstall it: {solver.how_to_get}"}
    return {"version": which, "length": float(tour_length(COORDS, tour)), "seconds": seconds}
