"""Solve a user's file by several solvers, and put their answers into one table; files of distances, too."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.datasets.explicit import MatrixInstance, is_explicit, read_explicit
from neuroute.datasets.sections import read_text
from neuroute.datasets.tsplib import write_tour
from neuroute.datasets.vrplib import write_solution
from neuroute.problems.vrp import Vrp, to_routes
from neuroute.user.classical import File, available, check_seconds, check_solver, solve_with
from neuroute.user.instance import ENDINGS, PICTURES, Instance, Solution
from neuroute.user.outputs import check_writable
from neuroute.user.sources import load

FILES = (".tsp", ".atsp", ".vrp", ".txt")


@dataclass(frozen=True)
class Row:
    """An answer of one method; `stops` as in `Solution`."""

    method: str
    stops: np.ndarray
    cost: float
    seconds: float


def split_names(given: Sequence[str]) -> list[str]:
    """Return the names in options that may hold several, separated by commas, each once."""
    return list(dict.fromkeys(name.strip() for each in given for name in each.split(",") if name.strip()))


def solve_by(
    path: Path,
    solvers: Sequence[str],
    reference: str | None,
    *,
    seconds: float | None = None,
    seed: int = 0,
    out: Path | None = None,
    save: Path | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> str:
    """Solve a file by each solver, the reference among them, and return a table of their answers.

    Gaps are to the reference's length; without one to the best length known, else to the least one here.  The shortest
    solution is drawn to `out` and kept in `save` (.tour or .sol); `say` is called with a line before each search.
    Raises NeurouteError, before anything is solved or written, if a solver cannot solve the file, or
    nothing can be written in a place.
    """
    instance = read_any(path)
    given = solvable(instance)
    names = list(dict.fromkeys([*solvers, *([reference] if reference else [])]))
    if not names and isinstance(instance, MatrixInstance):
        raise no_coordinates(path, instance)
    check_seconds(seconds)
    for name in names:
        check_solver(name, given)
    _check_outputs(path, instance, out, save)
    rows = []
    for name in names:
        say(f"{instance.name}: {name} ...")
        found = solve_with(name, given, seconds, seed)
        rows.append(Row(name, found.solution, cost_of(instance, found.solution), found.seconds))
    best = min(rows, key=lambda row: row.cost)
    if save is not None:
        _keep(save, instance, best)
    if out is not None and isinstance(instance, Instance):
        instance.plot(best.stops, out, f"{instance.name}: {instance.format(best.cost)}  ({best.method})")
    return _table(instance, rows, reference) + (f"\n{best.method}'s solution in {out}" if out is not None else "")


def read_any(path: Path) -> Instance | MatrixInstance:
    """Return the one instance of a file, in coordinates or in distances.  Raises NeurouteError if it has none."""
    if path.suffix not in FILES:
        raise NeurouteError(f"{path}: a file of TSPLIB (.tsp, .atsp) or VRPLIB (.vrp), or one of Solomon's (.txt)")
    return read_explicit(path) if holds_distances(path) else load(path)


def holds_distances(path: Path) -> bool:
    """Whether a file is one of distances instead of coordinates.  Raises NeurouteError if it cannot be read."""
    if path.suffix not in (".tsp", ".vrp"):
        return path.suffix == ".atsp"
    return is_explicit(read_text(path, "a TSPLIB or VRPLIB file"))


def solvable(instance: Instance | MatrixInstance) -> np.ndarray | Vrp | File:
    """Return what `solve_with` takes."""
    if isinstance(instance, MatrixInstance):
        return instance
    return instance.group.file or (instance.coords if instance.problem == "tsp" else instance.vrp)


def no_coordinates(path: Path, instance: MatrixInstance) -> NeurouteError:
    """Say that networks do not take an instance in distances, and which solvers do."""
    names = [name for name in available(instance.problem, instance) if "-" not in name]
    return NeurouteError(
        f"{path}: holds distances, not coordinates, which networks need; solve it with --solver {names[0]} "
        f"(or {', '.join(names[1:])})"
    )


def cost_of(instance: Instance | MatrixInstance, stops: np.ndarray) -> float:
    """Return the cost in the file's own distances.  Raises NeurouteError if it is no solution."""
    return instance.length(stops) if isinstance(instance, MatrixInstance) else instance.cost(stops)


def _check_outputs(path: Path, instance: Instance | MatrixInstance, out: Path | None, save: Path | None) -> None:
    ending = ENDINGS[instance.problem]
    if save is not None and save.suffix != ending:
        raise NeurouteError(f"--save {save}: a solution of a {path.suffix} file is a file that ends in {ending}")
    if out is not None and out.suffix not in PICTURES:
        raise NeurouteError(f"--out {out}: the drawing must end in .svg, .pdf or .png")
    if out is not None and isinstance(instance, MatrixInstance):
        raise NeurouteError(f"--out {out}: {path} holds distances, not coordinates to draw; leave --out out")
    for option, target in (("--out", out), ("--save", save)):
        if target is not None:
            check_writable(option, target)


def _keep(save: Path, instance: Instance | MatrixInstance, best: Row) -> None:
    if isinstance(instance, Instance):
        Solution(instance, best.stops, best.method).save(save)
    elif instance.demand is None:
        write_tour(save, instance, best.stops)
    else:
        write_solution(save, to_routes(best.stops), best.cost)


def _table(instance: Instance | MatrixInstance, rows: list[Row], reference: str | None) -> str:
    def gap(row: Row) -> float:
        if base is None and isinstance(instance, Instance):
            return instance.gap(row.stops) or 0.0  # to the best known, as its library counts
        return 100 * (row.cost / (base or row.cost) - 1)

    base: float | None = None
    if reference:
        base = next(row.cost for row in rows if row.method == reference)
    elif isinstance(instance, MatrixInstance) or instance.best_known is None:
        base = min(row.cost for row in rows)
    if isinstance(instance, MatrixInstance):
        n, kind, to = len(instance.ways) - (instance.demand is not None), instance.problem.upper(), "EXPLICIT"
        kind = kind if instance.symmetric else f"A{kind}"
    else:
        n, kind, to = instance.n, instance.variant, instance.distances
    against = reference or ("the shortest here" if base is not None else "the best known")
    shown = (
        f"{base:,.0f}" if isinstance(instance, MatrixInstance) else instance.format(base or instance.best_known or 0)
    )
    width = max(len(row.method) for row in rows)
    head = f"{'method':{width}}  {'length':>12}  {'gap %':>8}  {'time s':>8}"
    lines = [f"{instance.name}: {kind}, n={n}, {to}; gaps to {against}, {shown}"]
    lines.append(head + ("  routes" if instance.problem != "tsp" else ""))
    for row in sorted(rows, key=lambda row: row.cost):
        length = f"{row.cost:,.0f}" if isinstance(instance, MatrixInstance) else instance.format(row.cost)
        routes = f"  {len(to_routes(row.stops)):6}" if instance.problem != "tsp" else ""
        lines.append(f"{row.method:{width}}  {length:>12}  {gap(row):8.3f}  {row.seconds:8.2f}{routes}")
    return "\n".join(lines)
