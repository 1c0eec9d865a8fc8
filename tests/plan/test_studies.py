"""Our own studies are papers in a folder as a user has one."""

import pytest

from neuroute.pipeline.plan.build import build_plan
from neuroute.pipeline.plan.config import load_config
from plans import ROOT, reinforced


def test_one_size_is_the_first_stages_and_nothing_else_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    plan = build_plan(load_config(ROOT / "extras" / "studies" / "config.yaml"))
    assert "one_size/table1" in plan.artifacts
    staged, alike, repeated = (plan.runs[run] for run in ("icam/icam_tsp", "one_size/icam_tsp", "one_size/icam_tsp-s1"))
    first = reinforced(staged).stages[0]
    assert repeated.training == alike.training
    assert (alike.seed, repeated.seed, alike.network) == (0, 1, staged.network)
    for before, after in zip(reinforced(staged).stages, reinforced(alike).stages, strict=True):
        own = {"sizes": first.sizes, "batch_size": first.batch_size, "batch_nodes": first.batch_nodes}
        assert after == before.model_copy(update=own | {"epochs": after.epochs})
