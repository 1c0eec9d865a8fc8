"""Systems of others are measured in every table that prints them, in their own ways, on all of its test sets."""

import pytest

from neuroute.papers.icam.roles import SIZES, reference
from neuroute.papers.sit import roles as sit
from neuroute.plan.objects import CombinedEvaluation, Labels, RunEvaluation
from plans import plan_of

GLOP = {
    "sit/table1": {"glop", "glop_g", "glop_g_2k"},
    "sit/table2": {"glop", "glop_g_cvrplib"},
    "sit/table9": {"glop"},
    "icam/table1": {"glop", "glop_g"},
    "icam/table3": {"glop_g", "glop_g_2k"},
}


def read_by(scale: str, table: str, system: str) -> list[RunEvaluation]:
    """The evaluations of a system's runs that a table reads."""
    plan = plan_of(scale, ("sit", "icam"))
    read = [plan.evaluations[e] for e in plan.artifacts[table].evaluations]
    return [e for e in read if e.run.startswith(f"rivals/{system}")]


def check(evaluations: list[RunEvaluation], way: str, tests: set[Labels]) -> None:
    assert {d.name for e in evaluations for d in e.decodings_used()} == {way}
    assert {labels for e in evaluations for labels in e.labels} >= tests


@pytest.mark.parametrize("table", GLOP)
@pytest.mark.parametrize("scale", ["smoke", "paper"])
def test_glop_has_the_partition_that_is_for_each_size(scale: str, table: str) -> None:
    assert {e.run.partition("/")[2] for e in read_by(scale, table, "glop")} == GLOP[table]


def test_partitions_of_glop_start_from_the_revisers() -> None:
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


@pytest.mark.parametrize("scale", ["smoke", "laptop", "paper"])
def test_htsp_grows_tours(scale: str) -> None:
    s, of_sit = plan_of(scale, ("sit", "icam")).scale, (*sit.SMALL_SIZES, *sit.SIZES[:3])
    for table, tests in {
        "icam/table1": {reference(s, "tsp", n) for n in SIZES},
        "sit/table1": {sit.reference(s, "tsp", n) for n in of_sit if n in sit.SIZES},
        "sit/table9": {sit.small(s, "tsp", n) for n in sit.SMALL_SIZES},
    }.items():
        check([e for e in read_by(scale, table, "htsp") if e.run == "rivals/htsp"], "grow", tests)


@pytest.mark.parametrize("problem", ["tsp", "cvrp"])
@pytest.mark.parametrize(("scale", "beam"), [("smoke", 8), ("paper", 50)])
def test_mdam_searches_by_beams(scale: str, beam: int, problem: str) -> None:
    tests = {reference(plan_of(scale, ("sit", "icam")).scale, problem, n) for n in SIZES}
    check(read_by(scale, "icam/table1", f"mdam_{problem}"), f"decoders-beam{beam}", tests)
