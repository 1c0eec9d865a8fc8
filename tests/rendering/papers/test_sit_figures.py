"""Figures of paper `sit` on a fabricated decision, iteration, logs and records: drawn is what they hold."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabricated import drop_rows, with_arrays
from fabricated_sit_figures import LOGS, ROUND, RUNS, SCALE, Arrays, fabricate, study
from neuroute.pipeline.papers.sit.figures import Round
from neuroute.pipeline.papers.sit.paper import SitScale
from shown import drawn_figure, texts

RECORDS = fabricate
draw = partial(drawn_figure, study)


# -- Figure 1 -------------------------------------------------------------------------------------------------------


def test_looks_are_told_in_numbers(work: Path, tmp_path: Path) -> None:
    def exact(arrays: Arrays) -> None:
        seen = np.isfinite(arrays["attention"][0, 0])
        arrays["attention"][:, :, seen] = 1 / seen.sum()
        arrays["attention"][1, -1, seen] = 0
        arrays["attention"][1, -1, 0] = 1

    folder = with_arrays(work, tmp_path, ROUND.id, exact)
    fits = draw("figure1", folder).fits
    assert fits is not None
    seen = Round.of_sit(study("figure1", folder)).tokens_seen
    found = {row.labels: [cell.measured for cell in row.cells] for row in fits.rows}
    share = 100 * round(len(seen) / 10) / len(seen)
    assert found["module 1", "current node"] == pytest.approx([len(seen), share])
    assert found["module 2", "destination"] == pytest.approx([1, 100])


def test_a_network_without_finite_numbers_is_drawn_and_told(work: Path, tmp_path: Path) -> None:
    def broken(arrays: Arrays) -> None:
        arrays["probabilities"][:] = np.nan
        arrays["attention"][:] = np.nan

    drawing = draw("figure1", with_arrays(work, tmp_path, ROUND.id, broken))
    assert texts(drawing).count("not finite") == 2 + 2 * RUNS[ROUND.run].network.arguments["depth"]
    assert {cell.measured for row in drawing.fits.rows for cell in row.cells} == {None}


# -- Figure 2 -------------------------------------------------------------------------------------------------------


def test_an_iteration_without_improvement_says_so(work: Path, tmp_path: Path) -> None:
    def useless(arrays: Arrays) -> None:
        arrays["before"] = arrays["after"]
        arrays["improved"][:] = False

    drawing = draw("figure2", with_arrays(work, tmp_path, ROUND.id, useless))
    assert any(text.startswith(f"0 of {ROUND.dataset.n // 7} shorter") for text in texts(drawing))
    assert "as none finds a shorter block" in " ".join(drawing.notes)


def rewrite(folder: Path, how: Callable[[dict[str, Any]], dict[str, Any] | None]) -> None:
    """Change every line of the logs, or leave it out."""
    for name in LOGS:
        file = folder / "runs" / name / "log.jsonl"
        lines = [how(json.loads(line)) for line in file.read_text().splitlines()]
        file.write_text("".join(json.dumps(line) + "\n" for line in lines if line))


def test_gaps_of_zero_and_below_are_kept_and_told(copy: Path) -> None:
    rewrite(copy, lambda line: line | {"gap_pct": -0.1} if line["kind"] == "validation" else line)
    drawing = draw("figure2", copy)
    count = int((drawing.points.panel == "d").sum())
    assert f"{count} of {count} gaps are not positive" in " ".join(drawing.notes)
    assert "no positive gap to draw" in texts(drawing)


# -- Figure 3 -------------------------------------------------------------------------------------------------------


def test_repetitions_that_were_not_measured_are_told(copy: Path) -> None:
    for file in copy.glob("evaluations/sit/repeat1/*.csv"):
        drop_rows(file)
    drawing = draw("figure3", copy)
    assert len(drawing.points) < 3
    assert "too few points for a course" in texts(drawing)
    assert 1 not in set(drawing.points.repetitions)
    assert f"1 of {len(SCALE[SitScale].repetitions)} numbers of repetitions were not measured." in drawing.notes
