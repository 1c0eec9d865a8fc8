"""Table 22 of paper `scaling`: which rates the scale has, and whether short trainings chose them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabricated_scaling import FABRIC, SCALE
from neuroute.pipeline.papers.scaling import tables as tables_ablations
from neuroute.pipeline.papers.scaling.paper import ScalingScale
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.table import Cell


@pytest.mark.parametrize("corner", [None, "42x512"])
def test_a_rate_that_short_trainings_did_not_choose_is_named(
    corner: str | None, records_of: Callable[[Any], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = SCALE[ScalingScale].rates
    assert rates is not None

    def gap(study: Study, run: str) -> Cell:
        is_best = any(run.endswith(f"pilot_{shape}_{rate:g}") for shape, rate in rates.best.items() if shape != corner)
        return Cell(5.0 if is_best else 6.0)

    monkeypatch.setattr(tables_ablations, "_last_gap", gap)
    table = tables_ablations.table22(FABRIC.study("table22", records_of(FABRIC)))
    best = {row.labels[0]: row.cells[-4].measured for row in table.rows if row.cells[-4].measured}
    assert len(best) == len(rates.best)
    notes = " ".join(table.notes)
    assert ("The scale's rates are the best tried at each corner." in notes) == (corner is None)
    assert ("(42, 512)" in notes) == (corner is not None)
