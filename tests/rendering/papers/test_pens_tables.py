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
from fabricated_pens import ARTIFACTS, FABRIC, SCALE, study
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
