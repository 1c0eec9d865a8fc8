"""Our own studies are papers in a folder as a user has one."""

from typing import Any

import pytest

from neuroute.evaluation.flops import counts
from neuroute.pipeline.plan.build import Plan, build_plan
from neuroute.pipeline.plan.config import load_config
from plans import ROOT, reinforced


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> Plan:
    monkeypatch.chdir(ROOT)
    return build_plan(load_config(ROOT / "extras" / "studies" / "config.yaml"))


def test_one_size_is_the_first_stages_and_nothing_else_changes(plan: Plan) -> None:
    assert "one_size/table1" in plan.artifacts
    staged, alike, repeated = (plan.runs[run] for run in ("icam/icam_tsp", "one_size/icam_tsp", "one_size/icam_tsp-s1"))
    first = reinforced(staged).stages[0]
    assert repeated.training == alike.training
    assert (alike.seed, repeated.seed, alike.network) == (0, 1, staged.network)
    for before, after in zip(reinforced(staged).stages, reinforced(alike).stages, strict=True):
        own = {"sizes": first.sizes, "batch_size": first.batch_size, "batch_nodes": first.batch_nodes}
        assert after == before.model_copy(update=own | {"epochs": after.epochs})


def test_networks_of_equal_budgets_see_the_same_instances_or_more_of_them(plan: Plan) -> None:
    """INViT in images, from one start each; whom its time gives more batches has all others as well.

    They have about as many parameters.
    """
    runs = {name.partition("/")[2]: run for name, run in plan.runs.items() if run.paper == "equal_budgets"}
    assert len(runs) == 14
    s = next(block for block in plan.scale.blocks.values() if type(block).__name__ == "EqualBudgetsScale")
    for name, run in runs.items():
        problem, network = run.validation.dataset.problem, run.role["method"]
        (stage,), (common,) = reinforced(run).stages, s.training[problem].stages  # type: ignore[attr-defined]
        changed: dict[str, Any] = {}
        if network == "INViT":
            changed = {"starts": 1, "images": 2, "learning_rate": 3e-4}
        elif name.startswith("longer_"):
            changed = {"batches_per_epoch": s.same_time[problem][network]}  # type: ignore[attr-defined]
        assert stage == common.model_copy(update=changed)
        assert reinforced(run).shares_baseline == (network != "INViT")
        parameters = [counts(each.network).parameters for each in (run, runs[f"pomo_{problem}"])]
        assert 0.8 < parameters[0] / parameters[1] < 1.2, name
