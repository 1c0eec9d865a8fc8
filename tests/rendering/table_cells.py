"""Cells of a table, and the records that they should show."""

from pathlib import Path

import pandas as pd

from neuroute.core.dotted import resolve
from neuroute.rendering.study import Study
from neuroute.rendering.table import Cell, Table


def of(found: Study) -> Table:
    return resolve(found.artifact.function)(found)


def row(table: Table, *labels: str) -> tuple[Cell, ...]:
    (found,) = [r.cells for r in table.rows if r.labels[: len(labels)] == labels]
    return found


def cell(table: Table, column: str, *labels: str) -> Cell:
    return row(table, *labels)[[c.key for c in table.columns].index(column)]


def recorded(work: Path, evaluation: str, test: str, decoding: str, metric: str) -> float:
    frame = pd.read_csv(work / "evaluations" / f"{evaluation}.csv")
    where = (frame.test == test) & (frame.decoding == decoding) & (frame.metric == metric)
    return float(frame.loc[where, "value"].item())
