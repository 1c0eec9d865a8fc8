"""Drawings of papers that print nothing (rivals, sweeps, studies of our own): each run and each size has its place."""

from pathlib import Path
from typing import Any

import pytest

from fabricated import Fabric
from neuroute.pipeline.papers.rivals.paper import PAPER as RIVALS
from neuroute.pipeline.papers.rivals.paper import RivalsScale, rivals
from neuroute.pipeline.papers.sweep.paper import PAPER as SWEEP
from neuroute.pipeline.plan.build import build_plan
from neuroute.pipeline.plan.config import Config, load_config, load_scale
from neuroute.specs.objects import Dataset, Decoding, Run
from shown import cell, drawn, of

ROOT = Path(__file__).resolve().parents[3]


def gap(run: Run, dataset: Dataset, decoding: Decoding) -> float:
    """Less of deeper networks, more on larger instances."""
    return 20.0 / float(run.network.arguments.get("depth", 1)) + 0.1 * dataset.n


def test_equal_budgets_show_all_sizes_of_all_networks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    plan = build_plan(load_config(ROOT / "extras" / "studies" / "config.yaml"))
    fabric = Fabric(paper=plan.papers["equal_budgets"], scale=plan.scale, gap=gap, logged=("equal_budgets",))
    work = fabric.write(tmp_path)
    table, figure = of(fabric.study("table1", work)), drawn(fabric.study("figure1", work))
    sizes = [column.key for column in table.columns if column.key.startswith("gap")]
    assert sizes == [f"gap_{n}_pct" for n in (50, 100, 200, 500)]
    assert len(table.rows) == 2 * 2 * 4 * 2  # budgets, problems, networks, decodings
    assert len(figure.points) == len(table.rows) * len(sizes)


def test_every_rival_stands_beside_nearest_neighbour(tmp_path: Path) -> None:
    fabric = Fabric(RIVALS, load_scale("smoke"), gap, solvers={"nearest": 25.0}, logged=("rivals",))
    table, every = of(fabric.study("table1", fabric.write(tmp_path))), rivals(Config(), fabric.scale)
    assert [row.labels[:2] for row in table.rows] == [(each.system, each.run.name) for each in every]
    assert len({row.labels for row in table.rows}) == len(every)  # GLOP-G is trained for several sizes
    for row, each in zip(table.rows, every, strict=True):
        labels = tuple(map(str, row.labels))
        expected = gap(each.run, each.test.dataset, each.decoding)
        assert cell(table, "gap_pct", *labels).measured == pytest.approx(expected, rel=0.05)
        assert cell(table, "nearest_pct", *labels).measured == pytest.approx(25, rel=0.2)
    bare = fabric.by(scale=fabric.scale.with_block(RivalsScale()))
    assert bare.runs == []
    assert bare.artifacts == {}


@pytest.mark.parametrize(
    ("run", "grid", "seeds"),
    [
        ("pens/pens_a", {"arguments.depth": [1, 2, 4], "training.learning_rate": ["1e-4", 2e-4]}, 2),
        ("pens/pens_a", {"training.keep": ["last", "best"], "arguments.depth": [1, 2]}, 1),
        ("mvmoe/mtl_50", {"seed": [0, 1, 7]}, 1),
    ],
)
def test_every_point_of_a_sweep_has_its_row_and_its_place(
    run: str, grid: dict[str, list[Any]], seeds: int, tmp_path: Path
) -> None:
    changes = {"sweep": {"run": run, "grid": grid, "test_count": 20}, "seeds": {"sweep/*": seeds}}
    fabric = Fabric(SWEEP, load_scale("smoke", ["sweep", run.partition("/")[0]], changes), gap, logged=("sweep",))
    work = fabric.write(tmp_path)
    table, figure = of(fabric.study("table1", work)), drawn(fabric.study("figure1", work))
    points = [run for run in fabric.runs if run.paper == "sweep" and "-s" not in run.name]
    assert len(table.rows) == len(points) == len(figure.points)
    sets = [column for column in table.columns if column.group == "Gap"]
    assert len(sets) == 1 + len(points[0].also_validation)
    first = [column.key for column in table.columns].index(sets[0].key)
    for row, point, drawn_gap in zip(table.rows, points, figure.points.gap_pct, strict=True):
        expected = gap(point, point.validation.dataset, Decoding())
        assert row.cells[first].measured == pytest.approx(expected, rel=0.05)
        assert drawn_gap == row.cells[first].measured
    (axes,) = figure.figure.axes
    marks = [line for line in axes.lines if line.get_marker() not in ("None", "_", None)]
    assert [len(line.get_xdata()) for line in marks] == [len(next(iter(grid.values())))] * len(marks)
