"""One thing changed of one stage of a training: that run has it, and the others stay as they are."""

import pytest

from neuroute.core.errors import NeurouteError
from neuroute.plan.build import Plan, build_plan
from neuroute.plan.config import parse_config
from neuroute.plan.objects import Reinforced

MAIN = "icam/icam_tsp"


def plan_with(run: str, **training: object) -> Plan:
    paper = run.partition("/")[0]
    return build_plan(parse_config({"scale": "paper", "papers": [paper], "runs": {run: {"training": training}}}))


@pytest.fixture(scope="module")
def untouched() -> Plan:
    return build_plan(parse_config({"scale": "paper", "papers": ["icam"]}))


def reinforced(plan: Plan, run: str) -> Reinforced:
    training = plan.runs[run].training
    assert isinstance(training, Reinforced)
    return training


def test_a_rate_of_a_stage(untouched: Plan) -> None:
    plan = plan_with(MAIN, stages={"stage2": {"learning_rate": 3e-4, "epochs": 7}}, clip=2)
    before, after = reinforced(untouched, MAIN), reinforced(plan, MAIN)
    assert [s.learning_rate for s in after.stages] == [1e-4, 3e-4, 1e-5]
    assert after.stages[1].epochs == 7
    assert after.clip == 2
    assert (after.stages[0], after.stages[2]) == (before.stages[0], before.stages[2])
    # Forks of the third stage go on where the second now ends; nothing else changes.
    differ = {run for run in plan.runs if plan.runs[run] != untouched.runs[run]}
    assert differ == {MAIN, *(run for run in plan.runs if (plan.runs[run].start or "").startswith(MAIN))}


def test_an_elite_of_a_fork(untouched: Plan) -> None:
    fork = next(run for run, declared in untouched.runs.items() if (declared.start or "").startswith(MAIN))
    plan = plan_with(fork, stages={"stage3": {"elite": {"k": 7, "beta": 0.3}}})
    assert reinforced(plan, fork).stages[0].elite is not None
    assert reinforced(plan, fork).stages[0].elite.k == 7  # type: ignore[union-attr]
    assert [run for run in plan.runs if plan.runs[run] != untouched.runs[run]] == [fork]


@pytest.mark.parametrize(
    ("run", "training", "message"),
    [
        (MAIN, {"stages": {"stage4": {"epochs": 1}}}, r"stages.stage4: no such stage; there is stage1, stage2, stage3"),
        (MAIN, {"stages": {"stage1": {"epochs": 0}}}, "stage1.epochs"),
        (MAIN, {"stages": {"stage1": {"elite": {"k": 101}}}}, "the best 101 of 100 solutions"),
        (MAIN, {"learning_rate": 1e-3}, "learning_rate"),
        ("sit/tsp_1k", {"stages": {"main": {"epochs": 1}}}, "there is none in this training"),
    ],
)
def test_what_cannot_be_is_one_clear_line(run: str, training: dict[str, object], message: str) -> None:
    with pytest.raises(NeurouteError, match=message) as error:
        plan_with(run, **training)
    assert str(error.value).startswith("config.yaml: runs.")
    assert "\n" not in str(error.value)
