"""Tables 3 to 12 of paper `icam`, one by one, on fabricated records."""

import inspect
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from published_trainings import single_size, three_stages

from fabricated_icam import FABRIC, RUNS, SCALE, draw, set_id, study
from neuroute.accounting import counts_many_starts
from neuroute.networks.icam import Icam
from neuroute.networks.pomo import Pomo
from neuroute.papers.icam import roles
from neuroute.papers.icam.scale import IcamScale
from neuroute.papers.icam.tables_settings import CLIPPING, ROWS, ReinforcedRun
from neuroute.rendering.table import Cell
from table_cells import cell, of, recorded, recorded_of_each, row

RECORDS = FABRIC
ALIKE = "one_size_tsp"
BY_ID = {run.id: run for run in RUNS}


# -- Tables 3 and 6 ---------------------------------------------------------------------------------------------------


def test_table3(work: Path) -> None:
    table = draw("table3", work)
    for size in roles.TAM_SIZES:
        labels, name = roles.tam(SCALE, size), f"{size // 1000}k"
        for label, run, decoding in (
            ("ICAM single trajec.", "icam/icam_cvrp/icam", "greedy"),
            ("ICAM no augment.", "icam/icam_cvrp/icam", "multistart"),
            ("LEHD greedy", "scaling/lehd_cvrp/tests_icam", "greedy"),
            ("BQ greedy", "sit/bq_cvrp/tests_icam", "greedy"),
        ):
            where = (run, labels.dataset.id, decoding)
            assert cell(table, f"obj_{name}", label).measured == recorded(work, *where, "length")
            assert cell(table, f"gap_{name}_pct", label).measured == recorded(work, *where, "gap_pct")
            seconds = recorded(work, *where, "time_s") / labels.dataset.count
            assert cell(table, f"time_{name}_s", label).measured == pytest.approx(seconds)
        assert cell(table, f"gap_{name}_pct", "LKH3").measured == 0  # HGS stands for it
        assert f"C={labels.dataset.capacity}" in {c.key: c.at for c in table.columns}[f"obj_{name}"]
    assert cell(table, "gap_5k_pct", "ICAM no augment.").published == -22.048
    assert cell(table, "time_5k_s", "ICAM single trajec.").published == 0.28
    assert cell(table, "obj_3k", "TAM-AM*") == Cell(None, "−")
    lengths = [cell(table, "obj_5k", r.labels[0]).published for r in table.rows]
    assert all(length < 175.66 for length in lengths[1:])
    assert lengths[0] == 175.66
    falls = [
        cell(table, "gap_4k_pct", label).published - cell(table, "gap_5k_pct", label).published
        for label in ("GLOP-G (LKH3)", "LEHD greedy", "BQ greedy", "ICAM single trajec.", "ICAM no augment.")
    ]
    assert any(f"{min(falls):.1f} to {max(falls):.1f} points" in note for note in table.notes)


def test_table6(work: Path) -> None:
    table = draw("table6", work)
    assert [r.labels[0] for r in table.rows] == [
        "LKH3", "LEHD greedy", "BQ greedy", "POMO no augment.", "ELG", "ICAM no augment.",
    ]  # fmt: skip
    for size in roles.LARGE_SIZES:
        labels, name = roles.large(SCALE, size), f"{size // 1000}k"
        for label, run, decoding in (
            ("POMO no augment.", "icam/pomo_tsp/icam", "multistart"),
            ("ICAM no augment.", "icam/icam_tsp/icam", "multistart"),
            ("LEHD greedy", "scaling/lehd_6x128/tests_icam", "greedy"),
        ):
            shown = cell(table, f"gap_{name}_pct", label).measured
            assert shown == recorded(work, run, labels.dataset.id, decoding, "gap_pct")
        mean = FABRIC.label_entry(labels)["mean_length"]
        assert cell(table, f"obj_{name}", "LKH3").measured == pytest.approx(mean)
        assert cell(table, f"time_{name}_s", "LKH3").measured == pytest.approx(0.0125)
    assert cell(table, "gap_2k_pct", "ICAM no augment.").published == 5.934
    assert cell(table, "gap_2k_pct", "LEHD greedy").published == 6.979
    assert row(table, "ELG")[0] == Cell(None, 36.14)


# -- Tables 4, 5 and 12 -----------------------------------------------------------------------------------------------


