"""Cells of paper `sit`'s tables, and the records that they should show."""

from functools import cache
from pathlib import Path

import pandas as pd
from fabricated_sit import SCALE, study

from neuroute.dotted import resolve
from neuroute.papers.sit import roles
from neuroute.rendering.study import Study
from neuroute.rendering.table import Cell, Table

SHORT = {1000: "1k", 5000: "5k", 10_000: "10k", 50_000: "50k", 100_000: "100k"}


@cache  # folders that are changed are changed before they are drawn
def draw(name: str, work: Path) -> Table:
    return of(study(name, work))


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


def set_id(problem: str, size: int) -> str:
    return roles.reference(SCALE, problem, size).dataset.id
