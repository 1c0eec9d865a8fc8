"""Tables of paper `mvmoe` on fabricated records: what holds of all of them, and one by one."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabricated import edit_arrays, keep_records, nothing_measured
from fabricated_mvmoe import FABRIC, SCALE, changed, draw, set_of, study
from neuroute.datasets.benchmarks import published_instances
from neuroute.pipeline.papers.mvmoe import paper as mvmoe
from neuroute.pipeline.papers.mvmoe.tables import BUDGETS, mean_gap_cell
from neuroute.pipeline.rendering import cells
from neuroute.pipeline.rendering.table import Cell, Table
from neuroute.solvers import hgs, lkh3, ortools, pyvrp
from neuroute.solvers.base import Solver
from neuroute.solvers.registry import SOLVERS
from neuroute.specs.objects import Labels
from shown import cell, of, recorded, row

RECORDS = FABRIC
GAP, X8 = "gap_mean_of_ratios_pct", "multistart-x8"


def note(table: Table, begins: str) -> str:
    (found,) = [n for n in table.notes if n.startswith(begins)]
    return found


def changed_table(name: str, folder: Path, **settings: object) -> Table:
    """From records of the scale with these settings of the paper."""
    scale = changed(**settings)
    return of(study(name, FABRIC.by(scale=scale).write(folder), scale))


# -- Tables 1 and 2 ---------------------------------------------------------------------------------------------------


def test_other_solvers_have_a_gap_and_a_row(work: Path, tmp_path: Path) -> None:
    """Printed ones in their row, others in one of their own."""
    table = changed_table("table2", tmp_path, other_solvers={"others": ["ortools-x10", "ortools-network"]})
    for label, solver in (("OR-Tools (x10)", "ortools-x10"), ("OR-Tools by the networks' rule", "ortools-network")):
        for size in mvmoe.SIZES:
            dataset = set_of("VRPBL", size)
            own, best = (FABRIC.solved(Labels(dataset=dataset, solver=s)) for s in (solver, "ortools-short"))
            shown = cell(table, f"gap_{size}_pct", "VRPBL", label)
            assert shown.measured == pytest.approx(100 * (own / best - 1).mean())
            assert shown.measured != pytest.approx(100 * (own.mean() / best.mean() - 1))
            assert cell(table, f"obj_{size}", "VRPBL", label).measured == pytest.approx(own.mean())
    assert cell(table, "gap_50_pct", "VRPBL", "OR-Tools by the networks' rule").published is None
    assert not any("networks' rule" in str(r.labels[1]) for r in draw("table2", work).rows)


def test_a_reference_of_another_solver_has_a_row_of_its_own(tmp_path: Path) -> None:
    """It does not stand for the paper's."""
    table = changed_table("table1", tmp_path, references={"VRPTW": "pyvrp", "others": "ortools-short"})
    assert cell(table, "gap_50_pct", "VRPTW", "PyVRP").measured == 0.0
    assert cell(table, "gap_50_pct", "VRPTW", "HGS") == Cell(None, 0.0)
    assert cell(table, "gap_50_pct", "VRPTW", "OR-Tools") == Cell(None, 2.694)
    assert "References here: PyVRP (VRPTW), short OR-Tools (all others);" in note(table, "Gaps are means")


def test_notes_on_backhauls_follow_from_the_references(work: Path, tmp_path: Path) -> None:
    table = changed_table("table2", tmp_path, references={"CVRP": "hgs-short", "others": "ortools-network"})
    fair = "References here: OR-Tools by the networks' rule, held to the networks' rule."
    assert fair in note(table, "With backhauls")
    without = nothing_measured(work, tmp_path / "copy")
    assert not any(n.startswith("Of the reference solutions here") for n in draw("table2", without).notes)


# -- Tables 4 and 5 ---------------------------------------------------------------------------------------------------


def test_table4_has_no_mean_of_some(copy: Path) -> None:
    run = mvmoe.single(SCALE, "OVRP", 100)
    keep_records(copy, f"mvmoe/{run}/mvmoe", lambda frame: frame.test != set_of("VRPL", 100).id)
    table = draw("table4", copy)
    assert cell(table, "gap_vrpl_pct", "POMO-OVRP") == Cell(None, 10.152)
    assert cell(table, "gap_mean_pct", "POMO-OVRP") == Cell(None, 17.942)
    assert cell(table, "gap_vrpb_pct", "POMO-OVRP").measured is not None


