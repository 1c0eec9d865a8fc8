"""Rows of classical solvers in Tables 1 and 2 of paper `mvmoe`, from the manifests of label jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from neuroute.papers.mvmoe import roles
from neuroute.papers.mvmoe.methods import BUDGETS, rows_of, solver_name
from neuroute.papers.mvmoe.roles import X8
from neuroute.rendering.cells import UNTRAINED, number
from neuroute.rendering.solver_cells import TIMES, Solvers
from neuroute.rendering.table import Cell, Row

if TYPE_CHECKING:
    import pandas as pd

    from neuroute.plan.config import Scale
    from neuroute.plan.objects import Labels
    from neuroute.rendering.comparison import Method

SOLVER_NOTES = (f"Times are totals over the test set; the paper's solvers had 32 cores, its models one A100. {TIMES}",)


def budgets_note(scale: Scale, variants: Sequence[str]) -> str:
    """When the searches of the solvers end that are run on these problems."""
    every = (
        labels.solver for variant in variants for size in roles.SIZES for labels in roles.solved(scale, variant, size)
    )
    told = [f"{solver_name(solver)} {BUDGETS[solver]}" for solver in dict.fromkeys(every) if solver in BUDGETS]
    return f"Budgets of solvers here (in the paper): {', '.join(told)}. The paper has HGS for VRPTW, too, and no PyVRP."


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
    """Mean length, mean of the instances' gaps in %, and seconds in all."""
    dataset = reference.dataset
    every = (solvers.study.lengths(run, dataset, X8) for run in runs)
    stored = next((kept for kept in every if kept is not None), None)
    best = stored[1] if stored else solvers.lengths(dataset, reference.solver)
    own = best if solver == reference.solver else solvers.lengths(dataset, solver)
    seconds = solvers.seconds(dataset, solver)
    total = None if seconds is None else seconds * dataset.count
    if own is None or best is None:
        return None if own is None else float(own.mean()), None, total
    return float(own.mean()), 100 * float(np.mean(own / best - 1)), total


def _with_version(solvers: Solvers, reference: Labels, solver: str) -> str:
    entry = solvers.entry(reference.dataset, solver)
    version = entry.get("version") if entry else None
    return f"{solver_name(solver)} ({version})" if version else solver_name(solver)