def test_table4_counts_what_grows_with_the_square(work: Path) -> None:
    table = draw("table4", work)
    icam, pomo = SCALE[IcamScale].network, SCALE[IcamScale].pomo
    key = "operations_per_pair"
    assert cell(table, key, "AFT-full").measured == 4 * icam.width + 1
    assert cell(table, key, "Transformer").measured == 4 * pomo.width + pomo.heads
    assert cell(table, key, "AFT-simple").measured == 0
    assert cell(table, key, "AFT-conv").measured is None
    # Beyond all bounds, nothing else counts.
    many = 10**9
    whole = counts_many_starts.Icam(1, icam.width, icam.feed_forward).encoder(many) / many**2
    assert whole == pytest.approx(4 * icam.width + 1, rel=1e-4)
    published = study("table4", work).published(4)
    for name, value in zip(published.key, published.value, strict=True):
        model, what = name.split(".")
        assert cell(table, what, model) == Cell(None, value)


def test_table5_is_what_the_plan_trains(work: Path) -> None:
    table = draw("table5", work)
    run = BY_ID["icam/icam_cvrp"]
    first, second, third = run.training.stages
    assert cell(table, "icam_cvrp", "Initial learning rate") == Cell(first.learning_rate, 1e-4)
    assert cell(table, "icam_cvrp", "Gradient clipping, largest norm") == Cell(5, 5)
    assert cell(table, "icam_tsp", "Gradient clipping, largest norm") == Cell("no limit", "−")
    assert cell(table, "icam_tsp", "Capacity of stage 1") == Cell(None, "−")
    assert cell(table, "icam_cvrp", "Capacity of stages 2 & 3") == Cell("[20,25]", "[50,100]")
    assert cell(table, "icam_cvrp", "Scale of stages 2 & 3") == Cell(
        f"[{second.sizes[0]},{second.sizes[1]}]", "[100,500]"
    )
    assert cell(table, "icam_tsp", "k of stage 3") == Cell(third.elite.k, 20)
    assert cell(table, "icam_tsp", "Weight decay") == Cell(0, "−")
    assert cell(table, "icam_tsp", "Encoder layers") == Cell(SCALE[IcamScale].network.depth, 12)
    assert cell(table, "pomo_tsp", "Epochs of stage 3") == Cell()
    assert cell(table, "pomo3_tsp", "β of stage 3") == Cell(0.1)


def test_table5_shows_every_printed_entry(work: Path) -> None:
    """Those of both problems in both columns."""
    table, published = draw("table5", work), study("table5", work).published(5)
    expected = {"icam_tsp": 0, "icam_cvrp": 0}
    for key in published.key:
        for name, prefixes in (("icam_tsp", ("both.", "TSP.")), ("icam_cvrp", ("both.", "CVRP."))):
            expected[name] += key.startswith(prefixes)
    keys = [c.key for c in table.columns]
    shown = {n: sum(r.cells[keys.index(n)].published is not None for r in table.rows) for n in expected}
    assert shown == expected


@pytest.mark.parametrize("problem", roles.PROBLEMS)
def test_settings_of_the_published_training_are_the_printed_ones(problem: str, work: Path) -> None:
    """What the table would show here of a run that is trained to the letter."""
    name = roles.OWN[problem]
    network = BY_ID[f"icam/{name}"].network
    shape = network.arguments | {"depth": 12, "width": 128, "feed_forward": 512}
    change = {"training": three_stages(problem), "network": network.model_copy(update={"arguments": shape})}
    found = study("table5", work)
    exact = BY_ID[f"icam/{name}"].model_copy(update=change)
    table = of(replace(found, runs={**found.runs, exact.id: exact}))
    nothing = ("Weight decay", "Gradient clipping, largest norm")  # printed as a dash
    compared = 0
    for r in table.rows:
        shown = r.cells[[c.key for c in table.columns].index(name)]
        if shown.published not in (None, "−"):
            assert shown.measured == shown.published, r.labels
            compared += 1
        elif shown.published == "−" and r.labels[0] not in nothing:
            assert shown.measured is None, r.labels
    assert compared == {"tsp": 21, "cvrp": 24}[problem]


def test_settings_of_one_stage() -> None:
    run = BY_ID["icam/pomo_tsp"].model_copy(update={"training": single_size("tsp")})
    found = {heading: value(ReinforcedRun.of(run)) for heading, _, value in ROWS}
    assert found["Epochs after which the rate falls"] == "3000"
    assert found["Instances drawn, on average"] == 3100 * 1563 * 64
    assert found["Weight decay"] == 1e-6
    assert found["Epochs of stage 2"] is None
    assert ReinforcedRun.of(BY_ID["scaling/bq"]) is None
    assert ReinforcedRun.of(None) is None