def test_table5_shows_what_was_trained_among_what_is_printed(work: Path, tmp_path: Path) -> None:
    table = changed_table("table5", tmp_path, ablations=["h_k1", "h_batch", "h_alpha1"])
    measured = {("0.01", "instance", "2"): mvmoe.DEFAULT, ("0.01", "instance", "1"): "h_k1"}
    measured |= {("0.01", "batch", "2"): "h_batch", ("1.0", "instance", "2"): "h_alpha1"}
    for labels, run in measured.items():
        for key, variants in (("trained", mvmoe.TRAINED), ("unseen", mvmoe.UNSEEN)):
            tests = [set_of(variant, 50).id for variant in variants]
            gaps = [recorded(tmp_path, f"mvmoe/{run}/mvmoe", test, X8, GAP) for test in tests]
            shown = cell(table, f"gap_{key}_pct", *labels)
            assert shown.measured == pytest.approx(np.mean(gaps))
            assert shown.low < shown.measured < shown.high
    for found in table.rows:
        here = found.labels[:3] in measured
        assert all((c.measured is not None) == here and c.published is not None for c in found.cells)
        assert (found.labels[3] == "–") != here
    assert table.rows[0].labels[:3] == ("0.01", "instance", "2")
    assert cell(table, "gap_unseen_pct", "0.01", "none", "2") == Cell(None, 5.842)
    assert cell(table, "gap_trained_pct", "0.01", "batch", "2").published == 11.560
    assert cell(table, "gap_unseen_pct", "0.001", "instance", "2").published == 6.091
    assert cell(draw("table5", work), "gap_trained_pct", "0.01", "instance", "1") == Cell(None, 2.610)


# -- Tables 7 and 8 ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_table7_means_are_over_what_all_have_solved(work: Path, tmp_path: Path) -> None:
    copy, scale = tmp_path / "wide", changed(set_x=(101, 121))
    table = changed_table("table7", copy, set_x=(101, 121))
    names = [k for k, v in published_instances("cvrplib").items() if v.set == "X" and 101 <= v.nodes < 121]
    assert len(names) == 5
    label = "Mean of 28, here of 5"
    run = mvmoe.multi(SCALE, "MVMoE/4E", 100)

    def mean(of_names: list[str]) -> float:
        gaps = [recorded(copy, f"mvmoe/{run}/set_x", f"cvrplib_{n}", X8, "gap_rounded_pct") for n in of_names]
        return float(np.mean(gaps))

    shown = cell(table, "gap_mvmoe_4e_pct", "Set-X", label)
    assert shown.measured == pytest.approx(mean(names))
    assert (shown.published, shown.at) == (6.884, "5 of 28 instances")
    seven = study("table7", copy, scale).published(7)
    same = seven[(seven.metric == "gap_pct") & (seven.method == "MVMoE/4E") & seven.instance.isin(names)]
    assert f"MVMoE/4E {same.value.mean():.3f} %" in note(table, "Set-X: over the instances of the mean here")
    other = mvmoe.multi(SCALE, "POMO-MTL", 100)
    keep_records(copy, f"mvmoe/{other}/set_x", lambda frame: frame.test != "cvrplib_X-n106-k14")
    fewer = of(study("table7", copy, scale))
    others = [name for name in names if name != "X-n106-k14"]
    shown = cell(fewer, "gap_mvmoe_4e_pct", "Set-X", "Mean of 28, here of 4")
    assert shown.measured == pytest.approx(mean(others))
    assert cell(fewer, "gap_pomo_mtl_pct", "Set-X", "X-n106-k14") == Cell(None, 3.820)
    assert cell(fewer, "gap_mvmoe_4e_pct", "Set-X", "X-n106-k14").measured is not None
    assert "Set-X: 23 of the 28 printed instances were not measured here." in fewer.notes


