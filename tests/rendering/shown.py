"""What artifacts show: cells of a table, the records that these should show, and figures with their texts."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.text import Text

from neuroute.core.dotted import resolve
from neuroute.pipeline.rendering import style
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.style import Drawing
from neuroute.pipeline.rendering.table import Cell, Table

Look = Callable[[str, Path], Study]  # (artifact, work folder) -> what the artifact sees of it


def of(found: Study) -> Any:
    """The table, or the figure."""
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
    return pd.read_csv(path).groupby(["test", "decoding", "metric"]).value.apply(list).to_dict()


def drawn(found: Study, lay_out: bool = False) -> Drawing:
    """In the house style; laid out, where that may fail."""
    with style.house():
        drawing: Drawing = of(found)
        if lay_out:
            drawing.figure.draw_without_rendering()
    return drawing


@cache  # folders that are changed are changed before they are drawn
def drawn_figure(look: Look, name: str, work: Path, lay_out: bool = False) -> Drawing:
    return drawn(look(name, work), lay_out)


def texts(drawing: Drawing) -> list[str]:
    return [t.get_text() for t in drawing.figure.findobj(Text) if t.get_visible() and t.get_text().strip()]
