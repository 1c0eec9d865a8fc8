"""Tables 3 to 11 of paper `sit`, one by one, on fabricated records."""

from dataclasses import replace
from pathlib import Path

import pytest

from fabricated_sit import FABRIC, RUNS, SCALE, SHORT, draw, efficiency, study
from neuroute.papers.sit import roles
from neuroute.papers.sit.scale import SitScale
from neuroute.papers.sit.tables_efficiency import exponent
from neuroute.rendering.table import Cell
from table_cells import cell, of

RECORDS = FABRIC
# -- Tables 3, 4 and 10 -----------------------------------------------------------------------------------------------


def test_table4_says_what_does_not_fit_and_how_it_grows(work: Path) -> None:
    table = draw("table4", work)
    names = ["POMO", "SIGD", "LEHD"]
    assert [r.labels[0] for r in table.rows] == [n + s for n in names for s in ("", ", fused kernel")] + ["Ours"]
    for size in roles.SIZES:
        n = SCALE[SitScale].efficiency_sizes[size]
        ours = cell(table, f"time_{SHORT[size]}_s", "Ours")
        assert ours.measured == pytest.approx(efficiency("SIT", n)["time_s"])
        held, fused = (cell(table, f"memory_{SHORT[size]}_mb", f"LEHD{s}").measured for s in ("", ", fused kernel"))
        assert held == ("OOM" if n >= 60 else pytest.approx(0.1 * n**2))
        assert fused == pytest.approx(0.1 * n)
    assert cell(table, "time_100k_s", "POMO") == Cell("OOM", "OOM", at="TSP80, one instance")
    assert cell(table, "time_100k_s", "Ours").published == 1983.3
    (note,) = [n for n in table.notes if n.startswith("Exponents")]
    assert "Ours: time 2.00 (1.99), memory 1.00 (1.00)" in note
    assert "LEHD: time 3.00 (2.99), memory 2.00 (1.98)" in note
    assert "LEHD, fused kernel: time 3.00, memory 1.00" in note


def test_exponents_need_two_sizes() -> None:
    assert exponent([10, 100, 1000], [3.0, 300.0, "OOM"]) == pytest.approx(2)
    assert exponent([10, 100], [3.0, "OOM"]) is None
    assert exponent([10, 100], [None, None]) is None


# -- Tables 5 to 9 and 11 ---------------------------------------------------------------------------------------------


def test_table6_is_what_the_plan_trains(work: Path) -> None:
    table = draw("table6", work)
    runs = {r.id: r for r in RUNS}
    assert cell(table, "tsp_1k", "Dataset size") == Cell(runs["sit/tsp_1k"].training.samples, 20_000)
    assert cell(table, "tsp_10k", "Self-improved iterations") == Cell(1, 3)
    assert cell(table, "cvrp_10k", "Self-improved iterations") == Cell(None, 4)
    assert cell(table, "tsp_warm_up", "Reconstruction iterations") == Cell(0)
    assert cell(table, "cvrp_1k", "Learning rate") == Cell(runs["sit/cvrp_1k"].training.learning_rate, 1e-4)
    assert cell(table, "tsp_1k", "Starts from") == Cell("warm_tsp")
    assert cell(table, "tsp_1k", "Reconstruction batch size") == Cell("by memory", 512)
    assert "24 (20,000)" in table.markdown()


def test_table6_names_what_follows_the_published_code(work: Path) -> None:
    found = study("table6", work)
    run = found.runs["sit/tsp_10k"]
    change = {"starts": "batch", "most_blocks": 250, "initial": "greedy", "clip": 10.0}
    changed = run.model_copy(update={"training": run.training.model_copy(update=change)})
    table = of(replace(found, runs={**found.runs, run.id: changed}))
    assert "TSP, as in the published code: starts: batch at 10K, most_blocks at 10K." in table.notes
    assert cell(table, "tsp_10k", "Initial solutions") == Cell("the model's, greedy")
    assert cell(table, "tsp_10k", "Largest norm of a gradient") == Cell(10.0)