def test_defaults_of_the_networks_are_what_table5_says() -> None:
    given = {net.__module__: inspect.signature(net).parameters["clipping"].default for net in (Icam, Pomo)}
    assert given == CLIPPING
    assert Icam(depth=1, width=8, feed_forward=8).alpha.item() == 1


def test_a_network_of_ones_own_is_none_of_them_whatever_its_name() -> None:
    run = BY_ID["icam/icam_tsp"]
    own = run.model_copy(update={"network": run.network.model_copy(update={"kind": "mine:Icam"})})
    shown = {heading: value(ReinforcedRun.of(own)) for heading, _, value in ROWS}
    assert (shown["Clipping parameter"], shown["Initial α value"]) == (None, None)
    assert shown["Encoder layers"] == run.network.arguments["depth"]


# -- Tables 8 to 11 ---------------------------------------------------------------------------------------------------


def test_table8_shows_each_stages_checkpoint(work: Path) -> None:
    table = draw("table8", work)
    paths = [work / f"evaluations/icam/icam_tsp{seed}/stages.csv" for seed in ("", "-s1")]
    frame = pd.concat([pd.read_csv(path) for path in paths])
    for size in roles.SIZES:
        test, gaps = set_id("tsp", size), []
        for number in (1, 2):
            where = frame.run.str.endswith(f"@stage{number}") & (frame.test == test) & (frame.metric == "gap_pct")
            shown = cell(table, f"gap_tsp{size}_pct", f"After stage {number}")
            assert shown.measured == pytest.approx(frame.value[where].mean())
            assert (shown.low, shown.high) == (frame.value[where].min(), frame.value[where].max())
            gaps.append(shown.measured)
        last = cell(table, f"gap_tsp{size}_pct", "After stage 3")
        assert last.measured == recorded(work, "icam/icam_tsp/icam", test, "multistart", "gap_pct")
        assert gaps[0] > gaps[1] > last.measured
    first, second, _ = SCALE[IcamScale].tsp.training.stages
    assert [r.labels[1] for r in table.rows[:2]] == [
        f"n={first.sizes[0]}", f"n={second.sizes[0]} to {second.sizes[1]}",
    ]  # fmt: skip
    assert cell(table, "gap_tsp100_pct", "After stage 1").published == 0.514


def test_table9(work: Path) -> None:
    table = draw("table9", work)
    assert [r.labels[0] for r in table.rows] == ["AFM", "AFM+CAB", "AAFM", "AAFM+CAB"]
    for label, run in zip(("AFM", "AAFM", "AAFM+CAB"), ("abl_afm", "abl_aafm", "icam_tsp"), strict=True):
        shown = cell(table, "gap_tsp500_pct", label).measured
        assert shown == recorded(work, f"icam/{run}/icam", set_id("tsp", 500), "multistart", "gap_pct")
    assert cell(table, "gap_tsp1000_pct", "AFM+CAB").published == 7.090
    # The same number in two tables, as a note says.
    assert cell(table, "gap_tsp100_pct", "AAFM").published == 0.514


def test_table10_shows_what_was_trained_among_what_is_printed(work: Path) -> None:
    table, test = draw("table10", work), set_id("tsp", 1000)
    label = f"k = 20, here {SCALE[IcamScale].elites[20]}"
    for beta, run in ((0.1, "icam_tsp"), (0.5, "k20_b0.5")):
        for decoding in ("greedy", "multistart"):
            shown = cell(table, f"gap_{decoding}_b{beta}_pct", label).measured
            assert shown == recorded(work, f"icam/{run}/icam", test, decoding, "gap_pct")
    measured = sum(c.measured is not None for r in table.rows for c in r.cells)
    assert measured == 2 * (1 + len(SCALE[IcamScale].forks))
    fifty = f"k = 50, here {SCALE[IcamScale].elites[50]}"
    assert cell(table, "gap_greedy_b0_pct", fifty) == Cell(None, "−")
    assert cell(table, "gap_multistart_b0.9_pct", fifty) == Cell(None, 1.857)
    assert any("Others trained here: k = 20 with β = 0.5." in note for note in table.notes)
    ten = study("table10", work).published(10)
    many = ten[(ten.decoding == "multistart_greedy") & (ten.beta > 0)].value
    assert many.max() - many.min() < 0.1


