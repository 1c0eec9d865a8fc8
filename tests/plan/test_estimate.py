"""What a target costs: runs that others start from are behind it too, and re-construction is counted."""

import pytest

from neuroute.accounting import cost
from neuroute.accounting.estimate import ModelPrice, costs
from neuroute.plan.build import Plan, build_plan
from neuroute.plan.config import Config
from neuroute.plan.objects import Dataset, Decoding


@pytest.fixture(scope="module")
def plan() -> Plan:
    return build_plan(Config(scale="paper"))


def test_runs_come_after_those_that_they_start_from(plan: Plan) -> None:
    started = [run for run in plan.runs.values() if run.start]
    assert started
    for run in started:
        found = [c.id for c in costs(plan, run.id)]
        trained = [each for each in found if each in plan.runs]
        assert trained[-1] == run.id
        for each in trained:
            start = plan.runs[each].start
            assert start is None or trained.index(start.partition("@")[0]) < trained.index(each)
            assert set(plan.label_jobs_of_run(each)) <= set(found)


@pytest.mark.parametrize("problem", ["tsp", "cvrp"])
def test_re_construction_costs_as_much_as_its_blocks(plan: Plan, problem: str) -> None:
    run = next(r for r in plan.runs.values() if r.id == f"sit/{problem}_1k")
    dataset = Dataset(problem=problem, n=1000, count=3)  # type: ignore[arg-type]

    def of(**how: object) -> float:
        return ModelPrice(run).improve(dataset, Decoding(method="prc", **how))  # type: ignore[arg-type]

    assert of(iterations=0) == 0
    assert of(iterations=20, longest=50) == pytest.approx(2 * of(iterations=10, longest=50))
    assert of(iterations=10, longest=50) < of(iterations=10)
    assert of(iterations=10, most_blocks=1) < of(iterations=10)
    whole = dataset.count * cost.per_solution(run.network, dataset.nodes)["gflops_shrinking"] * 1e9
    assert 0.3 * whole < of(iterations=1) < 1.5 * whole  # half as many tokens a decision, nearly as many decisions


def test_a_paper_is_a_target(plan: Plan) -> None:
    found = {c.id for c in costs(plan, "pens") if c.stage == "render"}
    assert found == {a for a, artifact in plan.artifacts.items() if artifact.paper == "pens"}
    assert {c.id for c in costs(plan, "sit")} & {"sit/tsp_100k", "scaling/bq"} == {"sit/tsp_100k", "scaling/bq"}
