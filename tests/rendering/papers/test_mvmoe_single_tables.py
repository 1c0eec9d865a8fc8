"""Tables 3 to 8 of paper `mvmoe`, one by one, on fabricated records."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fabricated_mvmoe import FABRIC, SCALE, changed, draw, set_of, study
from neuroute.datasets.benchmarks import published_instances
from neuroute.papers.mvmoe import roles
from neuroute.papers.mvmoe.scale import MvmoeScale
from neuroute.problems.vrp import SWITCHES
from neuroute.rendering.table import Cell
from table_cells import cell, of, recorded, row

RECORDS = FABRIC
GAP, X8, MULTI = "gap_mean_of_ratios_pct", "multistart-x8", "multistart"


# -- Tables 3 to 5 ----------------------------------------------------------------------------------------------------


def test_table3_is_what_the_environment_does(work: Path) -> None:
    """And says the same as the paper's table."""
    table, published = draw("table3", work), study("table3", work).published(3).set_index("key")
    assert [r.labels[0] for r in table.rows] == list(published.index)
    for variant in roles.VARIANTS:
        on = SWITCHES[variant]
        letters = ["C"] + [x for x, holds in zip(("O", "B", "L", "TW"), on, strict=True) if holds]
        assert "+".join(letters) == published.value[variant]
        for letter in ("C", "O", "B", "L", "TW"):
            word = "yes" if letter in letters else "no"
            assert cell(table, f"has_{letter.lower()}", variant) == Cell(word, word)
        word = "yes" if variant in roles.TRAINED else "no"
        assert cell(table, "trained", variant) == Cell(word, word)
        assert cell(table, "customers_100", variant).measured == SCALE[MvmoeScale].sizes[100]


def test_table3_without_the_runs_keeps_the_printed_entries(work: Path) -> None:
    found = study("table3", work)
    found = type(found)(found.artifact, found.config, found.scale, {}, found.work)
    assert cell(of(found), "trained", "OVRPTW") == Cell(None, "yes")


