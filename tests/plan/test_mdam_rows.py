"""MDAM is measured in the table that prints it, with beams at all four sizes of both problems."""

import pytest

from neuroute.papers.icam.roles import SIZES, reference
from neuroute.plan.decodings import name_of
from plans import plan_of


@pytest.mark.parametrize(("scale", "beam"), [("smoke", 8), ("paper", 50)])
def test_rows_read_evaluations(scale: str, beam: int) -> None:
    plan = plan_of(scale, ("icam",))
    read = [plan.evaluations[e] for e in plan.artifacts["icam/table1"].evaluations]
    for problem in ("tsp", "cvrp"):
        own = [e for e in read if e.run == f"rivals/mdam_{problem}"]
        assert {name_of(d) for e in own for d in e.decodings_used()} == {f"decoders-beam{beam}"}
        assert {labels for e in own for labels in e.labels} >= {reference(plan.scale, problem, n) for n in SIZES}
