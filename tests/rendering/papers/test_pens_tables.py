"""Tables of paper `pens` on fabricated records: cells are what the records say, printed numbers in the right ones."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from fabricated import drawn_table, edit_arrays
from fabricated_pens import FABRIC, SCALE, study
from neuroute.pipeline.papers.pens.paper import PensScale
from shown import of

RECORDS = FABRIC
draw = partial(drawn_table, study)


def test_table1_says_where_a_sweep_has_no_minimum(copy: Path) -> None:
    def without(arrays: dict[str, np.ndarray]) -> None:
        arrays["interior"] = arrays["sizes"] != SCALE[PensScale].sizes[1000]

    edit_arrays(copy / "evaluations/pens/pens_r/rescaling.npz", without)
    (note,) = [n for n in draw("table1", copy).notes if "no minimum between the factors" in n]
    assert f"for PENS-R at TSP1000 (TSP{SCALE[PensScale].sizes[1000]} here):" in note


def test_other_reference_solvers_and_single_solutions_are_said(work: Path) -> None:
    change = {"largest_solver": "lkh", "repeats": 1}
    scale = SCALE.with_block(SCALE[PensScale].model_copy(update=change))
    notes = " ".join(of(replace(study("table_figure4", work), scale=scale)).notes)
    assert "against Concorde's tours, at TSP10000" in notes
    assert "LKH's tours" in notes
    assert "solved once here, five times in the paper" in notes
