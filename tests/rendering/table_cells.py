"""Cells of a table, and the records that they should show."""

from functools import cache
from pathlib import Path

import pandas as pd

from neuroute.core.dotted import resolve
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.table import Cell, Table


def of(found: Study) -> Table:
    return resolve(found.artifact.function)(found)


def row(table: Table, *labels: str) -> tuple[Cell, ...]:
    (found,) = [r.cells for r in table.rows if r.labels[: len(labels)] == labels]
    return found


def cell(table: Table, column: str, *labels: str) -> Cell:
    return row(table, *labels)[[c.key for c in table.columns].index(column)]


def recorded(work: Path, evaluation: str, test: str, decoding: str, metric: str) -> float:
    """Of a run with several trainings the mean."""
    run, _, group = evaluation.rpartition("/")
    first, every = work / "evaluations" / run, []
    for folder in [first, *sorted(first.parent.glob(f"{first.name}-s[0-9]"))]:
        path = folder / f"{group}.csv"
        every += _values(path, path.stat().st_mtime_ns)[test, decoding, metric]
    return sum(every) / len(every)


@cache  # of a file as it was written last
def _values(path: Path, written: int) -> dict[tuple[str, str, str], list[float]]:
    frame = pd.read_csv(path)
    values: dict[tuple[str, str, str], list[float]] = {}
    for *key, value in zip(frame.test, frame.decoding, frame.metric, frame.value, strict=True):
        values.setdefault((key[0], key[1], key[2]), []).append(float(value))
    return values
