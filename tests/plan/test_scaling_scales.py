"""Paper `scaling` at its scales: models that a config adds, rates, and trainings whose numbers are kept."""

import json
from typing import Any

import pytest
from refusals import one_line

from neuroute.core.errors import NeurouteError
from neuroute.pipeline.plan.config import load_scale
from neuroute.pipeline.plan.overview import costs, describe
from plans import ROOT, plan_of


def test_models_join_the_grid_by_the_config_alone() -> None:
    """Trained, and measured as its other models are; labels and other trainings stay as they are."""
    more = {"depths": {60: 6}, "more_models": {"18x192": {"depth": 3, "width": 20, "heads": 2}}}
    plan, before = plan_of("smoke", ("scaling",), scale_changes={"scaling": more}), plan_of("smoke", ("scaling",))
    joined = [f"scaling/base_{shape}" for shape in ("18x192", "60x128", "60x256", "60x512")]
    assert {*plan.runs} - {*before.runs} == {*joined}
    assert all(plan.runs[run] == of_before for run, of_before in before.runs.items())
    assert plan.label_jobs == before.label_jobs
    assert [plan.runs[run].network.arguments["depth"] for run in joined] == [3, 6, 6, 6]
    for name in ("figure1", "figure2", "figure5", "table12", "table13", "table14", "table18"):
        shown = {plan.evaluations[e].run for e in plan.artifacts[f"scaling/{name}"].evaluations}
        assert {*joined} <= shown
    assert "scaling/base_18x192" in describe(plan, "figure1")


def test_who_asks_for_one_of_another_scale_hears_which_has_it() -> None:
    plan = plan_of("smoke", ("scaling",))
    with pytest.raises(NeurouteError, match=r"scale smoke does not train its models; scales that do: gpu, laptop$"):
        costs(plan, "table22")
    with pytest.raises(NeurouteError, match="did you mean figure9"):
        costs(plan, "figure99")


@pytest.mark.parametrize(
    ("change", "says"),
    {
        "a corner is missing": ({"tried": {"6x128": None}}, "6x128"),
        "a rate was not tried": ({"best": {"6x128": 0.5}}, "best: 6x128 has 0.5, which is not tried there"),
        "no corner": ({"best": {"12x128": 1e-3}, "tried": {"12x128": [1e-3, 3e-3]}}, "12x128 is no corner"),
    }.values(),
)
def test_a_wrong_table_of_rates_is_named_in_one_line(change: dict[str, Any], says: str) -> None:
    with one_line(says):
        load_scale("laptop", ("scaling",), {"scaling": {"rates": change}})


def test_kept_trainings_are_those_that_laptop_plans() -> None:
    """So that `snakemake --config scale=laptop` trains again what the kept tables show."""
    plan = plan_of("laptop", ("scaling",))
    kept = sorted((ROOT / "docs/measured/runs/laptop/scaling").glob("*/run.json"))
    assert len(kept) > 40
    for file in kept:
        spec, run = json.loads(file.read_text())["spec"], plan.runs[f"scaling/{file.parent.name}"]
        planned = run.model_dump(mode="json")
        assert (spec["network"], spec["training"]) == (planned["network"], planned["training"]), run.id
