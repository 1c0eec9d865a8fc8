"""Solve an instance, or a file: by a network, which may also improve a solution, or by solvers.

What networks need, torch above all, is imported when one is asked for.
"""

import sys
from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from tqdm import tqdm

from neuroute.analysis.intervals import gap_pct
from neuroute.api import within_time
from neuroute.api.classical import available, check_solver, describe_search, problem_of, without_presets
from neuroute.api.files import as_instance, load
from neuroute.api.solution import ENDINGS, Best, Solution, check_numbers, describe, without
from neuroute.api.within_time import solve_within
from neuroute.api.zoo import choose
from neuroute.core import limited
from neuroute.core.errors import Interrupted, NeurouteError
from neuroute.core.files import PICTURES, check_writable
from neuroute.problems.instances.arrays import TOLERANCE
from neuroute.problems.instances.instance import Instance
from neuroute.problems.instances.tsplib import read_solution, read_tour
from neuroute.problems.vrp import from_routes
from neuroute.specs.objects import Decoding

if TYPE_CHECKING:
    from neuroute.api.model import Model

SECONDS = 10.0  # of a network's search
BUILD_SHARE = 10  # of the time a tenth, after which savings try no further shape


def solve(
    instance: Instance | str | Path | np.ndarray,
    method: str = "network",
    *,
    model: "Model | str | Path | None" = None,
    seconds: float | None = None,
    decoding: Decoding | str | None = None,
    start: Any = None,
    seed: int = 0,
    device: str = "auto",
    memory_gb: float | None = None,
    trusted: Collection[str] = (),
    follow: Callable[[Best], object] | None = None,
    threads: int | None = None,
) -> Solution:
    """Solve an instance.

    Args:
        instance: the problem, a file that `neuroute.load` reads, or coordinates (n, 2) of a TSP.
        method: `network`, or a solver (`neuroute.methods`).
        model: of method `network`: a loaded one, the name of a shipped one (`neuroute.models`) or a checkpoint; None:
            the shipped one for the instance's problem and size.
        seconds: of wall-clock time for the search, from when network or solver is ready; it makes one solution at
            least, whatever that takes (a solver has a minute more for it).  None: 10 for a network, and for a solver
            what its module says.  0: a network's own first solution.
        decoding: instead of a time, how a network builds its solution, or its name, such as `multistart`.
        start: a solution to improve (see `Instance.check`), which never gets longer in the instance's own distances.
        seed: of what is drawn, below 2**32; a search that ends by the clock still differs from run to run.
        device: `auto` (a GPU where there is one), `cpu` or `cuda`.
        memory_gb: for activations; None: 4 on a CPU, 60 % of what a GPU has free.
        trusted: kinds of networks outside this package that a checkpoint may name, as "module:Class".
        follow: called with the best so far (its `cost`, `seconds`, `iterations`) when it gets better, and now and then.
        threads: of a network on a CPU; None: one or all, by which is faster.

    Returns:
        The best solution found, which is checked.  Where a solver crashed, or had none, a construction stands in, and
        `fallback` says why.

    Raises:
        NeurouteError: if the method or the model is unknown, or is not for this instance.
        Interrupted: a KeyboardInterrupt, at Ctrl-C; its `best` is the best solution so far, or None.
    """
    instance = as_instance(instance)
    if not isinstance(seconds, int | float | np.number | None):
        raise NeurouteError(f"seconds: {seconds!r} is no time; give a number from 0 on")
    if method != "network":
        if model is not None or decoding is not None or start is not None:
            raise NeurouteError(f"method '{method}': model, decoding and start are of method 'network'; leave them out")
        return solve_within(method, instance, seconds, seed, follow)
    stops = None if start is None else Solution(instance, instance.stops_of(start)).stops
    how = (model, seconds, decoding, stops, seed, device, memory_gb, trusted, follow, threads)
    return solve_by_model(instance, *how)