def test_instances_that_are_not_printed_are_shown_apart(tmp_path: Path) -> None:
    table = changed_table("table7", tmp_path, set_x=(200, 206))
    labels = [r.labels[1] for r in table.rows if r.labels[0] == "Set-X"]
    assert labels[-2:] == ["X-n204-k19", "Mean of 28, here of 1"]
    own = row(table, "Set-X", "X-n204-k19")
    assert all(c.measured is not None and c.published is None for c in own)
    mean = cell(table, "gap_mvmoe_4e_pct", "Set-X", "Mean of 28, here of 1").measured
    assert mean == cell(table, "gap_mvmoe_4e_pct", "Set-X", "X-n200-k36").measured
    assert "Set-X: 1 of the instances here are not in the paper's table; they come last." in table.notes


# -- where numbers come from ------------------------------------------------------------------------------------------


def test_problems_on_the_same_ground_are_resampled_together(copy: Path) -> None:
    """Where all problems have the same gaps, their mean is as uncertain as one of them."""
    run, sets = mvmoe.run_id(mvmoe.multi(SCALE, "MVMoE/4E", 50)), [set_of(v, 50) for v in mvmoe.UNSEEN]

    def same_gaps(arrays: dict[str, np.ndarray]) -> None:
        gaps = 1 + np.linspace(0, 1, sets[0].count) ** 2
        for dataset in sets:
            arrays[f"{dataset.id}|{X8}"] = arrays[f"{dataset.id}|reference"] * gaps

    edit_arrays(copy / "evaluations" / f"{run}/mvmoe.npz", same_gaps)
    one, ten = (mean_gap_cell(study("table2", copy), run, each) for each in (sets[:1], sets))
    assert one.low is not None
    assert one.low < one.high
    assert (ten.low, ten.high) == pytest.approx((one.low, one.high))


def test_means_over_problems_of_several_trainings_have_the_range_of_these(tmp_path: Path) -> None:
    """As the table's note on seeds says of every range."""
    run, sets = mvmoe.run_id(mvmoe.DEFAULT), [set_of(v, 50) for v in mvmoe.TRAINED]
    fabric = FABRIC.by(scale=SCALE.model_copy(update={"seeds": {run: 3}}))
    found = fabric.study("table5", fabric.write(tmp_path))
    each = np.mean([found.values(GAP, run, dataset, X8) for dataset in sets], axis=0)
    mean = mean_gap_cell(found, run, sets)
    assert (mean.measured, mean.low, mean.high) == pytest.approx((each.mean(), each.min(), each.max()))
    assert len(set(each)) == 3


def setting(solver: Solver, name: str) -> Any:
    """With which a variant calls its solver."""
    function = solver.solve_cvrp or solver.solve_vrp
    assert isinstance(function, partial)
    return function.keywords[name]


def test_budgets_are_those_of_the_solvers() -> None:
    seconds = ortools.SECONDS_PER_CUSTOMER
    expected: dict[str, Any] = {
        "hgs": f"{hgs.ITERATIONS:,} iterations",
        "hgs-long": f"{setting(hgs.LONG, 'iterations'):,} iterations",
        "hgs-short": f"{setting(hgs.SHORT, 'iterations')} iterations",
        "lkh3": f"one run of {lkh3.VRP_TRIALS:,} trials",
        "lkh3-short": f"one run of {lkh3.SHORT.solve_vrp.keywords['trials']} trials",  # type: ignore[union-attr]
        "ortools": f"{seconds} s a customer",
        "ortools-short": f"{setting(ortools.SHORT, 'solutions')} solutions",
        "ortools-x10": f"{10 * seconds:g} s a customer",
        "ortools-network": f"{seconds} s a customer",
        "pyvrp": f"{pyvrp.ITERATIONS:,} iterations",
        "pyvrp-long": f"{setting(pyvrp.LONG, 'iterations'):,} iterations",
        "pyvrp-short": f"{setting(pyvrp.SHORT, 'iterations')} iterations",
    }
    assert lkh3.RUNS == 1
    assert set(BUDGETS) == set(expected) <= set(cells.SOLVERS) & set(SOLVERS)
    for solver, words in expected.items():
        assert BUDGETS[solver].startswith(words), solver
