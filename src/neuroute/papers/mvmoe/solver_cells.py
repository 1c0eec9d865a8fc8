"""Rows of classical solvers in Tables 1 and 2 of paper `mvmoe`, from the manifests of label jobs."""

from collections.abc import Mapping, Sequence

import pandas as pd

from neuroute.papers.mvmoe import roles
from neuroute.papers.mvmoe.methods import rows_of, solver_name
from neuroute.papers.mvmoe.roles import X8
from neuroute.papers.sit.cells import UNTRAINED, number
from neuroute.papers.sit.methods import Method
from neuroute.papers.sit.solver_cells import TIMES, Solvers
from neuroute.plan.objects import Labels
from neuroute.rendering.table import Cell, Row

SOLVER_NOTES = (
    "Solvers' gaps here are ratios of mean lengths, as label jobs keep no other; the printed ones are means of the "
    "instances' gaps.",
    f"Times are totals over the test set; the paper's solvers had 32 cores, its models one A100. {TIMES}",
)


def solver_row(
    solvers: Solvers,
    variant: str,
    method: Method,
    tests: Mapping[int, Labels],
    printed: pd.DataFrame,
    runs: Sequence[str],
) -> Row:
    """(problem, method, solver here) and length, gap in % and total seconds on the test set of each size.

    `printed` is of this problem; The evaluations of some of `runs` keep the lengths of the reference solutions.
    """
    shown, cells, here = rows_of(printed, method), [], dict[str, None]()
    for size, reference in tests.items():
        values: tuple[float | None, ...] = (None, None, None)
        solver = _ran(solvers, reference, method.solvers, size)
        if solver is not None:
            values = _measured(solvers, reference, solver, runs)
            here[_with_version(solvers, reference, solver)] = None
        metrics = ("obj", "gap_pct", "time_s")
        cells += [Cell(v, number(shown, size, metric)) for v, metric in zip(values, metrics, strict=True)]
    return Row((variant, method.label, ", ".join(here) or UNTRAINED), tuple(cells))


def _ran(solvers: Solvers, reference: Labels, names: Sequence[str], size: int) -> str | None:
    """The first of these solvers that has solved the test set."""
    variant = str(reference.dataset.variant)
    planned = [labels.solver for labels in roles.solved(solvers.study.scale, variant, size)]
    return next((s for s in names if s in planned and solvers.entry(reference.dataset, s) is not None), None)


def _measured(solvers: Solvers, reference: Labels, solver: str, runs: Sequence[str]) -> tuple[float | None, ...]:
    """Mean length, gap in % and seconds in all; the reference solver's gap is 0 by construction."""
    dataset = reference.dataset
    every = (solvers.study.lengths(run, dataset, X8) for run in runs)
    stored = next((kept for kept in every if kept is not None), None)
    best = float(stored[1].mean()) if stored else solvers.mean(dataset, reference.solver)
    mean = best if solver == reference.solver else solvers.mean(dataset, solver)
    gap = None if mean is None or best is None else 100 * (mean / best - 1)
    seconds = solvers.seconds(dataset, solver)
    return mean, gap, None if seconds is None else seconds * dataset.count


def _with_version(solvers: Solvers, reference: Labels, solver: str) -> str:
    entry = solvers.entry(reference.dataset, solver)
    version = entry.get("version") if entry else None
    return f"{solver_name(solver)} ({version})" if version else solver_name(solver)
