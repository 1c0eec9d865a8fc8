"""Tables 3 to 11 of paper `sit`, one by one, on fabricated records."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fabricated_sit import FABRIC, RUNS, SCALE, SHORT, draw, efficiency, set_id, study
from neuroute.papers.sit import roles
from neuroute.papers.sit.scale import SitScale
from neuroute.papers.sit.tables_efficiency import exponent
from neuroute.plan.objects import Labels
from neuroute.rendering.table import Cell
from table_cells import cell, of, recorded, row

RECORDS = FABRIC
# -- Tables 3, 4 and 10 -----------------------------------------------------------------------------------------------


def test_table3(work: Path) -> None:
    table = draw("table3", work)
    assert [r.labels[0] for r in table.rows] == [
        "w/o SIT", "w/o Cross-Attention", "w/o Cross-Attention, fused kernel", "Ours",
    ]  # fmt: skip
    for size in roles.ABLATED:
        for label, run in (("w/o SIT", "cvrp_no_sit"), ("w/o Cross-Attention", "cvrp_self"), ("Ours", "cvrp_1k")):
            shown = cell(table, f"gap_{SHORT[size]}_pct", label).measured
            assert shown == recorded(work, f"sit/{run}/sit", set_id("cvrp", size), "greedy", "gap_pct")
        n = SCALE[SitScale].efficiency_sizes[size]
        for label, network in (
            ("w/o SIT", "SIT"),
            ("w/o Cross-Attention", "self-attention-math"),
            ("w/o Cross-Attention, fused kernel", "self-attention"),
            ("Ours", "SIT"),
        ):
            time, memory = (cell(table, f"{key}_{SHORT[size]}{unit}", label) for key, unit in
                            (("time", "_s"), ("memory", "_mb")))  # fmt: skip
            assert time.measured == pytest.approx(efficiency(network, n)["time_s"])
            assert memory.measured == pytest.approx(efficiency(network, n)["peak_memory_mb"])
            assert time.at == f"CVRP{n}, one instance"
    assert cell(table, "memory_10k_mb", "w/o Cross-Attention").published == 9219.09
    assert cell(table, "memory_10k_mb", "w/o Cross-Attention, fused kernel").published is None
    assert cell(table, "gap_10k_pct", "w/o SIT").published == 37.63


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


def test_table10(work: Path) -> None:
    table = draw("table10", work)
    shown = cell(table, "gap_5k_pct", "BQ origin").measured
    assert shown == recorded(work, "sit/bq_cvrp/sit", set_id("cvrp", 5000), "greedy", "gap_pct")
    shown = cell(table, "gap_1k_pct", "BQ+Cross-Attention+SIT").measured
    assert shown == recorded(work, "sit/bq_cross_1k/sit", set_id("cvrp", 1000), "greedy", "gap_pct")
    assert cell(table, "gap_5k_pct", "BQ+Cross-Attention+SIT") == Cell(None, 8.19)  # not trained at this scale
    assert any("trains no BQ+Cross-Attention+SIT at 5K" in note for note in table.notes)
    n = SCALE[SitScale].efficiency_sizes[5000]
    held = cell(table, "memory_5k_mb", "BQ origin")
    assert held.measured == pytest.approx(efficiency("BQ-math", n)["peak_memory_mb"])
    crossed = cell(table, "time_5k_s", "BQ+Cross-Attention+SIT")
    assert crossed.measured == pytest.approx(efficiency("BQ+cross-attention", n)["time_s"])
    assert crossed.published == 3.2


# -- Tables 5 to 9 and 11 ---------------------------------------------------------------------------------------------


def test_table5_crosses_training_and_inference(work: Path) -> None:
    table = draw("table5", work)
    runs = {"100, here 4": "tsp_10k_lmax100", "1,000, here 8": "tsp_10k", "10,000, here 12": "tsp_10k_lmax10000"}
    assert [r.labels[0] for r in table.rows] == list(runs)
    test = set_id("tsp", 10_000)
    for label, run in runs.items():
        for used, stops in SCALE[SitScale].longest.items():
            where = (f"sit/{run}/sit", test, f"prc3-insertion-l{stops}")
            assert cell(table, f"gap_lmax{used}_pct", label).measured == recorded(work, *where, "gap_pct")
            assert cell(table, f"time_lmax{used}_s", label).measured == recorded(work, *where, "time_s") / 4
    assert cell(table, "gap_lmax10000_pct", "1,000, here 8").published == 2.279
    assert cell(table, "gap_lmax1000_pct", "10,000, here 12").published == 2.490


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


def test_table7_has_three_starts(work: Path) -> None:
    table = draw("table7", work)
    for problem in roles.PROBLEMS:
        for size, name in SHORT.items():
            run, test = f"sit/{roles.model(SCALE, problem, size)}/sit", set_id(problem, size)
            for label, decoding in (
                ("Model's greedy", "prc3"),
                ("Nearest neighbour", "prc3-nearest"),
                ("Random insertion", f"prc3-{roles.INITIAL[problem]}"),
            ):
                shown = cell(table, f"obj_{name}", problem.upper(), label).measured
                assert shown == recorded(work, run, test, decoding, "length")
    assert cell(table, "obj_100k", "CVRP", "Model's greedy").published == 464.325
    (note,) = [n for n in table.notes if "6 of 10 in print" in n]
    frame = table.frame()
    lengths = np.array([[c.measured for c in r.cells] for r in table.rows]).reshape(2, 3, 5)
    assert f"{int((lengths.argmin(1) == 2).sum())} of 10 groups here" in note
    assert len(frame) == 6


def test_table8(work: Path) -> None:
    table = draw("table8", work)
    for size, name in ((1000, "1k"), (2000, "2k"), (5000, "5k"), (7000, "7k")):
        labels = roles.tam(SCALE, size)
        shown = cell(table, f"obj_{name}", "Ours greedy").measured
        assert shown == recorded(work, "sit/cvrp_1k/sit", labels.dataset.id, "greedy", "length")
        best = np.load(work / "evaluations/sit/cvrp_1k/sit.npz")[f"{labels.dataset.id}|reference"].mean()
        assert cell(table, f"obj_{name}", "HGS").measured == pytest.approx(best)
        insertion = Labels(dataset=labels.dataset, solver="insertion-published")
        assert cell(table, f"obj_{name}", "Random Insertion").measured == FABRIC.label_entry(insertion)["mean_length"]
        assert all(cell(table, f"obj_{name}", other).measured is None for other in ("LKH3", "TAM-LKH3", "TAM-HGS"))
    assert cell(table, "obj_1k", "TAM-HGS").published == "—"
    assert cell(table, "time_7k_s", "Ours greedy").published == 8.9
    assert {c.at for c in table.columns if c.paper == "CVRP2000"} == {"CVRP9, 2 instances, C=25"}


def test_table9_has_total_times_and_greedy_beside_prc(work: Path) -> None:
    table = draw("table9", work)
    for problem in roles.PROBLEMS:
        labels = roles.small(SCALE, problem, 500)
        for label, decoding in (("Ours greedy", "greedy"), ("Ours PRC10, here 1", f"prc1-{roles.INITIAL[problem]}")):
            where = (f"sit/{problem}_1k/sit", labels.dataset.id, decoding)
            assert cell(table, "gap_500_pct", problem.upper(), label).measured == recorded(work, *where, "gap_pct")
            assert cell(table, "time_500_s", problem.upper(), label).measured == recorded(work, *where, "time_s")
    assert cell(table, "gap_700_pct", "CVRP", "Ours PRC10, here 1").published == 0.771
    assert all(c.published is None for c in row(table, "TSP", "Ours greedy"))
    assert cell(table, "time_300_s", "TSP", "Concorde").measured is not None
    labels = roles.small(SCALE, "cvrp", 700)
    assert cell(table, "time_700_s", "CVRP", "HGS").measured == pytest.approx(0.0125 * labels.dataset.count)
    shown = cell(table, "obj_300", "CVRP", "BQ greedy").measured
    small = roles.small(SCALE, "cvrp", 300).dataset.id
    assert shown == recorded(work, "sit/bq_cvrp/sit", small, "greedy", "length")
