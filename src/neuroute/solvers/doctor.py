"""Which solvers are installed and work: each solves one small instance in a process of its own."""

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from neuroute.core.errors import NeurouteError
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


@dataclass(frozen=True)
class Finding:
    """The state of one solver."""

    name: str
    works: bool  # installed, and it solves the instance
    version: str | None
    ratio: float | None  # length over the shortest length of any solver
    seconds: float | None  # of one solve
    remedy: str  # what to do if it does not work; empty otherwise
    stand_in: str | None = None  # the solver that does its work meanwhile

    def line(self) -> str:
        if not self.works:
            meanwhile = f"{self.stand_in} stands in; " if self.stand_in else ""
            return f"{self.name:19} missing  {meanwhile}{self.remedy}"
        return f"{self.name:19} ok       {self.ratio:.4f} x best, {self.seconds:.4f} s   {self.version}"


def examine() -> list[Finding]:
    """Return one finding per known solver; one that crashes or hangs costs only its own process."""
    answers = {name: _ask(name) for name in SOLVERS}
    best = min((a["length"] for a in answers.values() if "length" in a), default=1.0)
    return [
        Finding(
            name=name,
            works="length" in a,
            version=a.get("version"),
            ratio=a["length"] / best if "length" in a else None,
            seconds=a.get("seconds"),
            remedy=a.get("remedy", ""),
            stand_in=next((other for other in NEXT_BEST.get(name, ()) if "length" in answers.get(other, {})), None),
        )
        for name, a in answers.items()
    ]


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
        process = subprocess.run(
            [sys.executable, "-m", "neuroute.solvers.doctor", name], capture_output=True, text=True, timeout=TIMEOUT
        )
    except subprocess.TimeoutExpired:
        return {"remedy": f"no answer in {TIMEOUT:.0f} s; reinstall it: {get(name).how_to_get}"}
    if process.returncode != 0:
        last = (process.stderr.strip().splitlines() or ["no message"])[-1]
        return {"remedy": f"crashed (exit {process.returncode}: {last}); reinstall it: {get(name).how_to_get}"}
    answer: dict[str, Any] = json.loads(process.stdout.strip().splitlines()[-1])
    return answer


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


if __name__ == "__main__":
    print(json.dumps(_try(sys.argv[1])))
