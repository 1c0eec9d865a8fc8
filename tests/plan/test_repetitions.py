"""Further trainings of a run: each is another seed of the same, and is measured as the run is."""

from typing import Any

import pytest

from neuroute.core.errors import NeurouteError
from neuroute.pipeline.plan.build import Plan, build_plan
from neuroute.pipeline.plan.config import parse_config
from plans import plan_of, smoke, write_scale

RUN = "pens/pens_a"  # its evaluations find its best scaling factor first
COPIES = [f"{RUN}-s1", f"{RUN}-s2"]
PAPERS = ("scaling", "pens", "mvmoe")


def plan_with(scale: str = "laptop", run: str = RUN, **change: Any) -> Plan:
    return plan_of(scale, PAPERS, runs={run: change})


@pytest.mark.parametrize("scale", ["smoke", "gpu"])  # one evaluation of all, several of each
def test_each_is_another_seed_of_the_changed_run_and_is_measured_like_it(scale: str) -> None:
    plan, before = plan_with(scale, seeds=3, training={"learning_rate": 2e-4}), plan_of(scale, PAPERS)
    assert set(plan.runs) - set(before.runs) == {*COPIES}
    assert plan.trainings(RUN) == [RUN, *COPIES]
    for seed, run in enumerate(COPIES, 1):
        assert plan.runs[run] == plan.runs[RUN].model_copy(update={"name": f"pens_a-s{seed}", "seed": seed})
        assert plan.runs[run].training.learning_rate == 2e-4
    further = [e for e, evaluation in plan.evaluations.items() if evaluation.run in COPIES]
    for e in further:
        run, _, group = e.rpartition("/")
        original = plan.evaluations[f"{RUN}/{group}"]
        assert plan.evaluations[e].labels == original.labels
        assert plan.evaluations[e].decodings_used() == original.decodings_used()
        assert plan.checkpoints_of_evaluation(e) == [plan.checkpoint(run)]
        assert plan.label_jobs_of_evaluation(e) == plan.label_jobs_of_evaluation(original.id)
    for name, artifact in plan.artifacts.items():  # what shows the run shows them, too, and nothing else changes
        more = {e for e in artifact.evaluations if e in further}
        of_run = {e for e in artifact.evaluations if e.rpartition("/")[0] == RUN}
        assert {e.replace(RUN, copy) for e in of_run for copy in COPIES} >= more
        assert bool(more) == (artifact != before.artifacts[name])
    group = "all" if scale == "smoke" else "uniform"
    assert {f"{copy}/{group}" for copy in COPIES} <= {*plan.artifacts["pens/table1"].evaluations}


def test_what_starts_from_a_run_starts_from_its_training_of_the_same_seed_or_the_first() -> None:
    few = "mvmoe/few_mtl_vrpbltw"
    plan = plan_of("smoke", PAPERS, runs={"mvmoe/mtl_50": {"seeds": 2}, few: {"seeds": 3}})
    starts = [plan.runs[run].start for run in plan.trainings(few)]
    assert starts == ["mvmoe/mtl_50", "mvmoe/mtl_50-s1", "mvmoe/mtl_50"]
    assert plan.runs["mvmoe/few_mtl_ovrpbltw"].start == "mvmoe/mtl_50"


def test_one_of_several_may_have_weights_and_nothing_else(tmp_path: Any) -> None:
    weights = tmp_path / "weights.pt"
    weights.write_bytes(b"")
    plan = plan_of("smoke", PAPERS, runs={RUN: {"seeds": 2}, COPIES[0]: {"weights": str(weights)}})
    assert plan.label_jobs_of_run(COPIES[0]) == []
    for change, message in (
        ({RUN: {"seeds": 2}, COPIES[0]: {"seed": 4}}, "hold for all seeds"),
        ({RUN: {"seeds": 2}, COPIES[1]: {"seed": 4}}, "no such run"),
        ({RUN: {"seeds": 2, "weights": str(weights)}}, "leave out seeds"),
        ({RUN: {"seeds": 0}}, "seeds"),
        ({RUN: {"seed": 2**20 - 1, "seeds": 2}}, "beyond the last"),
        ({RUN: {"seeds": 2}, COPIES[0]: {"seeds": 2}}, "hold for all seeds"),
    ):
        with pytest.raises(NeurouteError, match=message):
            plan_of("laptop", PAPERS, runs=change)


def test_config_and_scale_ask_for_seeds_alike(tmp_path: Any) -> None:
    """And what config.yaml says goes first."""
    by_config = plan_of("smoke", PAPERS, runs={RUN: {"seeds": 3}, "mvmoe/mtl_50": {"seeds": 2}})
    values = smoke()
    by_scale = plan_of(write_scale(tmp_path, values | {"seeds": {"pens/pens_[a]": 3, "mvmoe/mtl_50": 2}}), PAPERS)
    assert by_scale.artifacts == by_config.artifacts
    assert by_scale.evaluations == by_config.evaluations
    assert by_scale.runs == by_config.runs
    both = plan_of(str(tmp_path / "own.yaml"), PAPERS, runs={RUN: {"seeds": 1}, "mvmoe/mtl_50": {"seed": 7}})
    assert both.trainings(RUN) == [RUN]
    assert [both.runs[run].seed for run in both.trainings("mvmoe/mtl_50")] == [7, 8]
    with pytest.raises(NeurouteError, match=r"seeds.pens/pens_x: no such run"):
        build_plan(parse_config({"scale": write_scale(tmp_path, values | {"seeds": {"pens/pens_x": 3}})}))
