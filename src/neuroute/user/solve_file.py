"""Solve a file: the instance is read, the solution drawn and kept, and a line says how long it is."""

import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np

from neuroute.core.errors import Interrupted, NeurouteError
from neuroute.datasets.tsplib import read_tour
from neuroute.datasets.vrplib import read_solution
from neuroute.plan.objects import Decoding
from neuroute.problems.vrp import from_routes
from neuroute.user.instance import Instance
from neuroute.user.instances import TOLERANCE
from neuroute.user.outputs import PICTURES, check_writable
from neuroute.user.solution import ENDINGS
from neuroute.user.solve import SECONDS, check_method, choose_for, solve
from neuroute.user.sources import load

NOUNS = {"tsp": "tour", "cvrp": "routes", "vrp": "routes"}
FILES = (".tsp", ".vrp", ".txt")


def read_start(path: Path, instance: Instance) -> np.ndarray:
    """Return the stops of a solution that a user brings (.tour or .sol).

    Raises NeurouteError if it is none, is of another instance, or of an instance whose solutions nothing improves.
    """
    if instance.problem == "vrp":
        raise NeurouteError(f"--from {path}: solutions of {instance.variant} are built, not improved; leave it out")
    if instance.group.tsplib is not None:
        return read_tour(path, instance.group.tsplib)
    routes, file_cost = read_solution(path)
    try:
        cost = instance.cost(routes)
    except NeurouteError as error:
        raise NeurouteError(f"{path}: {error}") from None
    costs = np.array([cost, float(instance.group.lengths(from_routes(routes)[None])[0])])  # rounded, and not
    if file_cost is not None and (np.abs(costs - file_cost) > TOLERANCE * costs).all():
        raise NeurouteError(
            f"{path}: states a cost of {file_cost:g}, but these routes cost {cost:g} in {instance.name}; if it is no "
            "solution of another instance, leave out its line `Cost`"
        )
    return from_routes(routes)


def solve_file(
    path: Path,
    model: Path | str | None,
    decoding: Decoding | None,
    out: Path | None = None,
    device: str = "auto",
    memory_gb: float | None = None,
    *,
    method: str = "network",
    reference: str | None = None,
    seconds: float | None = None,
    seed: int = 0,
    start: Path | None = None,
    save: Path | None = None,
    trusted: Collection[str] = (),
    say: Callable[[str], None] = lambda line: None,
) -> str:
    """Solve a file and return a line that says how; keep the solution in `save` (.tour or .sol), draw it to `out`.

    As `solve`; `reference`: a solver, whose solution the gap is to; `say` is called with a line before the search
    begins.  Raises NeurouteError, before anything is solved or written, if files and model do not go together, or
    nothing can be written in a place; and, at Ctrl-C, Interrupted with the line, once the best so far is written.

    The time is for loading, too.
    """
    began, time_left = time.perf_counter(), seconds
    if out is not None and out.suffix not in PICTURES:
        raise NeurouteError(f"--out {out}: the drawing must end in .svg, .pdf or .png")
    if start is not None and decoding is not None and (decoding.method != "prc" or decoding.start != "greedy"):
        raise NeurouteError("--from: the solution of a file is improved by --prc, as in --prc 100, without --start")
    if path.suffix not in FILES:
        raise NeurouteError(
            f"{path}: a TSPLIB file (.tsp) or a VRPLIB file (.vrp) is expected, or one of Solomon's (.txt)"
        )
    instance = load(path)
    for option, other in (("--from", start), ("--save", save)):
        if other is not None and other.suffix != ENDINGS[instance.problem]:
            ending = ENDINGS[instance.problem]
            raise NeurouteError(f"{option} {other}: a solution of a {path.suffix} file is a file that ends in {ending}")
    before = None if start is None else read_start(start, instance)
    for solver in {method, reference} - {"network", None}:
        check_method(instance, str(solver))
    loaded = None
    if method == "network":
        from neuroute.user.by_network import check_fit
        from neuroute.user.model import load_model

        loaded = load_model(model or choose_for(instance).name, device, trusted)
        check_fit(instance, loaded)
    for option, target in (("--out", out), ("--save", save)):
        if target is not None:
            check_writable(option, target)
    if loaded is not None and decoding is None:
        time_left = SECONDS if seconds is None else seconds
        say(f"{instance.name}: {instance.variant}, n={instance.n}, with network '{loaded.name}', for {time_left:g} s")
    if time_left is not None and decoding is None:
        time_left = max(time_left - (time.perf_counter() - began), time_left / 2)
    how: dict[str, Any] = {"model": loaded, "decoding": decoding, "start": before}
    solution = yardstick = None
    is_whole = True
    try:
        solution = solve(instance, method, seconds=time_left, seed=seed, memory_gb=memory_gb, **how)
        yardstick = None if reference is None else solve(instance, reference, seconds=seconds, seed=seed)
    except Interrupted as stop:
        is_whole, solution = False, solution or stop.best
        if solution is None:
            raise
    if save is not None:
        solution.save(save)
    if out is not None:
        origin = "" if start is None else f" from {start.name}"
        origin = origin if solution.basis is None else f" from {solution.basis[0]}"
        solution.plot(out, f"{instance.name}: {instance.format(solution.cost)}  ({solution.method}{origin})")
    routes = f"{len(solution.routes)} routes, " if instance.problem != "tsp" else ""
    was = f", before {instance.format(instance.cost(before))}" if before is not None else ""
    gap = f", gap {solution.gap:.2f} %" if solution.gap is not None else ""
    if yardstick is not None:
        to = f"{100 * (solution.cost / yardstick.cost - 1):.2f} % to {yardstick.method}"
        gap += f", {to} ({instance.format(yardstick.cost)} in {yardstick.seconds:.2f} s)"
    places = [] if out is None else [f"in {out}"]
    places += [] if save is None else [f"kept in {save}"]
    line = (
        f"{instance.name}: n={instance.n}, {routes}length {instance.format(solution.cost)} ({instance.distances})"
        f"{was}{gap}, {solution.seconds:.2f} s, {solution.method}{solution.origin}"
    ) + (f"; {NOUNS[instance.problem]} {', '.join(places)}" if places else "")
    if not is_whole:
        raise Interrupted(line)
    return line
