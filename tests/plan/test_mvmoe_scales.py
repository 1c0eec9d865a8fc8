"""What paper `mvmoe` declares: its trainings as printed, and its tests as its tables ask."""

import pytest

from neuroute.evaluation.counts import counts
from neuroute.pipeline.papers.mvmoe.paper import ABLATIONS, TRAINED, MvmoeScale
from neuroute.pipeline.plan.plan import Plan
from neuroute.specs.objects import Test
from plans import SCALES, plan_of, read_published, reinforced


@pytest.fixture(scope="module")
def paper() -> Plan:
    return plan_of("paper", ("mvmoe",))


# -- trainings --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_networks_have_the_published_parameters(paper: Plan) -> None:
    """Those of the published code, built so.  Files of the other runs fit them (test_given_weights)."""
    found = {
        run.name: counts(run.network).parameters
        for run in paper.runs.values()
        if run.network.kind.startswith("neuroute.networks.mvmoe")
    }
    wanted = {
        "pomo_ovrp_50": 1_254_144,
        "pomo_vrptw_100": 1_254_400,
        "h_raw": 1_258_168,
        "h_dec": 1_305_216,
        "h_enc_all": 3_631_616,
        "h_enc_even": 2_443_136,
        "h_enc_last2": 2_046_976,
        "h_node_ec": 3_682_176,
    }
    assert {name: found[name] for name in wanted} == wanted


def test_rows_of_table_5_say_what_is_trained(paper: Plan) -> None:
    assert list(ABLATIONS["table5"]) == list(dict.fromkeys(row["method_params"] for row in read_published("mvmoe", 5)))
    for row, name in ABLATIONS["table5"].items():
        said, run = dict(part.split("=") for part in row.split(";")), paper.runs[f"mvmoe/{name}"]
        arguments = {"norm": "instance"} | run.network.arguments
        assert reinforced(run).balance == float(said["alpha"])
        assert (arguments["norm"], arguments["top"]) == (said["norm"], int(said["K"]))
        assert reinforced(run).epochs == int(said["epochs"])


# -- measurements -----------------------------------------------------------------------------------------------------


def test_one_job_measures_a_model_on_two_benchmarks() -> None:
    """At smoke a model's evaluations are one: its job waits for both, and its digest covers both."""
    plan = plan_of("smoke", ("mvmoe",))
    assert sorted(plan.benchmarks_of_evaluation("mvmoe/moe4e_50/all")) == ["cvrplib", "solomon"]
    assert plan.benchmarks_of_evaluation("mvmoe/pomo_cvrp_50/all") == ["cvrplib"]
    assert plan.benchmarks_of_evaluation("mvmoe/h_default/all") == []


def test_models_of_50_stand_in_for_those_of_100() -> None:
    plan = plan_of("smoke", ("mvmoe",))
    sizes = plan.scale[MvmoeScale].sizes
    assert not [run for run in plan.runs if run.endswith("_100")]
    tests = plan.evaluations["mvmoe/pomo_vrpb_50/all"].of_kind(Test)
    seen = {(t.labels.dataset.variant, t.labels.dataset.n) for t in tests}
    assert seen == {("VRPB", sizes[50]), *((variant, sizes[100]) for variant in TRAINED)}


@pytest.mark.parametrize("scale", SCALES)
def test_nothing_is_trained_or_measured_in_vain(scale: str) -> None:
    plan = plan_of(scale, ("mvmoe",))
    read = {e for a in plan.artifacts.values() for e in a.evaluations}
    assert read == set(plan.evaluations)
    shown = {*(plan.evaluations[e].run for e in read), *(r for a in plan.artifacts.values() for r in a.runs)}
    assert shown == set(plan.runs)
