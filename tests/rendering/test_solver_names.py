"""Which solvers a row says were run: those whose numbers it shows."""

from types import SimpleNamespace

from neuroute.pipeline.rendering.cells import Solvers
from neuroute.pipeline.rendering.grid import LKH_BUDGETS
from neuroute.solvers import lkh, lkh3
from neuroute.specs.objects import Dataset, Labels

SMALL, LARGE = Dataset(problem="cvrp", n=20, count=8), Dataset(problem="cvrp", n=20, count=64)


def told(*made: Labels) -> Solvers:
    entries = {m.id: {"count": m.dataset.count, "mean_length": 4.0, "seconds": 1.0, "version": "1"} for m in made}
    return Solvers(SimpleNamespace(), entries)  # type: ignore[arg-type]


def test_solutions_of_more_instances_show_no_mean_of_these() -> None:
    """So they are not named, and the next solver of the row is."""
    solvers = told(Labels(dataset=LARGE, solver="hgs"), Labels(dataset=SMALL, solver="hgs-short"))
    reference = Labels(dataset=SMALL, solver="hgs-short")
    assert solvers.here([reference], ["hgs", "hgs-short"]) == "short HGS (1)"
    assert solvers.here([reference], ["lkh3"]) == "–"


def test_budgets_of_lkh_are_those_of_the_solvers() -> None:
    assert (lkh.RUNS, lkh3.RUNS, lkh.ROUNDS) == (1, 1, 10)
    assert (lkh.SECONDS, lkh3.limit_s(0), lkh3.limit_s(1)) == (6 * 3600, 600, 601)
    assert lkh.LONG.solve.keywords["runs"] == 10  # type: ignore[union-attr]
    run, rounds = (
        "run of as many trials as nodes (LKH's default)",
        (
            f"from {lkh.NODES:,} nodes on a first tour and ten rounds of {lkh.NODE_TRIALS:,} trials over nodes, "
            "six hours at most"
        ),
    )
    assert LKH_BUDGETS["lkh3"] == f"one {run}, 600 s and one more a node at most"
    assert LKH_BUDGETS["lkh"] == f"one {run}, {rounds}"
    assert LKH_BUDGETS["lkh-long"] == f"ten runs of as many trials as nodes, {rounds}"
