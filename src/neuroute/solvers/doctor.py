"""Which solvers are there and work: each solves one small instance in a process of its own."""

import json
import subprocess
import sys
import time
from dataclasses import dataclass

from neuroute.core.errors import NeurouteError
from neuroute.datasets.streams import coordinates
from neuroute.problems.tsp import is_permutation, tour_length
from neuroute.solvers.registry import MODULES, get

NODES = 12
TIMEOUT = 120.0  # seconds; the first call compiles


@dataclass(frozen=True)
class Finding:
    """What the doctor saw of one solver."""

    name: str
    found: bool  # installed, and it solved the instance
    version: str | None
    ratio: float | None  # length over the shortest length that any solver found
    seconds: float | None  # of one solve
    remedy: str  # what to do when it was not found; empty otherwise

    def line(self) -> str:
        if not self.found:
            return f"{self.name:19} missing  {self.remedy}"
        return f"{self.name:19} ok       {self.ratio:.4f} x best, {self.seconds:.4f} s   {self.version}"


def examine() -> list[Finding]:
    """One finding per known solver; a solver that crashes or hangs costs only its own process."""
    answers = {name: _ask(name) for name in MODULES}
    best = min((a["length"] for a in answers.values() if "length" in a), default=1.0)
    return [
        Finding(
            name=name,
            found="length" in a,
            version=a.get("version"),
            ratio=a["length"] / best if "length" in a else None,
            seconds=a.get("seconds"),
            remedy=a.get("remedy", ""),
        )
        for name, a in answers.items()
    ]


def _ask(name: str) -> dict:
    try:
        done = subprocess.run(
            [sys.executable, "-m", "neuroute.solvers.doctor", name], capture_output=True, text=True, timeout=TIMEOUT
        )
    except subprocess.TimeoutExpired:
        return {"remedy": f"no answer in {TIMEOUT:.0f} s; reinstall it: {get(name).how_to_get}"}
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return {"remedy": f"crashed (exit {done.returncode}: {last}); reinstall it: {get(name).how_to_get}"}
    answer: dict = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


def _try(name: str) -> dict:
    solver = get(name)
    try:
        version = solver.version()
        coords = coordinates("uniform", "test", NODES, 0, 1)[0]
        solver.solve(coords, 0)  # loads and compiles
        start = time.perf_counter()
        tour = solver.solve(coords, 0)
        seconds = time.perf_counter() - start
    except NeurouteError as error:
        return {"remedy": str(error)}
    if not is_permutation(tour[None])[0]:
        return {"remedy": f"installed, but returned no tour; reinstall it: {solver.how_to_get}"}
    return {"version": version, "length": float(tour_length(coords, tour)), "seconds": seconds}


if __name__ == "__main__":
    print(json.dumps(_try(sys.argv[1])))
