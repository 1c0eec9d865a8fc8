"""Evaluations that are interrupted, at any step, or measured in parts: records as of one that ran through.

Records that were cut or edited are named where they are read.
"""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from untrained import CONTEXT, decoded, evaluated, run_of

from neuroute.analysis.rescaling import read_best
from neuroute.core.errors import NeurouteError
from neuroute.core.files import exclusive, write_json
from neuroute.datasets.labels import make_labels
from neuroute.evaluation import labelled, loaded
from neuroute.evaluation.difference import read_lengths
from neuroute.evaluation.driver import evaluate
from neuroute.evaluation.loaded import MeasuredSteps
from neuroute.pipeline.plan.config import load_scale, parse_config
from neuroute.pipeline.rendering.study import Study
from neuroute.specs.objects import Artifact, Dataset, Decoding, Evaluation, Labels, Network, Problem, Run

MEASURED = ("time_s", "peak_memory_mb")  # of the process that ended
SHAPE = {"depth": 1, "width": 8, "heads": 1, "train_nodes": 9}
RRC = Decoding(method="rrc", iterations=5, milestones=(0, 2, 5), batch_size=4)
PRC = Decoding(method="prc", start="nearest", iterations=4, milestones=(1, 4), longest=6, batch_size=4)
BEAM = Decoding(method="beam", beam=2, batch_size=4)
CASES: dict[str, tuple[Problem, str, dict[str, Any], tuple[Decoding, ...]]] = {
    "tsp": ("tsp", "decoder_only:DecoderOnly", {"gate": True, "rezero": True}, (RRC, BEAM, PRC)),
    "cvrp": ("cvrp", "lehd:LehdCvrp", {"feed_forward": 8}, (RRC, PRC)),
    "random embeddings": (
        "tsp",
        "pens:Pens",
        {"feed_forward": 8, "width": 16, "heads": 2, "positions": "alibi", "initial": "gaussian"},
        (Decoding(repeats=2, batch_size=4), RRC),
    ),
}


class Killed(BaseException):
    pass


