"""A rehearsal is the plan with little of everything, in folders of its own; what memory hangs on stays."""

from typing import Any

import pytest

from neuroute.pipeline.plan.build import Plan
from neuroute.specs.objects import EfficiencyEvaluation, Reinforced
from plans import SCALES, plan_of


def rehearsed(scale: str) -> Plan:
    return plan_of(scale, rehearse=True)


@pytest.mark.parametrize("scale", SCALES)
def test_it_has_all_jobs_with_little_in_them(scale: str) -> None:
    plan, whole = rehearsed(scale), plan_of(scale)
    assert plan.artifacts.keys() == whole.artifacts.keys()
    assert plan.runs.keys() == {run for run in whole.runs if "-s" not in run.rpartition("/")[2]} - whole.unreachable
    assert plan.evaluations.keys() == {name for name, e in whole.evaluations.items() if e.run in plan.runs}
    assert {labels.solver for labels in plan.label_jobs.values()} <= {"nearest", "insertion", "insertion-published"}
    for run in plan.runs.values():
        stages = run.training.stages if isinstance(run.training, Reinforced) else (None,)
        assert run.training.batches <= 40 * len(stages), run.id
    for evaluation in plan.evaluations.values():
        assert all(labels.dataset.count <= 2 for labels in evaluation.labels), evaluation.id
        assert all(decoding.iterations <= 5 for decoding in evaluation.decodings_used()), evaluation.id
    assert plan.work.parts == ("work", "rehearsal", scale)
    assert plan.report.parts[:2] == ("results", "rehearsal")


@pytest.mark.parametrize("scale", ["laptop", "paper"])
def test_what_may_not_fit_into_memory_is_as_large(scale: str) -> None:
    plan, whole = rehearsed(scale), plan_of(scale)

    def sizes(training: Any) -> list[Any]:
        return [(each.batch_size, each.sizes, each.starts) for each in getattr(training, "stages", ())] or [
            getattr(training, "batch_size", None)
        ]

    for name, run in plan.runs.items():
        other = whole.runs[name]
        assert (run.network, run.n, run.validation.dataset.n) == (other.network, other.n, other.validation.dataset.n)
        assert sizes(run.training) == sizes(other.training)
        assert run.training.precision == other.training.precision
    measured = [e for e in whole.evaluations.values() if e.of_kind(EfficiencyEvaluation)]
    assert measured
    for evaluation in measured:
        assert plan.evaluations[evaluation.id] == evaluation
