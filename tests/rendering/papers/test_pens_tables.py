"""Tables of paper `pens` on fabricated records: cells are what the records say, printed numbers in the right ones."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fabricated import drawn_table, edit_arrays, keep_records
from fabricated_pens import FABRIC, SCALE, study
from neuroute.datasets.benchmarks import study_instances
from neuroute.papers.pens.scale import PensScale
from neuroute.plan.decodings import name_of
from neuroute.plan.objects import Decoding
from neuroute.rendering.cells import printed_numbers
from table_cells import cell, of

RECORDS = FABRIC
GROUPS = {"1-100": (1, 100), "101-1000": (101, 1000), "1001-10000": (1001, 10_000)}
REPEATS = SCALE[PensScale].repeats
REPEATED, RESCALED = Decoding(repeats=REPEATS), Decoding(repeats=REPEATS, rescale="best")
draw = partial(drawn_table, study)


def test_table1_says_where_a_sweep_has_no_minimum(copy: Path) -> None:
    def without(arrays: dict[str, np.ndarray]) -> None:
        arrays["interior"] = arrays["sizes"] != SCALE[PensScale].sizes[1000]

    edit_arrays(copy / "evaluations/pens/pens_r/rescaling.npz", without)
    (note,) = [n for n in draw("table1", copy).notes if "no minimum between the factors" in n]
    assert f"for PENS-R at TSP1000 (TSP{SCALE[PensScale].sizes[1000]} here):" in note


ROWS = ["BQ-NCO", "BQ-NCO + ESF", "LEHD", "INViT-2V", "INViT-3V", "DGL"]
PENS = ["PENS-A", "PENS-R", "PENS-AR"]


def test_only_instances_that_all_have_solved_count(work: Path, copy: Path) -> None:
    keep_records(
        copy,
        "pens/pens_ar/tsplib",
        lambda frame: (frame.test != "tsplib_berlin52") | (frame.decoding != name_of(RESCALED)),
    )
    table = draw("table3", copy)
    (at,) = {c.at for c in table.columns if c.key.endswith("tsplib_1_100_pct")}
    assert at == "11 of 12 instances"
    own = pd.read_csv(work / "evaluations/pens/pens_a/tsplib.csv")
    own = own[(own.n <= 100) & (own.test != "tsplib_berlin52")]
    own = own[(own.decoding == name_of(REPEATED)) & (own.metric == "gap_pct")]
    assert cell(table, "gap_tsplib_1_100_pct", "PENS-A").measured == pytest.approx(own.value.mean())
    assert "Not measured here: berlin52." in table.notes


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
