"""Solve a user's file of TSPLIB, VRPLIB or Solomon's, or improve a solution of it; draw and keep the result."""

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from neuroute.core.device import memory_budget_gb
from neuroute.core.errors import NeurouteError
from neuroute.core.files import write_whole
from neuroute.datasets.benchmarks import Library, library
from neuroute.datasets.solomon import read_solomon
from neuroute.datasets.tsplib import read_tour, read_tsplib, write_tour
from neuroute.datasets.vrplib import VrplibInstance, read_solution, read_vrplib, write_solution
from neuroute.decoding.decode import decode
from neuroute.plan.objects import Decoding
from neuroute.problems.vrp import from_routes, to_routes
from neuroute.user.drawing import draw_routes, draw_tour
from neuroute.user.evaluate import load_model
from neuroute.user.improve import improve
from neuroute.user.instances import TOLERANCE
from neuroute.user.options import check_decoding
from neuroute.user.outputs import check_writable

FORMATS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    ".tsp": ("tsplib", read_tsplib),
    ".vrp": ("cvrplib", read_vrplib),
    ".txt": ("solomon", read_solomon),
}
SOLUTIONS = {"tsp": ".tour", "cvrp": ".sol", "vrp": ".sol"}  # endings of solution files
NOUNS = {"tsp": "tour", "cvrp": "routes", "vrp": "routes"}


@dataclass(frozen=True)
class _File:
    """A user's instance."""

    about: Library
    instance: Any

    @property
    def problem(self) -> str:
        return self.about.problem

    @property
    def stops(self) -> int:
        return len(self.instance.coords) - (self.problem != "tsp")

    def length(self, solution: np.ndarray) -> float:
        """In the file's own distances, which for Solomon's are not rounded."""
        return self.about.length(self.instance, solution, self.problem != "vrp")

    def format(self, length: float) -> str:
        return f"{length:,.2f}" if self.instance.edge_type == "EXACT_2D" else f"{length:,.0f}"

    def draw(self, solution: np.ndarray, title: str) -> Figure:
        if self.problem != "tsp":
            return draw_routes(self.instance, to_routes(solution), title)
        return draw_tour(self.instance, solution, title)

    def keep(self, path: Path, solution: np.ndarray) -> None:
        if self.problem != "tsp":
            write_solution(path, self.instance, to_routes(solution))
        else:
            write_tour(path, self.instance, solution)


def solve_file(
    path: Path,
    model: Path,
    decoding: Decoding,
    out: Path,
    device: str,
    memory_gb: float | None = None,
    *,
    start: Path | None = None,
    save: Path | None = None,
    trusted: Collection[str] = (),
) -> str:
    """Solve a file with a checkpoint, draw the solution to `out`, keep it in `save` (.tour or .sol), return its length.

    A solution in `start` (.tour or .sol) is improved by the decoding, parallel local re-construction, and never gets
    longer in the file's own distances.  `trusted`: kinds of networks outside this package that the checkpoint may name.
    Raises NeurouteError, before anything is solved or written, if the files and the model do not go together, or
    nothing can be written in a place.
    """
    if out.suffix not in (".svg", ".pdf", ".png"):
        raise NeurouteError(f"--out {out}: the drawing must end in .svg, .pdf or .png")
    if start is not None and (decoding.method != "prc" or decoding.start != "greedy"):
        raise NeurouteError("--from: the solution of a file is improved by --prc, as in --prc 100, without --start")
    file = _read(path)
    for option, other in (("--from", start), ("--save", save)):
        if other is not None and other.suffix != SOLUTIONS[file.problem]:
            ending = SOLUTIONS[file.problem]
            raise NeurouteError(f"{option} {other}: a solution of a {path.suffix} file is a file that ends in {ending}")
    before = None if start is None else _read_solution(start, file)
    loaded = load_model(model, device, trusted)
    run = loaded.about["run"]
    if loaded.problem not in file.about.problems:
        solves, is_one = loaded.problem.upper(), file.problem.upper()
        raise NeurouteError(f"{model}: {run} solves {solves}, not {is_one}, of which {path.name} is an instance")
    if before is not None and loaded.problem == "vrp":
        raise NeurouteError(f"--from: {run} builds solutions and improves none; leave it out")
    check_decoding(loaded.problem, file.stops, decoding, path.name)
    for option, target in (("--out", out), ("--save", save)):
        if target is not None:
            check_writable(option, target)
    budget = memory_budget_gb(loaded.place, memory_gb)
    inputs = file.about.inputs_for(loaded.problem)(file.instance, False)
    began = time.perf_counter()
    if before is None:
        solution = decode(loaded.problem, loaded.net, inputs, decoding, budget)[0].numpy()
    else:
        solution = improve(loaded.net, inputs, before, decoding, budget, file.length)
    seconds = time.perf_counter() - began
    length = file.format(file.length(solution))
    if save is not None:
        file.keep(save, solution)
    origin = "" if start is None else f" from {start.name}"
    drawing = file.draw(solution, f"{file.instance.name}: {length}  ({run}, {decoding.id}{origin})")
    write_whole(out, lambda opened: drawing.savefig(opened, format=out.suffix[1:]))
    routes = f"{len(to_routes(solution))} routes, " if file.problem != "tsp" else ""
    was = f", before {file.format(file.length(before))}" if before is not None else ""
    kept = f", kept in {save}" if save is not None else ""
    return (
        f"{file.instance.name}: n={file.stops}, {routes}length {length} ({file.instance.edge_type}){was}, "
        f"{seconds:.2f} s; {NOUNS[file.problem]} in {out}{kept}"
    )


def _read(path: Path) -> _File:
    if path.suffix not in FORMATS:
        raise NeurouteError(
            f"{path}: a TSPLIB file (.tsp) or a VRPLIB file (.vrp) is expected, or one of Solomon's (.txt)"
        )
    name, read = FORMATS[path.suffix]
    return _File(library(name), read(path))


def _read_solution(path: Path, file: _File) -> np.ndarray:
    """Return the user's solution.  Raises NeurouteError if it is none, is of another instance, or of Solomon's files,
    whose solutions nothing improves."""
    if file.problem == "vrp":
        raise NeurouteError(f"--from {path}: solutions with time windows are built, not improved; leave it out")
    if file.problem == "tsp":
        return read_tour(path, file.instance)
    instance: VrplibInstance = file.instance
    routes, stated = read_solution(path)
    instance.check(routes, str(path))
    costs = np.array([instance.cost(routes, rounded) for rounded in (True, False)])
    if stated is not None and (np.abs(costs - stated) > TOLERANCE * costs).all():
        raise NeurouteError(
            f"{path}: states a cost of {stated:g}, but these routes cost {costs[0]:g} in {instance.name}; if it is no "
            "solution of another instance, leave out its line `Cost`"
        )
    return from_routes(routes)
