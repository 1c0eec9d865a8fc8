"""Tables 3 to 11 of paper `sit`, one by one, on fabricated records."""

from dataclasses import replace
from pathlib import Path

import pytest

from fabricated_sit import FABRIC, study
from neuroute.papers.sit.tables_efficiency import exponent
from neuroute.rendering.table import Cell
from table_cells import cell, of

RECORDS = FABRIC
# -- Tables 3, 4 and 10 -----------------------------------------------------------------------------------------------


def test_exponents_need_two_sizes() -> None:
    assert exponent([10, 100, 1000], [3.0, 300.0, "OOM"]) == pytest.approx(2)
    assert exponent([10, 100], [3.0, "OOM"]) is None
    assert exponent([10, 100], [None, None]) is None


# -- Tables 5 to 9 and 11 ---------------------------------------------------------------------------------------------


def test_table6_names_what_follows_the_published_code(work: Path) -> None:
    found = study("table6", work)
    run = found.runs["sit/tsp_10k"]
    change = {"starts": "batch", "most_blocks": 250, "initial": "greedy", "clip": 10.0}
    changed = run.model_copy(update={"training": run.training.model_copy(update=change)})
    table = of(replace(found, runs={**found.runs, run.id: changed}))
    assert "TSP, as in the published code: starts: batch at 10K, most_blocks at 10K." in table.notes
    assert cell(table, "tsp_10k", "Initial solutions") == Cell("the model's, greedy")
    assert cell(table, "tsp_10k", "Largest norm of a gradient") == Cell(10.0)