def test_table11(work: Path) -> None:
    table = draw("table11", work)
    rrc, beam = SCALE[IcamScale].rrc, SCALE[IcamScale].beam
    assert [r.labels[0] for r in table.rows] == [
        "Concorde", "BQ greedy", f"BQ bs16, here {beam}", "LEHD greedy", f"LEHD RRC100, here {rrc}",
        "ICAM single trajec.", "ICAM no augment.", f"ICAM RRC100, here {rrc}", f"ICAM bs16, here {beam}", "ICAM aug×8",
    ]  # fmt: skip
    for label, run, decoding in (
        (f"ICAM RRC100, here {rrc}", "icam/icam_tsp/icam", f"rrc{rrc}-multistart"),
        (f"ICAM bs16, here {beam}", "icam/icam_tsp/icam", f"beam{beam}-multistart"),
        (f"LEHD RRC100, here {rrc}", "scaling/lehd_6x128/tests_icam", f"rrc{rrc}"),
        (f"BQ bs16, here {beam}", "scaling/bq/tests_icam", f"beam{beam}"),
    ):
        where = (run, set_id("tsp", 500), decoding)
        assert cell(table, "gap_500_pct", label).measured == recorded(work, *where, "gap_pct")
        assert cell(table, "time_500_s", label).measured == recorded(work, *where, "time_s")
        assert cell(table, "gap_1000_pct", label).measured is None  # beyond what is searched here
        assert cell(table, "gap_1000_pct", label).published is not None
    assert cell(table, "time_100_s", f"BQ bs16, here {beam}").published == 27.5 * 60
    assert cell(table, "gap_1000_pct", f"ICAM RRC100, here {rrc}").published == 1.855


def test_a_missing_stage_leaves_the_printed_number(work: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(work, tmp_path / "copy")
    for path in copy.glob("evaluations/icam/icam_tsp*/stages.csv"):
        frame = pd.read_csv(path)
        frame[~frame.run.str.endswith("@stage1")].to_csv(path, index=False)
    table = of(study("table8", copy))
    assert cell(table, "gap_tsp200_pct", "After stage 1") == Cell(None, 1.856)
    assert cell(table, "gap_tsp200_pct", "After stage 2").measured is not None


# -- Table 13, our own ------------------------------------------------------------------------------------------------


def test_table13_sets_one_size_beside_the_three_stages(work: Path) -> None:
    rows = draw("table13", work).frame().set_index("training")
    staged, alike = rows.loc["Three stages"], rows.loc["One size, in the same time"]
    for size in roles.SIZES:
        where = (set_id("tsp", size), "multistart", "gap_pct")
        gaps = recorded_of_each(work, "icam/icam_tsp/icam", *where)
        assert len(gaps) == 2
        assert staged[f"gap_{size}_pct_measured"] == pytest.approx(np.mean(gaps))
        assert staged[f"gap_{size}_pct_measured_low"] == pytest.approx(min(gaps))
        above = alike[f"gap_{size}_pct_measured"] - staged[f"gap_{size}_pct_measured"]
        assert alike[f"above_{size}_measured"] == pytest.approx(above)
        assert np.isnan(staged[f"above_{size}_measured"])
        low, high = (alike[f"above_{size}_measured_{end}"] for end in ("low", "high"))
        assert low < above < high
    assert alike["above_1000_measured"] > 0  # the fabricated law: it falls off beyond its size; two seeds do not tell
    logged = [json.loads((work / "runs" / "icam" / name / "run.json").read_text()) for name in ("icam_tsp", ALIKE)]
    assert list(rows["instances_measured"]) == [each["samples"] for each in logged]


def test_one_size_is_the_first_stages_and_nothing_else_changes() -> None:
    staged, alike, repeated = (BY_ID[f"icam/{name}"] for name in ("icam_tsp", "one_size_tsp", "one_size_tsp-s1"))
    first = staged.training.stages[0]
    assert repeated.training == alike.training
    assert (alike.seed, repeated.seed, alike.network) == (0, 1, staged.network)
    for before, after in zip(staged.training.stages, alike.training.stages, strict=True):
        own = {"sizes": first.sizes, "batch_size": first.batch_size, "batch_nodes": first.batch_nodes}
        assert after == before.model_copy(update=own | {"epochs": after.epochs})
