"""Weights in place of a training: what is skipped, lost and refused, and what the model's text follows from."""

from pathlib import Path
from typing import Any

import pytest
from refusals import one_line

from neuroute.core.errors import NeurouteError
from neuroute.pipeline.plan.config import parse_config
from neuroute.pipeline.plan.overview import costs
from neuroute.pipeline.plan.plan import Plan
from neuroute.specs.objects import GivenRun, Test
from plans import plan_of

MAIN = "icam/icam_tsp"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Whose content no plan reads but for its digest."""
    path = tmp_path / "icam.pt"
    path.write_bytes(b"weights")
    return path


def plan_with(file: Path, *runs: str, scale: str = "paper", **change: Any) -> Plan:
    papers = tuple(dict.fromkeys(run.partition("/")[0] for run in runs))
    return plan_of(scale, papers, runs={run: {"weights": str(file)} | change for run in runs})


def test_nothing_is_trained_or_labelled_for_a_given_run(file: Path) -> None:
    plan = plan_with(file, "scaling/lehd_6x128")
    before = plan_of("paper", ("scaling",))
    assert isinstance(plan.runs["scaling/lehd_6x128"], GivenRun)
    assert before.label_jobs_of_run("scaling/lehd_6x128")
    assert plan.label_jobs_of_run("scaling/lehd_6x128") == []
    assert [(c.stage, c.flops) for c in costs(plan, "scaling/lehd_6x128")] == [("weights", 0.0)]
    assert {r for r, run in plan.runs.items() if run != before.runs[r]} == {"scaling/lehd_6x128"}
    assert plan.evaluations == before.evaluations


def test_ends_of_earlier_stages_are_lost(file: Path) -> None:
    plan = plan_with(file, MAIN)
    assert plan.unreachable
    assert all(run.startswith("icam/k") for run in plan.unreachable)
    assert not plan.unreachable & set(plan.runs)
    assert not [e for e in plan.evaluations.values() if e.run in plan.unreachable]
    assert not [e for e in plan.evaluations.values() if e.run == MAIN and any(test.stage for test in e.of_kind(Test))]
    assert plan.artifacts["icam/table8"].evaluations  # of the model itself
    needed = {need.run for needs in plan.needs.values() for need in needs if hasattr(need, "run")}
    assert not plan.unreachable & needed
    assert plan.unreachable - plan_with(file, MAIN, "icam/k20_b0.5").unreachable == {
        "icam/k20_b0.5"
    }  # which has weights of its own


def test_what_starts_from_the_end_of_a_given_run_goes_on_from_it(file: Path) -> None:
    plan = plan_with(file, "mvmoe/moe4e_50", scale="smoke")
    (few,) = [run for run, r in plan.runs.items() if r.start == "mvmoe/moe4e_50"][:1]
    assert plan.files_to_start(few) == [plan.checkpoint("mvmoe/moe4e_50"), plan.stages("mvmoe/moe4e_50")]


def test_each_seed_has_weights_of_its_own(file: Path) -> None:
    plan = plan_with(file, "scaling/base_6x128-s1", scale="laptop")
    assert {run for run, r in plan.runs.items() if isinstance(r, GivenRun)} == {"scaling/base_6x128-s1"}
    plan = plan_with(file, "scaling/base_6x128", "scaling/base_6x128-s1", scale="laptop")  # of three at this scale
    assert plan.trainings("scaling/base_6x128") == ["scaling/base_6x128", "scaling/base_6x128-s1"]


def test_the_text_of_a_given_run_follows_from_its_network_and_the_files_content(file: Path, tmp_path: Path) -> None:
    first = plan_with(file, MAIN).runs[MAIN].canonical()
    moved = tmp_path / "elsewhere.pt"
    moved.write_bytes(file.read_bytes())
    assert plan_with(moved, MAIN).runs[MAIN].canonical() == first
    other = tmp_path / "other.pt"
    other.write_bytes(b"others")
    assert plan_with(other, MAIN).runs[MAIN].canonical() != first
    assert plan_with(file, MAIN, arguments={"depth": 3}).runs[MAIN].canonical() != first


def test_what_does_not_go_together_is_refused(file: Path, tmp_path: Path) -> None:
    for change, words in (({"seed": 1}, "leave out seed"), ({"training": {"clip": 1}}, "leave out training")):
        with pytest.raises(NeurouteError, match=words):
            parse_config({"runs": {MAIN: {"weights": str(file)} | change}})
    with one_line(rf"runs\.{MAIN}\.weights: no file .*absent\.pt"):
        plan_with(tmp_path / "absent.pt", MAIN)