def test_table4_has_no_mean_of_some(work: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(work, tmp_path / "copy")
    path = copy / f"evaluations/mvmoe/{roles.single(SCALE, 'OVRP', 100)}/mvmoe.csv"
    frame = pd.read_csv(path)
    frame[frame.test != set_of("VRPL", 100).id].to_csv(path, index=False)
    table = draw("table4", copy)
    assert cell(table, "gap_vrpl_pct", "POMO-OVRP") == Cell(None, 10.152)
    assert cell(table, "gap_mean_pct", "POMO-OVRP") == Cell(None, 17.942)
    assert cell(table, "gap_vrpb_pct", "POMO-OVRP").measured is not None


def test_table5_shows_what_was_trained_among_what_is_printed(work: Path, tmp_path: Path) -> None:
    scale = changed(ablations=["h_k1", "h_batch", "h_alpha1"])
    FABRIC.by(scale=scale).write(tmp_path)
    table = of(study("table5", tmp_path, scale))
    measured = {("0.01", "instance", "2"): roles.DEFAULT, ("0.01", "instance", "1"): "h_k1"}
    measured |= {("0.01", "batch", "2"): "h_batch", ("1.0", "instance", "2"): "h_alpha1"}
    for labels, run in measured.items():
        for key, variants in (("trained", roles.TRAINED), ("unseen", roles.UNSEEN)):
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


def test_what_table5_says_of_better_settings_is_so(work: Path) -> None:
    table = draw("table5", work)
    default = [c.published for c in table.rows[0].cells]
    better = [
        r.labels[:3] for r in table.rows if all(c.published < own for c, own in zip(r.cells, default, strict=True))
    ]
    assert better == [
        ("0.001", "instance", "2"), ("0.01", "layer", "2"), ("0.01", "none", "2"), ("0.01", "instance", "3"),
    ]  # fmt: skip


# -- Tables 7 and 8 ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_table7_means_are_over_what_all_have_solved(work: Path, tmp_path: Path) -> None:
    copy = tmp_path / "wide"
    scale = changed(set_x=(101, 121))
    FABRIC.by(scale=scale).write(copy)
    table = of(study("table7", copy, scale))
    names = [k for k, v in published_instances("cvrplib").items() if v.set == "X" and 101 <= v.nodes < 121]
    assert len(names) == 5
    label = "Mean of 28, here of 5"
    run = roles.multi(SCALE, "MVMoE/4E", 100)

    def mean(of_names: list[str]) -> float:
        gaps = [recorded(copy, f"mvmoe/{run}/set_x", f"cvrplib_{n}", X8, "gap_rounded_pct") for n in of_names]
        return float(np.mean(gaps))

    shown = cell(table, "gap_mvmoe_4e_pct", "Set-X", label)
    assert shown.measured == pytest.approx(mean(names))
    assert (shown.published, shown.at) == (6.884, "5 of 28 instances")
    seven = study("table7", copy, scale).published(7)
    same = seven[(seven.metric == "gap_pct") & (seven.method == "MVMoE/4E") & seven.instance.isin(names)]
    (others_note,) = [note for note in table.notes if note.startswith("Set-X: over the instances of the mean here")]
    assert f"MVMoE/4E {same.value.mean():.3f} %" in others_note
    path = copy / f"evaluations/mvmoe/{roles.multi(SCALE, 'POMO-MTL', 100)}/set_x.csv"
    frame = pd.read_csv(path)
    frame[frame.test != "cvrplib_X-n106-k14"].to_csv(path, index=False)
    fewer = of(study("table7", copy, scale))
    others = [name for name in names if name != "X-n106-k14"]
    shown = cell(fewer, "gap_mvmoe_4e_pct", "Set-X", "Mean of 28, here of 4")
    assert shown.measured == pytest.approx(mean(others))
    assert cell(fewer, "gap_pomo_mtl_pct", "Set-X", "X-n106-k14") == Cell(None, 3.820)
    assert cell(fewer, "gap_mvmoe_4e_pct", "Set-X", "X-n106-k14").measured is not None
    assert "Set-X: 23 of the 28 printed instances were not measured here." in fewer.notes


def test_instances_that_are_not_printed_are_shown_apart(tmp_path: Path) -> None:
    scale = changed(set_x=(200, 206))
    FABRIC.by(scale=scale).write(tmp_path)
    table = of(study("table7", tmp_path, scale))
    labels = [r.labels[1] for r in table.rows if r.labels[0] == "Set-X"]
    assert labels[-2:] == ["X-n204-k19", "Mean of 28, here of 1"]
    own = row(table, "Set-X", "X-n204-k19")
    assert all(c.measured is not None and c.published is None for c in own)
    mean = cell(table, "gap_mvmoe_4e_pct", "Set-X", "Mean of 28, here of 1").measured
    assert mean == cell(table, "gap_mvmoe_4e_pct", "Set-X", "X-n200-k36").measured
    assert "Set-X: 1 of the instances here are not in the paper's table; they come last." in table.notes


def test_printed_gaps_follow_from_the_printed_lengths_but_for_one(work: Path) -> None:
    seven = study("table7", work).published(7)
    seven = seven[seven.problem == "CVRP"]
    best = seven[seven.metric == "best_known"].set_index("instance").value
    both = seven[seven.n.notna()].pivot_table(index=["instance", "method"], columns="metric", values="value")
    both = both.dropna(subset="obj")
    would_be = 100 * (both.obj / best.reindex(both.index.get_level_values("instance")).to_numpy() - 1)
    other = both.index[(would_be - both.gap_pct).abs() > 0.001]
    assert list(other) == [("X-n153-k22", "POMO")]
    assert round(would_be[other[0]], 3) == 53.044
    assert any("53.040 %" in note and "53.044 %" in note for note in draw("table7", work).notes)
