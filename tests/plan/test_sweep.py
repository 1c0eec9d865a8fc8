"""A sweep of config.yaml: each point is the declared run with its values, measured on instances of its own."""

from typing import Any

import pytest
from refusals import one_line

from neuroute.pipeline.papers.sweep.paper import decoding, points
from neuroute.pipeline.plan.build import Plan, build_plan
from neuroute.pipeline.plan.config import load_config, parse_config
from plans import ROOT, plan_of

GRID = {"training.learning_rate": [1e-4, "2e-4"], "arguments.depth": [1, 2]}


def plan_with(run: str, grid: dict[str, Any], papers: tuple[str, ...] = ("sweep",), **more: Any) -> Plan:
    return plan_of("smoke", papers, sweep={"run": run, "grid": grid, **more})


def test_a_point_is_the_declared_run_with_its_values() -> None:
    plan, declared = plan_with("pens/pens_a", GRID, seeds=2), plan_of("smoke").runs["pens/pens_a"]
    names = [f"pens_a_learning_rate_{rate}_depth_{depth}" for rate in ("0.0001", "0.0002") for depth in (1, 2)]
    assert list(plan.runs) == [f"sweep/{name}{seed}" for name in names for seed in ("", "-s1")]
    for name, rate, depth in zip(names, (1e-4, 1e-4, 2e-4, 2e-4), (1, 2, 1, 2), strict=True):
        run = plan.runs[f"sweep/{name}"]
        assert run.training == declared.training.model_copy(update={"learning_rate": rate})
        assert run.network.arguments == declared.network.arguments | {"depth": depth}
        assert (run.data, run.validation, run.seed) == (declared.data, declared.validation, declared.seed)
        assert plan.runs[f"sweep/{name}-s1"].seed == run.seed + 1
    assert set(plan.artifacts) == {"sweep/table1", "sweep/figure1"}
    for evaluation in plan.evaluations.values():
        assert [labels.dataset.split for labels in evaluation.labels] == ["test"]


def test_a_run_of_many_starts_is_measured_by_all_and_what_it_starts_from_is_trained() -> None:
    plan = plan_with("icam/icam_tsp", {"training": {"clip": [1.0, 5.0]}}, test_count=16)
    assert {decoding(run).starts for _, run in points(plan.scale)} == {"all"}
    assert {labels.dataset.count for e in plan.evaluations.values() for labels in e.labels} == {16}
    shot = plan_with("mvmoe/few_mtl_vrpbltw", {"seed": [3, 4]})
    starts = {run.start for run in shot.runs.values()} - {None}
    assert starts
    assert starts <= {*shot.runs}


def test_a_grid_may_be_said_on_the_command_line() -> None:
    changes = ["sweep.run=toy/decoder", "sweep.grid.training.samples=[64, 128]", "papers=[sweep]"]
    config = load_config(ROOT / "docs" / "examples" / "config.yaml", [*changes, f"scale={ROOT}/docs/examples/toy.yaml"])
    plan = build_plan(config.model_copy(update={"papers_path": [str(ROOT / "docs" / "examples" / "papers")]}))
    assert [sum(labels.dataset.count for labels in run.data) for run in plan.runs.values()] == [64, 128]


@pytest.mark.parametrize(
    ("sweep", "message"),
    [
        ({"run": "pens/pens_b", "grid": GRID}, "mine.yaml: sweep.run: no run pens/pens_b; did you mean "),
        ({"run": "nope/a", "grid": GRID}, "unknown paper 'nope'"),
        ({"run": "pens/pens_a", "grid": {"training.rate": [1]}}, "mine.yaml: sweep.grid: training.rate: unknown key"),
        ({"run": "pens/pens_a", "grid": {"seed": [1, 1]}}, "seed: .* has a value twice"),
        ({"run": "pens/pens_a", "grid": {"seeds": [1, 2]}}, "give `seeds` beside it"),
        ({"run": "pens/pens_a", "grid": {"seed.a": [1], "seed": [2]}}, "seed.a is a part of seed"),
        ({"run": "rivals/glop", "grid": GRID}, "rivals/glop is trained and decoded by its system's own code"),
    ],
)
def test_a_sweep_that_cannot_be_is_one_line(sweep: dict[str, Any], message: str) -> None:
    with one_line(message):
        build_plan(parse_config({"papers": ["pens"], "sweep": sweep}, "mine.yaml"))
