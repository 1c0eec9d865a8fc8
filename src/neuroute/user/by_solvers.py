"""Solve a user's file by several solvers, and put their answers into one table."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neuroute.core.errors import Interrupted, NeurouteError
from neuroute.problems.vrp import to_routes
from neuroute.user.classical import check_seconds, check_solver
from neuroute.user.instance import Instance
from neuroute.user.outputs import PICTURES, check_writable
from neuroute.user.solution import ENDINGS, Solution
from neuroute.user.solve import choose_for
from neuroute.user.sources import load
from neuroute.user.within_time import solve_within

FILES = (".tsp", ".atsp", ".vrp", ".txt")


@dataclass(frozen=True)
class Row:
    """An answer of one method; `stops` as in `Solution`."""

    method: str
    stops: np.ndarray
    cost: float
    seconds: float


def split_names(options: Sequence[str]) -> list[str]:
    """Return the names in options that may hold several, separated by commas, each once."""
    return list(dict.fromkeys(name.strip() for each in options for name in each.split(",") if name.strip()))


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
    Ctrl-C ends the table with the solver that was at work, and raises Interrupted with it.

    Raises NeurouteError, before anything is solved or written, if a solver cannot solve the file, or nothing can be
    written in a place.
    """
    if path.suffix not in FILES:
        raise NeurouteError(f"{path}: a file of TSPLIB (.tsp, .atsp) or VRPLIB (.vrp), or one of Solomon's (.txt)")
    instance = load(path)
    names = list(dict.fromkeys([*solvers, *([reference] if reference else [])]))
    if not names:
        choose_for(instance)  # which says that networks take no distances
    check_seconds(seconds)
    for name in names:
        check_solver(name, instance.for_solvers())
    _check_outputs(path, instance, out, save)
    rows, notes, is_whole = [], [], True
    for name in names:
        say(f"{instance.name}: {name} ...")
        try:
            answer = solve_within(name, instance, seconds, seed)
        except Interrupted as stop:
            is_whole, answer = False, stop.best
        rows.append(Row(answer.solver, answer.solution, instance.cost(answer.solution), answer.seconds))
        notes += [f"\n{name}: {answer.note}"] if answer.note else []
        if not is_whole:
            break
    best = min(rows, key=lambda row: row.cost)
    if save is not None:
        Solution(instance, best.stops, best.method).save(save)
    if out is not None:
        instance.plot(best.stops, out, f"{instance.name}: {instance.format(best.cost)}  ({best.method})")
    is_measured = any(row.method.split()[-1] == reference for row in rows)  # it comes last, and may be missing
    table = _table(instance, rows, reference if is_measured else None) + "".join(notes)
    table += f"\n{best.method}'s solution in {out}" if out is not None else ""
    if not is_whole:
        raise Interrupted(table)
    return table


def _check_outputs(path: Path, instance: Instance, out: Path | None, save: Path | None) -> None:
    ending = ENDINGS[instance.problem]
    if save is not None and save.suffix != ending:
        raise NeurouteError(f"--save {save}: a solution of a {path.suffix} file is a file that ends in {ending}")
    if out is not None and out.suffix not in PICTURES:
        raise NeurouteError(f"--out {out}: the drawing must end in .svg, .pdf or .png")
    if out is not None and instance.matrix is not None:
        raise NeurouteError(f"--out {out}: {path} holds distances, not coordinates to draw; leave --out out")
    for option, target in (("--out", out), ("--save", save)):
        if target is not None:
            check_writable(option, target)


def _table(instance: Instance, rows: list[Row], reference: str | None) -> str:
    def gap(row: Row) -> float:
        if base is None:
            return instance.gap(row.stops) or 0.0  # to the best known, as its library counts
        return 100 * (row.cost / base - 1)

    base: float | None = None
    if reference:
        base = next(row.cost for row in rows if row.method.split()[-1] == reference)
    elif instance.best_known is None:
        base = min(row.cost for row in rows)
    against = reference or ("the shortest here" if base is not None else "the best known")
    base_text = instance.format(base or instance.best_known or 0)
    width = max(len(row.method) for row in rows)
    head = f"{'method':{width}}  {'length':>12}  {'gap %':>8}  {'time s':>8}"
    lines = [
        f"{instance.name}: {instance.variant}, n={instance.n}, {instance.distances}; gaps to {against}, {base_text}"
    ]
    lines.append(head + ("  routes" if instance.problem != "tsp" else ""))
    for row in sorted(rows, key=lambda row: row.cost):
        length = instance.format(row.cost)
        routes = f"  {len(to_routes(row.stops)):6}" if instance.problem != "tsp" else ""
        lines.append(f"{row.method:{width}}  {length:>12}  {gap(row):8.3f}  {row.seconds:8.2f}{routes}")
    return "\n".join(lines)