def solve_by_model(
    instance: Instance,
    model: "Model | str | Path | None",
    seconds: float | None,
    decoding: Decoding | str | None,
    start: np.ndarray | None,
    seed: int,
    device: str,
    memory_gb: float | None,
    trusted: Collection[str],
    follow: Callable[[Best], object] | None = None,
    threads: int | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Solution:
    """Do what `solve` does by a network; `say` is called with a line before a search."""
    if seconds is not None and not (seconds >= 0 and np.isfinite(seconds)):
        raise NeurouteError(f"seconds: {seconds:g} is no time; give a number from 0 on")
    check_numbers(memory_gb, seed=seed, threads=threads)
    seed = int(seed)  # of numpy's integers generators take none
    check_coordinates(instance)
    best, total = Best(instance, follow), SECONDS if seconds is None else seconds
    if model is None:
        model = choose(instance.problems, instance.variant, instance.n, instance.name).name
    is_search = decoding is None and start is None and total > 0
    with limited.borrow() if is_search else nullcontext() as process:
        if process is not None:  # a construction is made while torch is loaded
            process.submit(f"{within_time.__name__}:start_of_search", instance, total / BUILD_SHARE, seed)

        def built() -> Solution | None:
            with suppress(NeurouteError):
                return None if process is None else cast(Solution, process.result(None))
            return None

        from neuroute.api.by_network import check_fit, solve_by_network
        from neuroute.api.model import Model, load_model

        if not isinstance(model, Model):
            model = load_model(model, device, trusted)
        check_fit(instance, model)
        if decoding is None:
            say(f"{instance.name}: {instance.variant}, n={instance.n}, with network '{model.name}', for {total:g} s")
        return solve_by_network(instance, model, decoding, total, built, start, seed, memory_gb, best, threads)


def methods(problem: str = "tsp") -> list[str]:
    """Return the methods of `solve` that are installed.

    The papers' settings of a solver, such as `ortools-x10` (ten times the time), are methods, too: `neuroute doctor`
    lists them.

    Args:
        problem: `tsp`, `cvrp`, one of the 16 vehicle routing problems, such as `ovrptw`, or `vrp`: all of these.

    Raises:
        NeurouteError: for an unknown problem.
    """
    return ["network", *without_presets(available(problem))]


def check_coordinates(instance: Instance) -> None:
    """Raises NeurouteError, naming solvers, for an instance in distances, which networks do not take."""
    if instance.ways is not None:
        names = [name for name in available(problem_of(instance), instance) if "-" not in name]
        raise NeurouteError(
            f"{instance.name}: holds distances, not coordinates, which networks need; solve it with --solver "
            f"{names[0]} (or {', '.join(names[1:])})"
        )


NOUNS = {"tsp": "tour", "cvrp": "routes", "vrp": "routes"}
Say = Callable[[str], None]


@dataclass(frozen=True)
class Places:
    """Where the solution goes: a drawing (.svg, .pdf, .png), and a file (.tour or .sol)."""

    out: Path | None = None
    save: Path | None = None

    def check(self, instance: Instance, path: Path) -> None:
        """Raises NeurouteError if nothing of an instance can be written there."""
        ending = ENDINGS[instance.problem]
        if self.save is not None and self.save.suffix != ending:
            raise NeurouteError(
                f"--save {self.save}: a solution of a {path.suffix} file is a file that ends in {ending}"
            )
        if self.out is not None and instance.ways is not None:
            raise NeurouteError(f"--out {self.out}: {path} holds distances, not coordinates to draw; leave --out out")
        for option, target in (("--out", self.out), ("--save", self.save)):
            if target is not None:
                check_writable(option, target)

    def write(self, solution: Solution, origin: str = "") -> None:
        """Draw and keep a solution; `origin` ends the drawing's title."""
        if self.save is not None:
            solution.save(self.save)
        if self.out is not None:
            instance = solution.instance
            cost = instance.format(solution.cost)
            solution.plot(self.out, f"{instance.name}: {cost}  ({solution.method}{origin})")


def split_names(options: Sequence[str]) -> list[str]:
    """Return the names in options that may hold several, separated by commas, each once."""
    return list(dict.fromkeys(name.strip() for each in options for name in each.split(",") if name.strip()))


def read_start(path: Path, instance: Instance) -> np.ndarray:
    """Return the stops of a solution that a user brings (.tour or .sol).

    Raises NeurouteError if it is none, is of another instance, or of an instance whose solutions nothing improves.
    """
    if instance.problem == "vrp":
        raise NeurouteError(f"--from {path}: solutions of {instance.variant} are built, not improved; leave it out")
    if instance.problem == "tsp":
        return read_tour(path, instance)
    routes, file_cost = read_solution(path)
    try:
        stops = from_routes(routes)
        costs = np.array([instance.length(routes, rounded) for rounded in (True, False)])
    except NeurouteError as error:
        raise NeurouteError(f"{path}: {error}") from None
    if file_cost is not None and (np.abs(costs - file_cost) > TOLERANCE * costs).all():
        raise NeurouteError(
            f"{path}: states a cost of {file_cost:g}, but its routes cost {costs[0]:g} in {instance.name}; take this "
            "instance's solution, or remove the line `Cost`"
        )
    return stops


def solve_file(
    path: Path,
    model: Path | str | None = None,
    decoding: Decoding | str | None = None,
    out: Path | None = None,
    device: str = "auto",
    memory_gb: float | None = None,
    *,
    solvers: Sequence[str] = (),
    reference: str | None = None,
    seconds: float | None = None,
    seed: int = 0,
    start: Path | None = None,
    save: Path | None = None,
    ignore: Sequence[str] = (),
    trusted: Collection[str] = (),
    threads: int | None = None,
    say: Say = lambda line: None,
) -> tuple[str, bool]:
    """Solve a file and return a line that says how; keep the solution in `save` (.tour or .sol), draw it to `out`.

    As `solve`, by a network or a solver; by several solvers, a table of their answers, of which the shortest is kept
    and drawn.  Returns, too, whether a construction stands in for a method that was asked for.

    reference: a solver, whose solution gaps are to; of a table, without one, gaps are to the best length known, else to
    the least one here.  ignore: keys and sections of the file that are left out.  say: called with a line before each
    search begins.

    Raises NeurouteError, before anything is solved or written, if files and model do not go together, or nothing can be
    written in a place; and, at Ctrl-C, Interrupted with the line or table, once the best so far is written.
    """
    if out is not None and out.suffix not in PICTURES:
        raise NeurouteError(f"--out {out}: the drawing must end in .svg, .pdf or .png")
    improves = isinstance(decoding, Decoding) and (decoding.method, decoding.start) == ("prc", "greedy")
    if start is not None and decoding is not None and not improves:
        raise NeurouteError("--from: the solution of a file is improved by --prc, as in --prc 100, without --start")
    instance, places = load(path, ignore=ignore), Places(out, save)
    names = list(dict.fromkeys([*solvers, *([reference] if reference else [])]))
    if instance.ways is not None and not solvers:
        check_coordinates(instance)  # which says that networks take no distances
    if start is not None and start.suffix != ENDINGS[instance.problem]:
        ending = ENDINGS[instance.problem]
        raise NeurouteError(f"--from {start}: a solution of a {path.suffix} file is a file that ends in {ending}")
    before = None if start is None else read_start(start, instance)
    places.check(instance, path)
    if len(solvers) > 1:
        return _table_by_each(instance, names, reference, places, seconds, seed, say), False
    for name in names:
        check_solver(name, instance)
    solution = yardstick = None
    is_whole = True
    with Follower() as follow:
        try:
            if solvers:
                solution = solve_within(solvers[0], instance, seconds, seed, follow)
            else:
                how = (model, seconds, decoding, before, seed, device, memory_gb, trusted)
                solution = solve_by_model(instance, *how, follow, threads, say)
            yardstick = None if reference is None else solve_within(reference, instance, seconds, seed, follow)
        except Interrupted as stop:
            is_whole, solution = False, solution or stop.best
            if solution is None:
                raise
    origin = solution.basis[0] if solution.basis is not None else "" if start is None else start.name
    places.write(solution, f" from {origin}" if origin else "")
    search = "" if yardstick is None or reference is None else describe_search(reference, seed)
    line = describe(solution, None if before is None else instance.cost(before), yardstick, search)
    there = [] if out is None else [f"in {out}"]
    there += [] if save is None else [f"kept in {save}"]
    line += f"; {NOUNS[instance.problem]} {', '.join(there)}" if there else ""
    if not is_whole:
        raise Interrupted(line)
    return line, bool(solution.fallback or (yardstick and yardstick.fallback))


class Follower:
    """Shows on a terminal how far a search is; a bar of nothing but text."""

    def __enter__(self) -> Callable[[Best], object]:
        self._bar = tqdm(bar_format="{desc}", leave=False, disable=not sys.stderr.isatty())
        return self._show

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def _show(self, best: Best) -> None:
        cost = best.instance.format(best.cost)
        self._bar.set_description_str(f"{cost} after {best.seconds:.1f} s, {best.iterations:,} solutions")


def _table_by_each(
    instance: Instance,
    names: Sequence[str],
    reference: str | None,
    places: Places,
    seconds: float | None,
    seed: int,
    say: Say,
) -> str:
    """Return a table with a row for each solver; who refuses, crashes or has nothing has one that says so."""
    solutions, failures, is_whole = dict[str, Solution](), dict[str, str](), True
    for name in names:
        say(f"{instance.name}: {name} ...")
        try:
            with Follower() as follow:
                solutions[name] = solve_within(name, instance, seconds, seed, follow, stands_in=False)
        except Interrupted as stop:
            is_whole = False
            if stop.best is not None and not stop.best.fallback:
                solutions[name] = stop.best
            break
        except NeurouteError as error:
            failures[name] = str(error)
    if not solutions:
        raise NeurouteError("; ".join(failures.values())) if is_whole else Interrupted
    best = min(solutions.values(), key=lambda each: each.cost)
    places.write(best)
    table = _table(list(solutions.values()), solutions.get(reference or ""))
    table += f", {describe_search(reference, seed)}" if reference in solutions else ""
    width = max(map(len, names))
    table += "".join(f"\n{name:{width}}  {'-':>12}  {why}" for name, why in failures.items())
    table += "".join(f"\n{name}: {each.note}" for name, each in solutions.items() if each.note)
    table += f"\n{best.method}'s solution in {places.out}" if places.out is not None else ""
    if not is_whole:
        raise Interrupted(table)
    return table


def _table(solutions: Sequence[Solution], reference: Solution | None) -> str:
    """Return a row for each; gaps are to the reference, if there is one."""
    instance = solutions[0].instance
    base = reference.cost if reference else None
    if base is None and instance.best_known is None:
        base = min(each.cost for each in solutions)
    against = reference.method if reference else ("the shortest here" if base is not None else "the best known")
    base_text = instance.format(base or instance.best_known or 0)
    width = max(len(each.method) for each in solutions)
    has_routes = instance.problem != "tsp"
    lines = [
        f"{instance.name}: {instance.variant}, n={instance.n}, {instance.distances}{without(instance)}; gaps to "
        f"{against}, {base_text}",
        f"{'method':{width}}  {'length':>12}  {'gap %':>8}  {'time s':>8}{'  routes' if has_routes else ''}",
    ]
    for each in sorted(solutions, key=lambda each: each.cost):
        gap = (each.gap or 0.0) if base is None else gap_pct(each.cost, base)
        routes = f"  {len(each.routes):6}" if has_routes else ""
        length = instance.format(each.cost)
        lines.append(f"{each.method:{width}}  {length:>12}  {gap:8.3f}  {each.seconds:8.2f}{routes}")
    return "\n".join(lines)
