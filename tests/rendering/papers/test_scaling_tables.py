"""Tables of paper `scaling` on fabricated records: what they have in common, and what each says of its own numbers."""

import json
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from refusals import one_line

from fabricated import drawn_table, write_manifest
from fabricated_scaling import ARTIFACTS, FABRIC, RUNS, SCALE, shown_as, study_of
from neuroute.evaluation.flops import counts
from neuroute.pipeline.papers.scaling.paper import PAPER, ScalingScale
from neuroute.pipeline.plan.config import parse_config
from neuroute.pipeline.rendering.comparisons import findings
from neuroute.pipeline.rendering.render import render
from neuroute.pipeline.rendering.study import Study
from shown import of

SIZES = (100, 200, 500, 1000)
OWN = SCALE[ScalingScale]
draw = partial(drawn_table, study_of)


def test_missing_records_say_what_to_do(copy: Path, tmp_path: Path) -> None:
    with one_line(r"\.csv: missing; evaluate"):
        render(study_of("table18", tmp_path), tmp_path / "table18")
    assert not list(tmp_path.glob("table18*"))
    (copy / "evaluations/scaling/base_6x256/greedy.npz").write_bytes(b"cut short")
    with one_line("not a readable npz"):
        render(study_of("table12", copy), tmp_path / "table12")


def test_two_values_for_one_cell_are_refused(copy: Path, tmp_path: Path) -> None:
    path = copy / "evaluations/scaling/base_6x128/greedy.csv"
    path.write_text(path.read_text() + path.read_text().split("\n", 1)[1])
    with one_line("2 values of"):
        render(study_of("table12", copy), tmp_path / "table12")


def test_claims_on_table18_have_intervals_though_it_shows_none(work: Path) -> None:
    (declared,) = (claim for claim in PAPER.claims() if claim.id == "beam-64-deep-over-wide")
    (finding,) = findings(declared, {"table18": draw("table18", work)})
    assert finding.estimate.interval() is not None


def test_table5_says_what_each_row_was_measured_on(work: Path) -> None:
    fewer = OWN.beam_count - 1  # no beam search was measured on as many instances
    scale = SCALE.with_block(OWN.model_copy(update={"beam_count": fewer}))
    table = of(study_of("table5", work, scale))
    assert any(f"beam searches were measured on {shown_as(100, fewer)}" in note for note in table.notes)
    for row in table.rows:
        greedy = str(row.labels[0]).endswith("greedy")
        assert row.cells[1].at == (shown_as(100) if greedy else "")
        assert (row.cells[1].measured is not None) == greedy
        assert row.cells[1].published is not None


def test_table6_compares_models_on_the_same_instances(copy: Path) -> None:
    path = copy / "evaluations/scaling/bq/tsplib.csv"
    path.write_text("".join(line for line in path.read_text().splitlines(True) if "tsplib_eil51," not in line))
    study = study_of("table6", copy)
    table = of(study)
    assert table.rows[2].labels[2] == "4 of 70"
    assert "Not measured here: eil51." in table.notes
    of_model = study.records.run.isin(study.trainings("scaling/base_6x128"))
    own = study.records[of_model & (study.records.metric == "gap_pct")]
    assert own.run.nunique() == 3
    assert table.rows[2].cells[3].measured == pytest.approx(own[own.test != "tsplib_eil51"].value.mean())


def test_a_network_of_ones_own_is_counted_as_it_is_whatever_its_name(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "counted_as_it_is.py").write_text(
        "from neuroute.networks.lehd import Lehd\n\n\nclass DecoderOnly(Lehd):\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    lehd = next(run.network for run in RUNS if run.id == "scaling/lehd_6x128")
    study = study_of("table1", work)
    first = study.runs["scaling/base_6x128"]
    own = first.model_copy(update={"network": lehd.model_copy(update={"kind": "counted_as_it_is:DecoderOnly"})})
    table = of(replace(study, runs={**study.runs, own.id: own}))
    assert table.rows[0].cells[3].measured == pytest.approx(counts(lehd).parameters / 1e6)


def test_solver_row_says_which_solver_it_is(work: Path, tmp_path: Path) -> None:
    row = draw("table13", work).rows[0]
    assert row.labels == ("LKH3", "Concorde (kit 0.5.7)")
    assert [c.measured for c in row.cells] == [v for n in SIZES[1:] for v in (0.0, 0.0125 * OWN.test_counts[n])]
    scale = SCALE.model_copy(update={"reference_solver": "lkh"})
    fabric = FABRIC.by(scale=scale)
    for labels in fabric.labels:
        write_manifest(tmp_path, fabric.label_entry(labels))
    shutil.copytree(work / "evaluations", tmp_path / "evaluations")
    table = of(fabric.study("table13", tmp_path))
    assert table.rows[0].labels == ("LKH3", "LKH (elkai 2.0.1)")
    assert table.rows[0].cells[0].measured == 0
    assert any("by construction" in note and "not run" not in note for note in table.notes)


def test_solver_row_says_when_labels_came_without_times(copy: Path) -> None:
    for job in ARTIFACTS["table13"].label_jobs:
        path = copy / f"labels/{job}.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"seconds": None}))
    table = of(study_of("table13", copy))
    assert any("keeps no times" in note for note in table.notes)
    assert table.rows[0].cells[-1].measured is None
    assert table.rows[0].cells[-1].published == 36000


def test_table9_says_when_single_runs_are_changed(tmp_path: Path) -> None:
    config = parse_config({"runs": {"scaling/base_12x256": {"training": {"learning_rate": 0.01}}}})
    study = Study.load(ARTIFACTS["table9"], config, SCALE, PAPER.runs(config, SCALE), tmp_path)
    assert any("(12, 256)" in note for note in of(study).notes)


@pytest.mark.parametrize("corner", [None, "42x512"])
def test_a_rate_that_short_trainings_did_not_choose_is_named(corner: str | None, copy: Path) -> None:
    assert OWN.rates is not None
    chosen = {f"pilot_{shape}_{rate:g}" for shape, rate in OWN.rates.best.items() if shape != corner}
    for log in copy.glob("runs/scaling/pilot_*/log.jsonl"):
        line = {"kind": "validation", "batch": 1, "samples": 1, "gap_pct": 5.0 if log.parent.name in chosen else 6.0}
        log.write_text(json.dumps(line) + "\n")
    table = of(study_of("table22", copy))
    best = {row.labels[0]: row.cells[-4].measured for row in table.rows if row.cells[-4].measured}
    assert len(best) == len(OWN.rates.best)
    notes = " ".join(table.notes)
    assert ("The scale's rates are the best tried at each corner." in notes) == (corner is None)
    assert ("(42, 512)" in notes) == (corner is not None)
