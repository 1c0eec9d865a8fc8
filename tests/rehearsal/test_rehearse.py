"""Rehearsals: what fails is a line each, the rest goes on, and what was measured is reckoned with."""

import errno
import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from neuroute.accounting.flops import RunFlops
from neuroute.core import files
from neuroute.core.errors import NeurouteError
from neuroute.datasets.benchmarks import study_instances
from neuroute.plan.build import Plan, build_plan
from neuroute.plan.config import parse_config
from neuroute.plan.estimates import Estimates, typical_ratio
from neuroute.plan.overview import describe
from neuroute.plan.rates import rehearsal_of
from neuroute.rehearsal import rehearse as rehearsal
from neuroute.rehearsal.findings import Findings
from neuroute.rehearsal.rehearse import Trial, rehearse
from neuroute.rehearsal.short import BATCHES, PiecePace, TrainingPace, pieces, short_run, training_key
from neuroute.specs.objects import BenchmarkEvaluation, Decoding, Network, Run

BQ = "scaling/bq"
PACE = TrainingPace(of="b", batches_s=(1.0,), validation_s=1.0, validated=1, rest_s=0.0, memory_mb=1.0)


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return build_plan(parse_config({"papers": ["pens"], "device": "cpu", "work_dir": str(tmp_path / "work")}))


def only(plan: Plan, runs: dict[str, Run], evaluations: tuple[str, ...] = (), solvers: tuple[str, ...] = ()) -> Plan:
    """These runs, evaluations, and one label job of each solver."""
    jobs = {labels.solver: labels for labels in plan.label_jobs.values()}
    return replace(
        plan,
        runs=runs,
        evaluations={e: plan.evaluations[e] for e in evaluations},
        label_jobs={jobs[solver].id: jobs[solver] for solver in solvers},
        artifacts={},
    )


def with_network(run: Run, name: str, **changes: Any) -> Run:
    network = Network(kind=f"stand_in_networks:{name}", arguments=run.network.arguments)
    return run.model_copy(update={"name": name, "network": network, **changes})


def try_all(plan: Plan, minutes: float = 5) -> tuple[Findings, list[str]]:
    said: list[str] = []
    return rehearse(plan, minutes, said.append), said


# -- what fails -------------------------------------------------------------------------------------------------------


def test_each_failure_is_a_line_and_the_rest_goes_on(plan: Plan, hide_solvers: Callable[..., None]) -> None:
    bq = plan.runs[BQ]
    mixing, greedy = with_network(bq, "MixesDevices"), with_network(bq, "TakesMuchMemory")
    hide_solvers("concorde")
    every = only(plan, {each.id: each for each in (bq, mixing, greedy)}, (), ("concorde", "lkh"))
    findings, said = try_all(every)
    failures = "\n".join(findings.failures)
    (mixed,) = (line for line in findings.failures if line.startswith("train scaling/MixesDevices: "))
    assert "RuntimeError: " in mixed
    assert "stand_in_networks.py" in mixed
    assert failures.count("CUDA out of memory") == 1
    assert "train scaling/TakesMuchMemory: a batch of 16 fits" in failures
    assert "solve concorde (tsp, " in failures
    assert len(findings.failures) == 4
    assert all("\n" not in line for line in findings.failures)
    assert set(findings.failures) <= set(said)
    assert {pace.of for pace in findings.trainings.values()} == {BQ, greedy.id}
    assert findings.solvers.keys() == {"lkh"}


