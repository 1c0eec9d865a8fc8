"""Runs at `paper` scale are those of paper_runs.txt; tables and figures ask for the measurements of paper_needs.txt.

`pytest tests/plan/test_golden_plan.py --renew-golden` renews it.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from neuroute.pipeline.papers.rivals.paper import rivals
from neuroute.pipeline.plan import needs as kinds
from neuroute.pipeline.plan.build import build_plan
from neuroute.pipeline.plan.config import Config, load_scale, parse_config
from neuroute.pipeline.plan.plan import Plan
from neuroute.specs.objects import Run, Test

HERE = Path(__file__).parent


def shown(run: Run) -> Iterator[str]:
    """What is trained, by what, and on what."""
    yield f"network {run.network.model_dump_json()}"
    yield f"training {run.training.model_dump_json()}"
    samples = sum(labels.dataset.count for labels in run.data)
    yield f"seed {run.seed}, from {run.start}, n {run.n}, {samples} of {run.data[0].id if run.data else 'its own'}"
    yield f"validation {' '.join(labels.id for labels in (run.validation, *run.also_validation))}"


def described(need: kinds.Need) -> tuple[str, str]:
    """What is measured, and the run that it is measured of."""
    match need:
        case Test(run=run):
            stage = f" after {need.stage}" if need.stage else ""
            return f"{need.labels.id} {need.decoding.name}{stage}", run
        case kinds.Log(run, all_seeds):
            return "log of all seeds" if all_seeds else "log", run
        case kinds.Solved(labels, optional):
            return f"{labels.id} solved" + (" if made" if optional else ""), labels.solver
        case _:
            spec = need.model_dump_json(exclude={"run"}, exclude_defaults=True)
            return f"{type(need).__name__} {spec}", need.run


def needs(plan: Plan) -> Iterator[str]:
    for artifact, each in sorted(plan.needs.items()):
        yield artifact
        yield from by_text(map(described, each))


def by_text(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    """A line for each text, with all names that it is said of."""
    names = defaultdict(set)
    for text, name in pairs:
        names[text].add(name)
    return (f"  {text}: {' '.join(sorted(names[text]))}" for text in sorted(names))


def test_what_is_trained_and_measured_is_the_papers(request: pytest.FixtureRequest) -> None:
    plan = build_plan(parse_config({"scale": "paper"}))
    runs = by_text((text, run.id) for run in plan.runs.values() for text in shown(run))
    for name, lines in {"paper_runs.txt": [*runs], "paper_needs.txt": [*needs(plan)]}.items():
        if request.config.getoption("--renew-golden"):
            (HERE / name).write_text("\n".join(lines) + "\n")
        assert lines == (HERE / name).read_text().splitlines()


def test_weights_of_glops_partitions_are_the_best_by_validation_and_of_others_the_last() -> None:
    kept = {each.run.name: getattr(each.run.training, "keep", "last") for each in rivals(Config(), load_scale("paper"))}
    assert {name for name, keep in kept.items() if keep == "best"} == {"glop_g", "glop_g_2k", "glop_g_cvrplib"}
