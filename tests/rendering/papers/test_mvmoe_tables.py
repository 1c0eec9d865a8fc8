"""Tables of paper `mvmoe` on fabricated records: what holds of all of them, and Tables 1 and 2."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import pytest

from fabricated_mvmoe import FABRIC, SCALE, changed, draw, feasible, set_of, study
from neuroute.papers.mvmoe import roles
from neuroute.plan.objects import Labels
from neuroute.problems.vrp import SWITCHES
from neuroute.rendering.table import Cell, Table
from table_cells import cell, of
from table_checks import nothing_measured

RECORDS = FABRIC
COMPARED = {"table1": roles.TRAINED, "table2": roles.UNSEEN}


def note(table: Table, begins: str) -> str:
    (found,) = [n for n in table.notes if n.startswith(begins)]
    return found


# -- Tables 1 and 2 ---------------------------------------------------------------------------------------------------


def test_other_solvers_have_a_gap_and_a_row(work: Path, tmp_path: Path) -> None:
    """Printed ones in their row, others in one of their own."""
    scale = changed(other_solvers={"others": ["ortools-x10", "ortools-network"]})
    FABRIC.by(scale=scale).write(tmp_path)
    table = of(study("table2", tmp_path, scale))
    for label, solver in (("OR-Tools (x10)", "ortools-x10"), ("OR-Tools by the networks' rule", "ortools-network")):
        for size in roles.SIZES:
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
    scale = changed(references={"VRPTW": "pyvrp", "others": "ortools-short"})
    FABRIC.by(scale=scale).write(tmp_path)
    table = of(study("table1", tmp_path, scale))
    assert cell(table, "gap_50_pct", "VRPTW", "PyVRP").measured == 0.0
    assert cell(table, "gap_50_pct", "VRPTW", "HGS") == Cell(None, 0.0)
    assert cell(table, "gap_50_pct", "VRPTW", "OR-Tools") == Cell(None, 2.694)
    assert "solutions by PyVRP (VRPTW), short OR-Tools (all others);" in note(table, "Gaps are means")


def test_backhauls_say_which_rule_and_how_many_references_keep_to_it(work: Path, tmp_path: Path) -> None:
    for name, variants in COMPARED.items():
        table = draw(name, work)
        assert "References here: short OR-Tools, free start." in note(table, "With backhauls")
        shares = note(table, "Of the reference solutions here")
        for variant in variants:
            share = f"{variant} {feasible(set_of(variant, 50)):.0f} %"
            assert (share in shares) == SWITCHES[variant].backhaul, variant
    scale = changed(references={"CVRP": "hgs-short", "others": "ortools-network"})
    FABRIC.by(scale=scale).write(tmp_path)
    fair = note(of(study("table2", tmp_path, scale)), "With backhauls")
    assert "References here: OR-Tools by the networks' rule, held to the networks' rule." in fair
    without = nothing_measured(work, tmp_path / "copy")
    assert not any(n.startswith("Of the reference solutions here") for n in draw("table2", without).notes)


def printed_means(published: pd.DataFrame, size: int) -> Mapping[str, float]:
    rows = published[(published.n == size) & (published.metric == "gap_pct")]
    return {m: rows[rows.method == m].value.mean() for m in ("POMO", *roles.MULTI_TASK) if (rows.method == m).any()}


def test_what_the_notes_say_of_the_printed_numbers_is_so(work: Path) -> None:
    one, two = (study(name, work).published(name) for name in COMPARED)
    means = printed_means(one, 50)
    assert (round(means["POMO-MTL"], 3), round(means["MVMoE/4E"], 3)) == (2.102, 1.925)
    text = " ".join(draw("table1", work).notes)
    assert "2.102 % and 1.925 %" in text
    gaps = two[two.metric == "gap_pct"].pivot_table(index=["n", "problem"], columns="method", values="value")
    behind = gaps[gaps["MVMoE/4E-L"] > gaps["POMO-MTL"]].index
    assert sorted(behind) == [(50, "OVRPB"), (50, "OVRPBL"), (50, "OVRPBTW")]
    assert (gaps["MVMoE/4E"] < gaps["POMO-MTL"]).all()
    every = pd.concat([one, two])
    every["row"] = every.method + every.method_params.fillna("")
    apart = []
    for _, rows in every.groupby(["problem", "n"]):
        gap, obj = (rows[rows.metric == metric].set_index("row").value for metric in ("gap_pct", "obj"))
        apart.append((gap - 100 * (obj / obj[gap.index[gap == 0]].item() - 1)).abs().max())
    assert round(max(apart), 2) == 0.26


def test_a_missing_variant_leaves_the_printed_number(work: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(work, tmp_path / "copy")
    path = copy / f"evaluations/mvmoe/{roles.multi(SCALE, 'MVMoE/4E', 50)}/mvmoe.csv"
    frame = pd.read_csv(path)
    frame[frame.test != set_of("OVRPL", 50).id].to_csv(path, index=False)
    table = draw("table2", copy)
    shown = cell(table, "gap_50_pct", "OVRPL", "MVMoE/4E")
    assert shown == Cell(None, 2.454)
    assert cell(table, "gap_50_pct", "OVRPL", "POMO-MTL").measured is not None
    assert "MVMoE/4E " not in note(table, "Mean gaps in % over the 10 problems at n=50").split("in print")[0]
