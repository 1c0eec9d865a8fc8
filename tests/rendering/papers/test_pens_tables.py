"""Tables of paper `pens` on fabricated records: cells are what the records say, printed numbers in the right ones."""

import json
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fabricated import drawn_table, edit_arrays
from fabricated_pens import ARTIFACTS, FABRIC, RUNS, SCALE, best_factor, study
from neuroute.datasets.benchmarks import study_instances
from neuroute.papers.pens import roles
from neuroute.papers.pens.scale import PensScale
from neuroute.plan.decoding_names import name_of
from neuroute.plan.objects import Decoding
from neuroute.rendering.cells import MEAN_OF_GAPS, printed_numbers
from neuroute.rendering.render import render
from neuroute.rendering.table import Cell
from table_cells import cell, of, recorded

RECORDS = FABRIC
TABLES = [name for name in ARTIFACTS if name.startswith("table")]
SIZES = (100, 250, 500, 1000, 10_000)
GROUPS = {"1-100": (1, 100), "101-1000": (101, 1000), "1001-10000": (1001, 10_000)}
REPEATS = SCALE[PensScale].repeats
REPEATED, RESCALED = Decoding(repeats=REPEATS), Decoding(repeats=REPEATS, rescale="best")
TIMED = Decoding(batch_size=1)
draw = partial(drawn_table, study)


def records(work: Path, evaluation: str) -> pd.DataFrame:
    return pd.read_csv(work / "evaluations" / f"{evaluation}.csv")


def set_id(size: int, count: int | None = None) -> str:
    return roles.reference(SCALE, size, count).dataset.id


def test_table1_gaps_and_factors(work: Path) -> None:
    table = draw("table1", work)
    assert [r.labels[:2] for r in table.rows] == [
        (model, coordinates) for model in ("PENS-A", "PENS-R") for coordinates in ("original", "rescaled")
    ]
    run = next(r for r in RUNS if r.id == "pens/pens_a")
    for size in SIZES:
        key = f"gap_tsp{size}_pct"
        for label, decoding in (("original", REPEATED), ("rescaled", RESCALED)):
            shown = cell(table, key, "PENS-A", label)
            assert shown.measured == recorded(
                work, "pens/pens_a/uniform", set_id(size), name_of(decoding), MEAN_OF_GAPS
            )
            assert shown.low < shown.measured < shown.high
        assert cell(table, f"factor_tsp{size}", "PENS-A", "original") == Cell()
        assert cell(table, f"factor_tsp{size}", "PENS-A", "rescaled").measured == best_factor(
            run, SCALE[PensScale].sizes[size]
        )
    assert cell(table, "gap_tsp10000_pct", "PENS-A", "rescaled").published == 5.46
    assert cell(table, "factor_tsp10000", "PENS-A", "rescaled").published == 2.08
    assert cell(table, "gap_tsp500_pct", "PENS-R", "original").published == 0.95
    notes = " ".join(table.notes)
    assert "from 9.47 to 5.46 %" in notes
    assert "the tables print 9.74 %" in notes
    assert "1.78" in notes
    assert "no minimum" not in notes


