"""GLOP is measured in every table that prints it, each size by the partition that is for it."""

import pytest

from neuroute.plan.objects import CombinedEvaluation
from plans import plan_of

ROWS = {
    "sit/table1": {"glop", "glop_g", "glop_g_2k"},
    "sit/table2": {"glop", "glop_g_cvrplib"},
    "sit/table9": {"glop"},
    "icam/table1": {"glop", "glop_g"},
    "icam/table3": {"glop_g", "glop_g_2k"},
}


@pytest.mark.parametrize("table", ROWS)
@pytest.mark.parametrize("scale", ["smoke", "paper"])
def test_rows_read_evaluations(scale: str, table: str) -> None:
    plan = plan_of(scale, ("sit", "icam"))
    read = [plan.evaluations[e] for e in plan.artifacts[table].evaluations]
    assert {e.run.partition("/")[2] for e in read if e.run.startswith("rivals/glop")} == ROWS[table]


def test_partitions_start_from_the_revisers() -> None:
    plan = plan_of("paper", ("sit", "icam"))
    for name, (nodes, capacity, neighbours) in {
        "glop_g": (1000, 200, 100),
        "glop_g_2k": (2000, 300, 200),
        "glop_g_cvrplib": (2000, 300, 300),
    }.items():
        run = plan.runs[f"rivals/{name}"]
        assert run.start == "rivals/glop"
        assert (run.n, run.training.capacity, run.network.arguments["neighbours"]) == (nodes, capacity, neighbours)  # type: ignore[union-attr]
    decodings = [e for e in plan.evaluations.values() if e.run == "rivals/glop"]
    assert not any(isinstance(e, CombinedEvaluation) for e in decodings)
    assert {d.method for e in decodings for d in e.decodings_used()} == {"revise"}
