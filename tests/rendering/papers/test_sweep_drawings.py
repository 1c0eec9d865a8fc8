"""The table and the figure of a sweep: a row and a mark for each point, whatever its values are."""

from pathlib import Path
from typing import Any

import pytest

from fabricated import Fabric
from neuroute.pipeline.papers.sweep.paper import PAPER
from neuroute.pipeline.papers.sweep.tables import figure1, table1
from neuroute.pipeline.plan.config import load_scale
from neuroute.specs.objects import Dataset, Decoding, Run


def gap(run: Run, dataset: Dataset, decoding: Decoding) -> float:
    """Less of deeper networks."""
    return 20.0 / float(run.network.arguments.get("depth", 1)) + dataset.n / 100


def fabric_of(run: str, grid: dict[str, Any], seeds: int = 1) -> Fabric:
    block = {"run": run, "grid": grid, "test_count": 20}
    scale = load_scale("smoke", ["sweep", run.partition("/")[0]], {"sweep": block, "seeds": {"sweep/*": seeds}})
    return Fabric(paper=PAPER, scale=scale, gap=gap, logged=("sweep",))


@pytest.mark.parametrize(
    ("run", "grid", "seeds"),
    [
        ("pens/pens_a", {"arguments.depth": [1, 2, 4], "training.learning_rate": ["1e-4", 2e-4]}, 2),
        ("pens/pens_a", {"training.keep": ["last", "best"], "arguments.depth": [1, 2]}, 1),
        ("mvmoe/mtl_50", {"seed": [0, 1, 7]}, 1),
    ],
)
def test_every_point_has_its_row_and_its_place(
    run: str, grid: dict[str, list[Any]], seeds: int, tmp_path: Path
) -> None:
    fabric = fabric_of(run, grid, seeds)
    work = fabric.write(tmp_path)
    table, drawn = table1(fabric.study("table1", work)), figure1(fabric.study("figure1", work))
    points = [run for run in fabric.runs if run.paper == "sweep" and "-s" not in run.name]
    assert len(table.rows) == len(points) == len(drawn.points)
    sets = [column for column in table.columns if column.group == "Gap"]
    assert len(sets) == 1 + len(points[0].also_validation)
    first = [column.key for column in table.columns].index(sets[0].key)
    for row, point, drawn_gap in zip(table.rows, points, drawn.points.gap_pct, strict=True):
        expected = gap(point, point.validation.dataset, Decoding())
        assert row.cells[first].measured == pytest.approx(expected, rel=0.05)
        assert drawn_gap == row.cells[first].measured
    (axes,) = drawn.figure.axes
    marks = [line for line in axes.lines if line.get_marker() not in ("None", "_", None)]
    assert [len(line.get_xdata()) for line in marks] == [len(next(iter(grid.values())))] * len(marks)