def die_after_each_step(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let each step be kept, and the process end with it; return the number of ends so far, in a list."""
    monkeypatch.setattr(loaded, "KEEP_EVERY_S", 0.0)
    save, ends = MeasuredSteps.flush, [0]

    def save_and_die(self: MeasuredSteps) -> None:
        save(self)
        ends[0] += 1
        raise Killed

    monkeypatch.setattr(MeasuredSteps, "flush", save_and_die)
    return ends


def case(folder: Path, name: str) -> tuple[Evaluation, Run]:
    problem, kind, arguments, decodings = CASES[name]
    labels = Labels(dataset=Dataset(problem=problem, n=9, count=7), solver="nearest")
    make_labels(labels, folder / "labels", [], workers=1)
    run = run_of(Network(kind=f"neuroute.networks.{kind}", arguments=SHAPE | arguments), labels)
    return decoded(run, *((labels, d) for d in decodings), group="all"), run


def measured(folder: Path, labels: Path, evaluation: Evaluation, run: Run) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Records without what only the clock says, and lengths."""
    rows, lengths = evaluated(folder, evaluation, run, label_dirs=[labels])
    assert (rows[rows.metric == "time_s"].value > 0).all()
    return rows[~rows.metric.isin(MEASURED)].drop(columns="wall_time_s").reset_index(drop=True), lengths


@pytest.mark.parametrize("name", CASES)
def test_an_evaluation_that_is_killed_after_any_step_ends_with_the_same_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    evaluation, run = case(tmp_path, name)
    rows, lengths = measured(tmp_path / "whole", tmp_path / "labels", evaluation, run)
    saves, killed = die_after_each_step(monkeypatch), tmp_path / "killed"
    for _ in range(100):
        try:
            again = measured(killed, tmp_path / "labels", evaluation, run)
            break
        except Killed:
            assert not list((killed / "out").glob("*.csv"))
    pd.testing.assert_frame_equal(again[0], rows)
    assert list(again[1]) == list(lengths)
    for key in lengths:
        np.testing.assert_array_equal(again[1][key], lengths[key])
    steps = sum(2 * (d.iterations + 1) * d.repeats + d.repeats + 1 for d in CASES[name][3])
    assert saves[0] <= steps + 1  # each kill was after another step: none was taken twice
    assert saves[0] > len(CASES[name][3]) * 2
    assert {path.name for path in (killed / "out").iterdir()} == {"all.csv", "all.npz", "all.json", ".all"}
    assert not [*(killed / "out").rglob(".all/*/*")]


def test_parts_share_the_work_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluation, run = case(tmp_path, "tsp")
    rows, lengths = measured(tmp_path, tmp_path / "labels", evaluation, run)
    shutil.rmtree(tmp_path / "out")
    done: list[str] = []
    measure = labelled.measure
    monkeypatch.setattr(labelled, "measure", lambda *a: done.append(a[1].decoding.name) or measure(*a))
    records, context = tmp_path / "out" / "all.csv", replace(CONTEXT, label_dirs=[tmp_path / "labels"])
    for k in (1, 0):
        evaluate(evaluation, run, tmp_path / "model.safetensors", records, context, part=(k, 2))
        assert not records.exists()
    assert done == ["beam2-batch4", "rrc5-batch4", "prc4-nearest-l6-batch4"]
    again = measured(tmp_path, tmp_path / "labels", evaluation, run)
    assert len(done) == 3
    pd.testing.assert_frame_equal(again[0], rows)
    assert list(again[1]) == list(lengths)


def test_what_another_model_has_measured_is_of_no_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluation, run = case(tmp_path, "tsp")
    deeper = run.network.model_copy(update={"arguments": run.network.arguments | {"depth": 2}})
    other = run.model_copy(update={"network": deeper})
    rows, _ = measured(tmp_path / "whole", tmp_path / "labels", evaluation, other)
    with monkeypatch.context() as killing:
        die_after_each_step(killing)
        for _ in range(20):  # of about 30
            with pytest.raises(Killed):
                measured(tmp_path / "killed", tmp_path / "labels", evaluation, run)
    again, _ = measured(tmp_path / "killed", tmp_path / "labels", evaluation, other)
    pd.testing.assert_frame_equal(again, rows)


def test_two_processes_do_not_measure_the_same(tmp_path: Path) -> None:
    evaluation, run = case(tmp_path, "tsp")
    with (
        exclusive(tmp_path / "out" / ".all" / ".lock0", "a test"),
        pytest.raises(NeurouteError, match="evaluation of scaling/x/all is already running there in another process"),
    ):
        measured(tmp_path, tmp_path / "labels", evaluation, run)


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A work folder with the records of one evaluation, `icam/x/all`."""
    folder = tmp_path_factory.mktemp("records")
    evaluation, run = case(folder, "tsp")
    evaluated(folder / "made", evaluation, run, label_dirs=[folder / "labels"])
    shutil.copytree(folder / "made" / "out", folder / "work" / "evaluations" / evaluation.run)
    return folder / "work"


def cut(table: Path) -> None:
    table.write_text("".join(table.read_text().splitlines(keepends=True)[:-4]))


def edit_a_gap(table: Path) -> None:
    table.write_text(table.read_text().replace(",gap_pct,", ",gap_pct,1", 1))


def edit_lengths(table: Path) -> None:
    with np.load(table.with_suffix(".npz")) as file:
        lengths = {key: 0.9 * each for key, each in file.items()}
    np.savez(table.with_suffix(".npz"), **lengths)


def state_nothing(table: Path) -> None:
    table.with_suffix(".json").write_text("{}")


def train_otherwise(table: Path) -> None:
    summary = table.parents[3] / "runs" / table.parent.relative_to(table.parents[2]) / "run.json"
    write_json(summary, {"weights_sha256": "of others"})


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (cut, r"all\.csv: was cut or edited since it was measured \(\d+ rows of \d+\)"),
        (edit_a_gap, r"all\.csv: was cut or edited"),
        (edit_lengths, r"all\.npz: was cut or edited since it was measured"),
        (state_nothing, r"all\.json: does not state csv_sha256, rows"),
        (train_otherwise, r"all\.csv: was measured with other weights than \S+ now has"),
    ],
)
def test_records_that_were_cut_or_edited_are_named_where_they_are_read(
    records: Path, tmp_path: Path, damage: Callable[[Path], None], said: str
) -> None:
    work = shutil.copytree(records, tmp_path / "work")
    table = next(work.glob("evaluations/**/all.csv"))
    evaluation = str(table.relative_to(work / "evaluations").with_suffix(""))
    artifact = Artifact(paper="pens", name="table1", title="t", function="m:f", evaluations=(evaluation,))

    def study() -> Study:
        return Study(artifact, parse_config({}), load_scale("smoke"), {}, work)

    assert len(study().records)
    damage(table)
    with pytest.raises(NeurouteError, match=f"{said}.*evaluate it again: `neuroute evaluate {evaluation}`"):
        study().arrays(f"{evaluation.rpartition('/')[0]}/tests")
    if damage is edit_lengths:
        for read in (lambda: read_lengths(table.parent), lambda: read_best(table.with_suffix(".npz"), "pens/pens_a")):
            with pytest.raises(NeurouteError, match=said):
                read()
