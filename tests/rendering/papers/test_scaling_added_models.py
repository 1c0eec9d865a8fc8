"""Models that a config adds to the grid of paper `scaling`: shown, fitted and marked, apart from what is printed."""

import json
from pathlib import Path

import pandas as pd
import pytest

from fabricated_scaling import FABRIC
from neuroute.analysis import power_laws as laws
from neuroute.pipeline.papers.scaling.paper import GRID, Shape, grid
from neuroute.pipeline.plan.config import load_scale
from neuroute.pipeline.rendering.render import render
from shown import of

SMOKE = load_scale("smoke")
MORE = {"scaling": {"depths": {60: 6}, "more_models": {"18x192": {"depth": 3, "width": 20, "heads": 2}}}}
ADDED = [Shape(18, 192), Shape(60, 128), Shape(60, 256), Shape(60, 512)]
RECORDS = FABRIC.by(scale=load_scale("smoke", None, MORE, "mine.yaml"))
TABLES = {"table1": 0, "table10": 0, "table12": 1, "table13": 1, "table16": 1, "table18": 0}  # rows before the grid's


def points(work: Path, folder: Path, name: str) -> pd.DataFrame:
    render(RECORDS.study(name, work), folder / name)
    return pd.read_csv(folder / f"{name}.csv")


def test_the_grid_has_them_in_order() -> None:
    assert grid(SMOKE) == GRID
    assert grid(RECORDS.scale) == sorted([*GRID, *ADDED])


def test_figure1_shows_them_and_counts_the_papers(work: Path, tmp_path: Path) -> None:
    frame = points(work, tmp_path, "figure1")
    here = frame[frame.side == "measured"]
    assert [*zip(here.depth, here.width, strict=True)] == grid(RECORDS.scale)
    assert len(frame[frame.side == "published"]) == len(GRID)
    notes = " ".join(json.loads((tmp_path / "figure1.json").read_text())["notes"])
    assert "Measured: " in notes
    assert notes.count(" of 12 models beat a larger one") == 2
    assert "adds to the paper's grid: (18, 192), (60, 128), (60, 256), (60, 512)." in notes


@pytest.mark.slow
def test_figure2_fits_the_papers_alone_and_all(work: Path, tmp_path: Path) -> None:
    frame = points(work, tmp_path, "figure2")
    here, printed = (frame[frame.side == side] for side in ("measured", "published"))
    sizes = here.groupby("series", sort=False).depth.count()
    assert sizes["all"] == 12
    assert sizes["all, with added"] == 16
    assert sizes["D=60, with added"] == 3
    assert "D=18, with added" not in sizes  # one model is no line
    assert sizes["W=128"] == 4
    assert sizes["W=128, with added"] == 5
    assert not printed.series.str.contains("added").any()
    for series in ("all", "all, with added", "W=128, with added"):
        curve = here[here.series == series]
        assert curve.alpha_linear.iloc[0] == pytest.approx(laws.fit([*curve.x], [*curve.gap_pct], "linear").alpha)
    of_paper = here[here.series == "all"]
    assert {*zip(of_paper.depth, of_paper.width, strict=True)} == {*GRID}


@pytest.mark.parametrize("name", TABLES)
def test_tables_mark_them(name: str, work: Path) -> None:
    table, before = of(RECORDS.study(name, work)), TABLES[name]
    assert len(table.rows) == before + 16
    for shape, row in zip(grid(RECORDS.scale), table.rows[before:], strict=True):
        assert any("not the paper's" in str(label) for label in row.labels) == (shape in ADDED)
        if shape in ADDED:
            assert all(cell.published is None for cell in row.cells)
        assert any(cell.measured is not None for cell in row.cells)
