"""Each table and figure asks at `paper` scale for the measurements that stand in paper_needs.txt.

`pytest tests/plan/test_golden_plan.py --renew-golden` renews it.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from neuroute.pipeline.plan import needs as kinds
from neuroute.pipeline.plan.build import build_plan
from neuroute.pipeline.plan.config import parse_config
from neuroute.specs.objects import Test

GOLDEN = Path(__file__).with_name("paper_needs.txt")


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


def lines() -> Iterator[str]:
    plan = build_plan(parse_config({"scale": "paper"}))
    for artifact, needs in sorted(plan.needs.items()):
        runs = defaultdict(set)
        for need in needs:
            measurement, run = described(need)
            runs[measurement].add(run)
        yield artifact
        for measurement, names in sorted(runs.items()):
            yield f"  {measurement}: {' '.join(sorted(names))}"


def test_what_is_measured_for_each_artifact_is_the_papers(request: pytest.FixtureRequest) -> None:
    text = "\n".join(lines()) + "\n"
    if request.config.getoption("--renew-golden"):
        GOLDEN.write_text(text)
    assert text.splitlines() == GOLDEN.read_text().splitlines()
