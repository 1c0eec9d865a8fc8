"""Which solvers a row says were run: those whose numbers it shows."""

from types import SimpleNamespace

from neuroute.plan.objects import Dataset, Labels
from neuroute.rendering.solver_cells import Solvers

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
