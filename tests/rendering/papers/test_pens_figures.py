"""Figures of paper `pens` on fabricated records: drawn numbers are the records', and bad data is told."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from fabricated import Fabric, drop_rows, with_arrays
from fabricated_pens import FABRIC, SCALE, study
from neuroute.pipeline.papers.pens import paper as pens
from shown import drawn_figure, texts

pytestmark = pytest.mark.slow

RECORDS = FABRIC
draw = partial(drawn_figure, study, lay_out=True)

Arrays = dict[str, np.ndarray]


# -- Figures 1 and 4 ------------------------------------------------------------------------------------------------


def test_a_solver_without_records_says_so_on_its_row(copy: Path) -> None:
    drop_rows(copy / "evaluations" / pens.LEHD / "uniform_pens.csv")
    drawing = draw("figure1", copy)
    assert texts(drawing).count(" not measured") == 1
    assert texts(drawing).count(" published only") == 0


@pytest.mark.parametrize("name", ["figure1", "figure4", "figure5"])
def test_gaps_of_zero_and_below_are_kept_and_told(name: str, records_of: Callable[[Fabric], Path]) -> None:
    with np.errstate(all="raise", under="ignore"):
        drawing = draw(name, records_of(FABRIC.hopeless))
    measured = drawing.points[drawing.points.side == "measured"].gap_pct
    assert (measured < 1e-6).any()
    if name != "figure1":  # bars may be negative
        hidden = int((measured < 1e-6).sum())
        told = [int(note.split()[0]) for note in drawing.notes if "are not positive" in note]
        assert sum(told) == hidden
    for axes in drawing.figure.axes:
        assert axes.get_yscale() != "log" or axes.get_ylim()[0] > 1e-8


# -- Figure 3 -------------------------------------------------------------------------------------------------------


def test_a_sweep_without_a_minimum_is_drawn_and_told(work: Path, tmp_path: Path) -> None:
    dataset = pens.held_out(SCALE, 1000)

    def concave(arrays: Arrays) -> None:
        arrays["interior"][arrays["sizes"] == dataset.n] = False
        arrays["best"][arrays["sizes"] == dataset.n] = 2.5
        arrays[f"{dataset.id}|parabola"][:] = np.nan

    drawing = draw("figure3", with_arrays(work, tmp_path, "pens/pens_r/rescaling", concave))
    assert f"No minimum between the fitted factors: PENS-R at TSP{dataset.n}." in " ".join(drawing.notes)
    assert texts(drawing).count("no minimum found") == 1
    best = [line for axes in drawing.figure.axes for line in axes.lines if line.get_linestyle() == "--"]
    assert len(best) == len(pens.RESCALED) * len(pens.SIZES) - 1  # none where none was found


# -- Figure 5 -------------------------------------------------------------------------------------------------------


def test_lengths_that_are_not_finite_leave_an_honest_panel(work: Path, tmp_path: Path) -> None:
    dataset = pens.held_out(SCALE, 250)

    def broken(arrays: Arrays) -> None:
        arrays[f"{dataset.id}|lengths"][:] = np.nan
        arrays[f"{dataset.id}|parabola"][:] = np.nan

    drawing = draw("figure3", with_arrays(work, tmp_path, "pens/pens_a/rescaling", broken))
    assert texts(drawing).count("lengths are\nnot finite") == 1


def test_a_log_of_one_size_is_drawn_for_that_size(copy: Path) -> None:
    line = {"kind": "validation", "batch": 3, "samples": 96, "gap_pct": 4.5, "seconds": 1}
    (copy / "runs" / "pens" / "small_r_zero" / "log.jsonl").write_text(json.dumps(line) + "\n")
    curves = draw("figure5", copy).points
    mine = curves[(curves.panel == "d") & (curves.run == "pens/small_r_zero")]
    assert [tuple(row) for row in mine[["size", "batch", "gap_pct"]].to_numpy()] == [(20, 3, 4.5)]


# -- Figures 2 and 6 ------------------------------------------------------------------------------------------------


def test_colours_mean_the_same_in_all_maps_of_a_model(work: Path) -> None:
    panels = [axes.collections[0] for axes in draw("figure6", work).figure.axes if axes.collections]
    columns = len(study("figure6", work).arrays("pens/pens_r/attention")["factors"])
    maps = [panel for panel in panels if len(panel.get_offsets()) > 1][: columns * len(pens.MAPPED)]
    for row in range(len(pens.MAPPED)):
        assert len({panel.get_clim() for panel in maps[row * columns : (row + 1) * columns]}) == 1


def test_where_the_origin_looks_is_told_in_numbers(work: Path, tmp_path: Path) -> None:
    def exact(arrays: Arrays) -> None:
        coords, destination = arrays["coords"].astype(float), int(arrays["destination"])
        apart = np.linalg.norm(coords - coords[int(arrays["origin"])], axis=1)
        logits = np.stack([-apart, apart, np.zeros_like(apart), np.full_like(apart, np.nan)])
        logits[:3, destination] = 99
        arrays |= {"logits": logits, "factors": np.array([1.0, 2.0, 3.0, 1.25])}

    drawing = draw("figure6", with_arrays(work, tmp_path, "pens/pens_a/attention", exact))
    assert drawing.fits is not None
    mine = [row for row in drawing.fits.rows if row.labels[0] == "PENS-A"]
    assert [row.labels[1] for row in mine] == ["×1", "×2", "×3", "best, ×1.25"]
    nearness = [row.cells[0].measured for row in mine]
    assert nearness[:2] == pytest.approx([1, -1])
    assert nearness[2:] == ["all equal", "not finite"]
    assert [row.cells[1].measured for row in mine][:3] == [100, 100, 100]
    assert texts(drawing).count("not finite") == 1