def test_table1_says_where_a_sweep_has_no_minimum(work: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(work, tmp_path / "copy")

    def without(arrays: dict[str, np.ndarray]) -> None:
        arrays["interior"] = arrays["sizes"] != SCALE[PensScale].sizes[1000]

    edit_arrays(copy / "evaluations/pens/pens_r/rescaling.npz", without)
    (note,) = [n for n in draw("table1", copy).notes if "no minimum between the factors" in n]
    assert f"for PENS-R at TSP1000 (TSP{SCALE[PensScale].sizes[1000]} here):" in note


ROWS = ["BQ-NCO", "BQ-NCO + ESF", "LEHD", "INViT-2V", "INViT-3V", "DGL"]
PENS = ["PENS-A", "PENS-R", "PENS-AR"]


def test_table2_is_rescaled_where_the_paper_is(work: Path) -> None:
    table = draw("table2", work)
    assert [r.labels[0] for r in table.rows] == ROWS + PENS
    for size in SIZES:
        decoding = RESCALED if size >= 1000 else REPEATED
        shown = cell(table, f"gap_tsp{size}_pct", "PENS-AR")
        assert shown.measured == recorded(work, "pens/pens_ar/uniform", set_id(size), name_of(decoding), MEAN_OF_GAPS)
        timed = set_id(size, SCALE[PensScale].timed_counts[size])
        assert timed != set_id(size)  # so that a mix-up shows
        time = cell(table, f"time_tsp{size}_s", "PENS-AR").measured
        assert time == recorded(work, "pens/pens_ar/uniform", timed, name_of(TIMED), "time_s")
    frame = records(work, "pens/pens_a/tsplib")
    for name, (least, most) in GROUPS.items():
        decoding = RESCALED if least > 1000 else REPEATED
        own = frame[(frame.n >= least) & (frame.n <= most) & (frame.decoding == name_of(decoding))]
        key = f"tsplib_{name.replace('-', '_')}"
        gap, time = cell(table, f"gap_{key}_pct", "PENS-A"), cell(table, f"time_{key}_s", "PENS-A")
        assert gap.measured == pytest.approx(own[own.metric == "gap_pct"].value.mean())
        assert time.measured == pytest.approx(own[own.metric == "time_s"].value.sum())
    at = {c.key: c.at for c in table.columns}
    assert [at[f"gap_tsplib_{k.replace('-', '_')}_pct"] for k in GROUPS] == [
        f"{k} of {k} instances" for k in (12, 36, 24)
    ]
    assert at["time_tsp100_s"] == f"TSP{SCALE[PensScale].sizes[100]}, {SCALE[PensScale].timed_counts[100]:,} instances"
    assert cell(table, "gap_tsp1000_pct", "PENS-R").published == 1.52
    assert cell(table, "gap_tsp500_pct", "PENS-R").published == 0.95
    assert cell(table, "gap_tsplib_1001_10000_pct", "PENS-AR").published == 5.51
    assert cell(table, "time_tsp10000_s", "BQ-NCO + ESF").published == 19320


def test_table2_baselines(work: Path) -> None:
    table = draw("table2", work)
    esf = Decoding(esf=True)
    for label, decoding in (("BQ-NCO", Decoding()), ("BQ-NCO + ESF", esf)):
        shown = cell(table, "gap_tsp1000_pct", label).measured
        assert shown == recorded(work, "scaling/bq/uniform_pens", set_id(1000), name_of(decoding), MEAN_OF_GAPS)
    timed = set_id(1000, SCALE[PensScale].timed_counts[1000])
    assert cell(table, "time_tsp1000_s", "BQ-NCO + ESF").measured == recorded(
        work, "scaling/bq/uniform_pens", timed, name_of(Decoding(esf=True, batch_size=1)), "time_s"
    )
    frame = records(work, "scaling/bq/tsplib_pens")
    own = frame[(frame.n > 1000) & (frame.decoding == esf.id) & (frame.metric == "gap_pct")]
    assert cell(table, "gap_tsplib_1001_10000_pct", "BQ-NCO + ESF").measured == pytest.approx(own.value.mean())
    for label, run in (("INViT-2V", "invit_2v"), ("INViT-3V", "invit_3v")):
        shown = cell(table, "gap_tsp1000_pct", label)
        name = f"rivals/{run}/uniform_pens"
        assert shown.measured == recorded(work, name, set_id(1000), name_of(REPEATED), MEAN_OF_GAPS)
        assert shown.published is not None
    assert all(c.measured is not None for r in table.rows for c in r.cells)


def test_table3_has_both_rows_of_each_model(work: Path) -> None:
    table = draw("table3", work)
    assert [r.labels[0] for r in table.rows] == ROWS + [m + s for m in PENS for s in ("", " (scaled)")]
    for label, decoding in (("PENS-R", REPEATED), ("PENS-R (scaled)", RESCALED)):
        shown = cell(table, "gap_tsp250_pct", label)
        assert shown.measured == recorded(work, "pens/pens_r/uniform", set_id(250), name_of(decoding), MEAN_OF_GAPS)
        frame = records(work, "pens/pens_r/tsplib")
        own = frame[(frame.n <= 100) & (frame.decoding == name_of(decoding)) & (frame.metric == "gap_pct")]
        assert cell(table, "gap_tsplib_1_100_pct", label).measured == pytest.approx(own.value.mean())
    plain, scaled = (cell(table, "time_tsp500_s", label).measured for label in ("PENS-R", "PENS-R (scaled)"))
    assert plain == scaled
    assert cell(table, "gap_tsp10000_pct", "PENS-A").published == 9.74
    assert cell(table, "gap_tsp10000_pct", "PENS-A (scaled)").published == 5.46


def test_only_instances_that_all_have_solved_count(work: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(work, tmp_path / "copy")
    path = copy / "evaluations/pens/pens_ar/tsplib.csv"
    frame = pd.read_csv(path)
    frame[~((frame.test == "tsplib_berlin52") & (frame.decoding == name_of(RESCALED)))].to_csv(path, index=False)
    table = draw("table3", copy)
    (at,) = {c.at for c in table.columns if c.key.endswith("tsplib_1_100_pct")}
    assert at == "11 of 12 instances"
    own = records(work, "pens/pens_a/tsplib")
    own = own[(own.n <= 100) & (own.test != "tsplib_berlin52")]
    own = own[(own.decoding == name_of(REPEATED)) & (own.metric == "gap_pct")]
    assert cell(table, "gap_tsplib_1_100_pct", "PENS-A").measured == pytest.approx(own.value.mean())
    assert "Not measured here: berlin52." in table.notes


def test_table4_counts_parameters(work: Path) -> None:
    table = draw("table4", work)
    own = recorded(work, "pens/pens_a/uniform", set_id(100), name_of(roles.repeated(SCALE)), "parameters")
    assert cell(table, "parameters_millions", "PENS").measured == own / 1e6
    assert cell(table, "parameters_millions", "PENS").published == 2.7
    bq = recorded(work, "scaling/bq/uniform_pens", set_id(100), name_of(Decoding()), "parameters")
    for label in ("BQ-NCO", "BQ-NCO+ESF"):
        assert cell(table, "parameters_millions", label).measured == bq / 1e6
        assert cell(table, "parameters_millions", label).published == 3.1
    assert cell(table, "parameters_millions", "INViT-2V/3V") == Cell(None, "1.7/2.6")
    assert cell(table, "graph_type", "DGL").published == "Sparsified"
    dgl = recorded(work, "rivals/dgl/uniform_pens", set_id(100), name_of(Decoding()), "parameters")
    assert cell(table, "parameters_millions", "DGL").measured == dgl / 1e6
    notes = " ".join(table.notes)
    assert "2.8M parameters, this table 2.7M" in notes
    assert "3.17M" in notes
    assert "2,842,560" in notes


def test_figure_tables(work: Path) -> None:
    four, five = draw("table_figure4", work), draw("table_figure5", work)
    assert [r.labels[0] for r in four.rows] == ["CoordNS", "PENS-A", "PENS-R"]
    for size in SIZES:
        shown = cell(four, f"gap_tsp{size}_pct", "CoordNS").measured
        assert shown == recorded(work, "pens/coordns/uniform", set_id(size), name_of(REPEATED), MEAN_OF_GAPS)
    assert cell(four, "gap_tsp10000_pct", "CoordNS").published == 23.47
    assert cell(four, "gap_tsp10000_pct", "PENS-A").published == 9.74
    assert [r.labels[:2] for r in five.rows] == [
        (model, init) for model in ("PENS-A", "PENS-R") for init in ("Zero init", "Gaussian init")
    ]
    shown = cell(five, "gap_tsp100_pct", "PENS-R", "Gaussian init")
    assert shown.measured == recorded(work, "pens/small_r_gauss/uniform", set_id(100), name_of(REPEATED), MEAN_OF_GAPS)
    assert shown.published == 3.459
    assert cell(five, "gap_tsp20_pct", "PENS-A", "Zero init").published == 0.096


@pytest.mark.parametrize("name", [name for name in TABLES if name != "table4"])
def test_notes_tell_of_repeats_and_their_spread(name: str, work: Path) -> None:
    """The largest spread of the cells shown, not of others that the same records hold."""
    found = study(name, work)
    text = " ".join(of(found).notes)
    tests = {set_id(size) for size in (roles.SMALL_SIZES if name == "table_figure5" else SIZES)}
    frame = found.records[(found.records.metric == "gap_spread_pct") & found.records.test.isin(tests)]
    assert f"{frame.value.max():.3f} points" in text
    assert f"{REPEATS} solutions of each instance" in text
    assert "One training of each model" in text


def test_other_reference_solvers_and_single_solutions_are_said(work: Path) -> None:
    change = {"largest_solver": "lkh", "repeats": 1}
    scale = SCALE.with_block(SCALE[PensScale].model_copy(update=change))
    notes = " ".join(of(replace(study("table_figure4", work), scale=scale)).notes)
    assert "against Concorde's tours, at TSP10000" in notes
    assert "LKH's tours" in notes
    assert "solved once here, five times in the paper" in notes


def test_what_the_notes_say_of_the_printed_numbers_is_so(work: Path) -> None:
    def gaps(table: str, artifact: str, **where: object) -> dict[str, float]:
        rows = printed_numbers(study(artifact, work), table, **where)
        rows = rows[rows.metric == "gap_pct"]
        return dict(zip(rows.n.astype(str), rows.value, strict=True))

    two = {m: gaps("table2", "table2", method=m) for m in ROWS + PENS}
    three = {(m, s): gaps("table3", "table3", method=m, scaled=s) for m in PENS for s in ("no", "yes")}
    coordns = gaps("figure4_table", "table_figure4", method="CoordNS")
    assert three["PENS-AR", "yes"]["10000"] == two["PENS-AR"]["10000"] == 7.13
    assert two["INViT-3V"]["10000"] == 7.05
    assert two["INViT-2V"]["10000"] == 7.08
    assert coordns["1000"] == 1.51
    assert coordns["1000"] < min(g["1000"] for g in [*two.values(), *three.values()])
    assert all(coordns[n] < three["PENS-A", "no"][n] for n in ("250", "500"))
    assert all(two["PENS-AR"][n] < two["PENS-R"][n] for n in ("100", "250", "500"))
    scaled = {"1000", "10000", "1001-10000"}
    for model in PENS:
        for n, gap in two[model].items():
            assert gap == three[model, "yes" if n in scaled else "no"][n]
    (note,) = [n for n in draw("table2", work).notes if n.startswith("PENS is rescaled")]
    assert "TSP1000, TSP10000, TSPLIB 1001-10000 and nowhere else" in note
    zero, gauss = (gaps("figure5a_table", "table_figure5", method="PENS-A", init=init) for init in ("zero", "gaussian"))
    assert [n for n in zero if gauss[n] > zero[n]] == ["20", "50"]
    assert two["LEHD"]["1000"] == 3.06
    assert two["BQ-NCO"]["1000"] == 2.19
    other = study("table2", work)
    other = replace(other, artifact=other.artifact.model_copy(update={"paper": "scaling"})).published(5)
    other = other[(other.decoding == "greedy") & (other.n == 1000) & (other.metric == "gap_pct")]
    assert dict(zip(other.method, other.value, strict=True)).items() >= {"LEHD": 3.168, "BQ": 2.274}.items()


def test_the_groups_of_tsplib_are_the_papers(work: Path) -> None:
    nodes = [k.nodes for k in study_instances(10_001)]
    rows = study("table2", work).published("table2")
    for name, (least, most) in GROUPS.items():
        (count,) = set(rows[rows.n == name].n_instances)
        assert sum(least <= n <= most for n in nodes) == count


def test_notes_reach_the_report(work: Path, tmp_path: Path) -> None:
    render(study("table2", work), tmp_path / "table2")
    told = json.loads((tmp_path / "table2.json").read_text())
    assert "behind INViT-3V (7.05 %)" in " ".join(told["notes"])
