"""What a target costs: runs that others start from are behind it too, and re-construction is counted."""

import math

import pytest

from neuroute.accounting.flops import RunFlops, per_solution
from neuroute.accounting.overview import costs
from neuroute.plan.objects import Dataset, Decoding
from plans import plan_of


@pytest.mark.slow
def test_runs_come_after_those_that_they_start_from() -> None:
    plan = plan_of("paper")
    started = [run for run in plan.runs.values() if run.start]
    assert started
    for run in started:
        needed = [c.id for c in costs(plan, run.id)]
        trained = [each for each in needed if each in plan.runs]
        assert trained[-1] == run.id
        for each in trained:
            start = plan.runs[each].start
            assert start is None or trained.index(start.partition("@")[0]) < trained.index(each)
            assert set(plan.label_jobs_of_run(each)) <= set(needed)


@pytest.mark.parametrize("problem", ["tsp", "cvrp"])
def test_re_construction_costs_as_much_as_its_blocks(problem: str) -> None:
    run = plan_of("paper").runs[f"sit/{problem}_1k"]
    dataset = Dataset(problem=problem, n=1000, count=3)  # type: ignore[arg-type]

    def of(**how: object) -> float:
        return RunFlops(run).improve(dataset, Decoding(method="prc", **how))  # type: ignore[arg-type]

    assert of(iterations=0) == 0
    assert of(iterations=20, longest=50) == pytest.approx(2 * of(iterations=10, longest=50))
    assert of(iterations=10, longest=50) < of(iterations=10)
    assert of(iterations=10, most_blocks=1) < of(iterations=10)
    whole = dataset.count * per_solution(run.network, dataset.nodes)["gflops_shrinking"] * 1e9
    assert 0.3 * whole < of(iterations=1) < 1.5 * whole  # half as many tokens a decision, nearly as many decisions


@pytest.mark.slow
def test_a_paper_is_a_target() -> None:
    plan = plan_of("paper")
    rendered = {c.id for c in costs(plan, "pens") if c.stage == "render"}
    assert rendered == {a for a, artifact in plan.artifacts.items() if artifact.paper == "pens"}
    assert {"sit/tsp_100k", "scaling/bq"} <= {c.id for c in costs(plan, "sit")}


@pytest.mark.slow
def test_scale_gpu_is_a_day_on_one_graphics_card_by_its_plan() -> None:
    plan = plan_of("gpu", device="cuda", machine={"gpu_tflops": 40})
    jobs = [job for job in costs(plan, None) if not math.isnan(job.seconds)]
    assert sum(job.seconds * job.gpus for job in jobs) <= 24.5 * 3600
    assert sum(job.seconds * job.threads for job in jobs if job.stage == "labels") <= 14 * 3600
