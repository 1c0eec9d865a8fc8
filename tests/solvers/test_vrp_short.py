"""Short solvers of routing variants: labels that repeat, and solvers of the CVRP that take it as a variant."""

import numpy as np
import pytest

from neuroute.core.errors import NeurouteError
from neuroute.datasets.problem_specs import VRP
from neuroute.datasets.vrp_stream import vrp_dataset
from neuroute.plan.objects import Dataset
from neuroute.problems.vrp import lengths
from neuroute.problems.vrp_checker import valid
from neuroute.problems.vrp_variants import SWITCHES
from neuroute.solvers.registry import get


@pytest.mark.parametrize("variant", SWITCHES)
def test_a_number_of_solutions_ends_at_the_same_place(variant: str) -> None:
    pytest.importorskip("ortools")
    instance = vrp_dataset(Dataset(problem="vrp", variant=variant, n=9, count=1))
    first, again = (VRP.solve(get("ortools-short"), instance, seed) for seed in (0, 1))
    np.testing.assert_array_equal(first, again)
    assert VRP.valid(instance, first[None]).all()


def test_pyvrp_finds_in_short_what_it_finds_at_length() -> None:
    pytest.importorskip("pyvrp")
    instance = vrp_dataset(Dataset(problem="vrp", variant="OVRPLTW", n=9, count=1))
    found, full = (VRP.solve(get(name), instance, 0) for name in ("pyvrp-short", "pyvrp"))
    assert valid(instance, found[None], tolerance=1e-3).all()
    assert lengths(instance, found[None])[0] == pytest.approx(lengths(instance, full[None])[0])
    with pytest.raises(NeurouteError, match="VRPB"):
        VRP.solve(get("pyvrp-short"), vrp_dataset(Dataset(problem="vrp", variant="VRPB", n=9, count=1)), 0)


def test_solvers_of_the_cvrp_solve_it_as_a_variant() -> None:
    pytest.importorskip("hygese")
    instance = vrp_dataset(Dataset(problem="vrp", variant="CVRP", n=9, count=1))
    found, short = VRP.solve(get("hgs-short"), instance, 0), VRP.solve(get("ortools-short"), instance, 0)
    assert valid(instance, found[None]).all()
    assert lengths(instance, found[None])[0] <= lengths(instance, short[None])[0] + 1e-6
    with pytest.raises(NeurouteError, match="'hgs-short' does not solve OVRP"):
        VRP.solve(get("hgs-short"), vrp_dataset(Dataset(problem="vrp", variant="OVRP", n=9, count=1)), 0)
