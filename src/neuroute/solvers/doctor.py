"""Which solvers are installed and work: each solves one small instance in a process of its own."""

import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.core.limited import call
from neuroute.problems.tsp import is_permutation, tour_length
from neuroute.solvers.registry import NEXT_BEST, SOLVERS, get

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