def test_a_full_disk_is_a_line(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_file: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    findings, said = try_all(only(plan, {BQ: plan.runs[BQ]}))
    assert len(findings.failures) == 2
    assert all("disk full" in line for line in findings.failures)
    assert findings.failures[1].startswith("keep what was measured: ")
    assert set(findings.failures) <= set(said)


def test_a_disk_too_small_for_all_of_it_is_a_line(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal.shutil, "disk_usage", lambda _folder: SimpleNamespace(free=0))
    monkeypatch.setattr(rehearsal, "_trials", lambda *_: iter(()))
    findings, _ = try_all(plan)
    assert [line for line in findings.failures if line.startswith("disk: ") and "0.0 GB are free" in line]


def test_a_gpu_that_is_not_there_is_one_line(plan: Plan) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is one")
    there_is_none = replace(plan, config=plan.config.model_copy(update={"device": "cuda"}))
    with pytest.raises(NeurouteError, match="^device: the GPU cannot be used "):
        try_all(there_is_none)


def test_what_ends_a_trial_ends_no_other(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(_stage: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    trials = [Trial("train", "a", "1", die, 2.0), Trial("train", "b", "2", lambda _stage: PACE, 1.0)]
    monkeypatch.setattr(rehearsal, "_trials", lambda *_: iter(trials))
    findings, _ = try_all(plan)
    assert findings.trainings == {"2": PACE}
    assert len(findings.failures) == 1
    assert "train a: was killed (signal 9)" in findings.failures[0]


def test_it_ends_when_time_is_up(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    trials = [Trial("train", str(i), str(i), lambda _stage: time.sleep(600), 1.0) for i in range(5)]
    monkeypatch.setattr(rehearsal, "_trials", lambda *_: iter(trials))
    findings, said = try_all(plan, minutes=0.02)
    assert (findings.all, findings.left, findings.failures) == (5, 5, [])
    assert any("5 of 5 trials were left" in line for line in said)
    assert not (plan.work / "rehearsal").exists()


def test_a_trial_that_takes_long_is_ended(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    trials = [Trial("train", "a", "1", lambda _stage: time.sleep(600), 9.0) for _ in range(9)]
    trials.append(Trial("train", "b", "2", lambda _stage: PACE, 1.0))
    monkeypatch.setattr(rehearsal, "LONGEST_TRIAL", 1e-4)
    monkeypatch.setattr(rehearsal, "_trials", lambda *_: iter(trials[:9]))
    findings, said = try_all(plan, minutes=60)
    assert (findings.all, findings.left, findings.too_long) == (9, 9, ["train a"] * 9)
    assert any("9 of them were ended" in line for line in said)
    monkeypatch.setattr(rehearsal, "LONGEST_TRIAL", 0.15)
    monkeypatch.setattr(rehearsal, "_trials", lambda *_: iter(trials[9:]))
    assert try_all(plan)[0].trainings == {"2": PACE}


def test_long_trials_and_quick_ones_go_by_turns() -> None:
    trials = [Trial("train", str(s), str(s), print, float(s), turn=s > 7) for s in range(10)]
    assert [trial.name for trial in rehearsal._in_order(trials)] == list("7012364598")


def test_solvers_do_not_wait_for_a_gpu(plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    solved = tmp_path / "solved"

    def until_solved(_stage: object) -> tuple[int, float]:
        while not solved.exists():
            time.sleep(0.01)
        return 20, 2.0

    def solve(_stage: object) -> tuple[int, float]:
        solved.touch()
        return 20, 1.0

    trials, findings = [Trial("train", "a", "a", until_solved, 9.0), Trial("solve", "b", "b", solve, 1.0)], Findings()
    rehearsal._run(plan, "cuda", trials, time.monotonic() + 300.0, findings)
    assert (findings.solvers, findings.left) == ({"a": {20: 2.0}, "b": {20: 1.0}}, 0)


# -- what follows -----------------------------------------------------------------------------------------------------


def pace_of(_stage: object, run: Run, batches: int) -> TrainingPace:
    assert batches >= 2
    stages = len(getattr(run.training, "ends", [0]))
    return TrainingPace(of=run.id, batches_s=(2.0,) * stages, validation_s=3.0, validated=1, rest_s=5.0, memory_mb=7000)


def piece_of(_stage: object, run: Run, piece: Any) -> PiecePace:
    return PiecePace(of=piece.part.id, rest_s=1.0, first_s=2.0, each_s=0.5, memory_mb=10.0)


@pytest.mark.slow
def test_plan_and_requests_go_by_what_was_rehearsed(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "for yours: neuroute rehearse" in describe(plan, None)
    by_flops = Estimates(plan, 4)
    before = {run: by_flops.runtime("train", run) for run in plan.runs}
    monkeypatch.setattr(rehearsal, "try_training", pace_of)
    monkeypatch.setattr(rehearsal, "try_piece", piece_of)
    monkeypatch.setattr(rehearsal, "try_solver", lambda _stage, labels: (labels.dataset.n, 9.0))
    findings, said = try_all(plan)
    assert (findings.left, findings.failures) == (0, [])
    assert "as rehearsed on " in describe(plan, None)
    estimates = Estimates(plan)
    run = plan.runs[BQ]
    validations = (run.training.validations + 1) * 3.0 * run.validation.dataset.count
    assert estimates.train(BQ).seconds == pytest.approx(estimates.start_s + 5 + 2 * run.training.batches + validations)
    assert estimates.train(BQ).memory_mb >= 7000
    evaluation = next(iter(plan.evaluations))
    parts = list(pieces(plan.evaluations[evaluation], "cpu"))
    expected = sum(1 + p.times * (2 + max(0, p.iterations - 1) * 0.5) for p in parts)
    assert estimates.evaluate(evaluation).seconds == pytest.approx(estimates.start_s + expected)
    labels = next(labels for labels in plan.label_jobs.values() if labels.solver == "concorde")
    assert estimates.label_seconds(labels) == pytest.approx(9 * labels.dataset.count, rel=1e-3)
    requests = Estimates(plan, 4)
    assert all(requests.runtime("train", run) > before[run] for run in plan.runs)
    assert requests.runtime("train", BQ, 2) > requests.runtime("train", BQ)
    assert any(line.startswith("all ") for line in said)


def test_a_benchmark_takes_the_time_of_all_its_instances(plan: Plan) -> None:
    """Those, too, that do not come with the package; each way to decode for itself."""
    ways = (Decoding(), Decoding(method="rrc", iterations=50))
    evaluation = BenchmarkEvaluation(run=BQ, max_nodes=5000, decodings=ways)
    parts, price = list(pieces(evaluation, "cpu")), RunFlops(plan.runs[BQ])
    (tried,) = {name for p in parts for name in p.part.names}  # type: ignore[attr-defined]
    nodes = {k.name: k.nodes for k in study_instances(5000)}
    assert [p.times for p in parts] == [sum(nodes.values()) / nodes[tried]] * 2
    assert sum(price.evaluate(p.whole) for p in parts) == price.evaluate(evaluation) > 0


def test_what_was_not_rehearsed_is_off_by_as_much(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {run: Estimates(plan).train(run).seconds for run in plan.runs}
    rehearsed = [run for run in plan.runs if run.startswith("pens/")]
    monkeypatch.setattr(rehearsal, "try_training", partial(_as_estimated, plan, 3.0))
    try_all(only(plan, {run: plan.runs[run] for run in rehearsed}))
    after, start_s = {run: Estimates(plan).train(run).seconds for run in plan.runs}, Estimates(plan).start_s
    for run in plan.runs:
        assert after[run] - start_s == pytest.approx(3 * (before[run] - start_s), rel=0.01)


def test_what_is_next_to_nothing_by_its_flops_says_nothing_of_the_rest() -> None:
    assert typical_ratio([], least_s=0.1) == 1.0
    assert typical_ratio([(2.0, 1e-5)], least_s=0.1) == 1.0
    assert typical_ratio([(2.0, 1e-5), (3.0, 1.0), (80.0, 40.0), (9.0, 3.0)], least_s=0.1) == 2.0


def _as_estimated(plan: Plan, times: float, _stage: object, run: Run, batches: int) -> TrainingPace:
    estimates = Estimates(plan)
    each = times * (estimates.train(run.id).seconds - estimates.start_s) / run.training.batches
    return TrainingPace(of=run.id, batches_s=(each,), validation_s=0, validated=1, rest_s=0, memory_mb=1)


def test_trainings_that_differ_by_their_length_alone_are_one(plan: Plan) -> None:
    run = plan.runs[BQ]

    def key(**changes: Any) -> str:
        training = run.training.model_copy(update=changes)
        return training_key(run.model_copy(update={"training": training}), "cpu")

    assert key(epochs=run.training.epochs * 2, validations=3) == key()
    assert key(batch_size=8) != key()


@pytest.mark.parametrize("name", ["scaling/sigd", "sit/tsp_1k", "icam/icam_tsp", "rivals/elg_tsp", "rivals/glop", BQ])
def test_short_runs_have_few_batches_of_their_true_size(name: str) -> None:
    run = build_plan(parse_config({"scale": "paper", "papers": ["scaling", "sit", "icam"]})).runs[name]
    assert short_run(run, "cuda", 2).training.batches >= 2
    short = short_run(run, "cuda")
    stages = len(getattr(short.training, "ends", [0]))
    assert 2 <= short.training.batches <= 2 * stages * BATCHES
    if "batch_size" in type(run.training).model_fields:
        assert short.training.batch_size == run.training.batch_size  # type: ignore[union-attr]
    assert sum(labels.dataset.count for labels in short.labels) < 100_000
    assert short.validation.dataset.n == run.validation.dataset.n


# -- for real ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_training_an_evaluation_and_a_solver_are_measured(plan: Plan) -> None:
    evaluation = next(e for e in plan.evaluations if e.startswith(f"{BQ}/"))
    findings, _ = try_all(only(plan, {BQ: plan.runs[BQ]}, (evaluation,), ("lkh",)))
    assert (findings.left, findings.failures) == (0, [])
    (training,) = findings.trainings.values()
    assert min(training.batches_s) > 0
    assert training.validation_s > 0
    assert training.memory_mb > 0
    assert all(pace.first_s > 0 for pace in findings.pieces.values())
    kept = rehearsal_of(plan.config)
    assert {job.of for job in kept.devices["cpu"].jobs.values()} == {BQ, evaluation}
    assert kept.solvers == findings.solvers
