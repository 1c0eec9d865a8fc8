"""Cells that the tables of several papers share: printed numbers, and measured ones beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from neuroute.core.lazy import pd
from neuroute.rendering.columns import described
from neuroute.rendering.columns import model_here as shape_here
from neuroute.rendering.gaps import single_gap_cell
from neuroute.rendering.table import Cell, Value

if TYPE_CHECKING:
    from neuroute.plan.objects import Dataset, Decoding, Problem
    from neuroute.rendering.study import Study

UNTRAINED = "–"  # for a method that is not measured here
SOLVERS = {
    "concorde": "Concorde",
    "lkh": "LKH",
    "lkh3": "LKH3",
    "hgs": "HGS",
    "hgs-short": "short HGS",
    "insertion": "random insertion",
    "insertion-angle": "insertion by angle",
    "insertion-published": "insertion by angle, as published",
}


def printed(study: Study, table: str, **where: object) -> pd.DataFrame:
    """The paper's numbers whose columns (method, problem, decoding, iters, ...) hold `where`."""
    rows = study.published(table)
    for key, value in where.items():
        rows = rows[rows[key] == value]
    return rows


def number(rows: pd.DataFrame, n: object, metric: str) -> Value:
    """The one printed value of a size; where the paper prints none, what it prints instead: OOM, N/A, — or <1s."""
    found = rows[(rows.n.astype(str) == str(n)) & (rows.metric == metric)]
    if not len(found):
        return None
    value, text = found.value.item(), found.printed.item()
    if pd.isna(text):
        return "N/A"  # which pandas reads as missing
    if pd.isna(value) or str(text).startswith("<"):
        return str(text)
    return float(value)


def model_cells(
    study: Study,
    run: str | None,
    dataset: Dataset,
    rows: pd.DataFrame,
    size: int,
    decoding: Decoding | str = "greedy",
    *,
    total: bool = False,
) -> tuple[Cell, Cell, Cell]:
    """Mean length, gap in % and seconds of one model, per instance or in `total`; `rows` holds the printed ones.

    Without a run the printed ones alone.
    """
    obj, gap, time = (number(rows, size, metric) for metric in ("obj", "gap_pct", "time_s"))
    if run is None:
        return Cell(None, obj), Cell(None, gap), Cell(None, time)
    at = described(dataset)
    seconds = study.value("time_s", run, dataset, decoding)
    if seconds is not None and not total:
        seconds /= dataset.count
    return (
        Cell(study.value("length", run, dataset, decoding), obj, at=at),
        gap_cell(study, run, dataset, gap, decoding),
        Cell(seconds, time, at=at),
    )


def gap_cell(
    study: Study, run: str, dataset: Dataset, published: Value = None, decoding: Decoding | str = "greedy"
) -> Cell:
    """The gap in % of one training, with its bootstrap interval where there are several instances.

    `published` may be text.
    """
    cell = single_gap_cell(study, run, dataset, None, decoding)
    if dataset.count == 1:
        cell = replace(cell, low=None, high=None)
    return replace(cell, published=published, at=described(dataset))


def model_here(study: Study, run: str | None) -> str:
    """Depth and width of a run's network; a dash for a method that is not trained here."""
    return shape_here(study, run) if run is not None and run in study.runs else UNTRAINED


def with_budget(label: str, paper: int, here: int) -> str:
    """PRC100, or `PRC100, here 10`."""
    return label if paper == here else f"{label}, here {here:,}"


def both(at: Mapping[Problem, str]) -> str:
    """What the columns that two problems share were measured on."""
    return " and ".join(at.values())


def solver_name(solver: str) -> str:
    return SOLVERS.get(solver, solver)
