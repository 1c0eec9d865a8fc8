"""The 16 vehicle routing problems: their names, batches of instances, lengths and forms of solutions."""

from itertools import pairwise

import numpy as np
import pytest

from neuroute.core.errors import NeurouteError
from neuroute.datasets.vrp_stream import vrp_dataset
from neuroute.plan.objects import Dataset
from neuroute.problems.cvrp import cost
from neuroute.problems.vrp import (
    SWITCHES,
    Switches,
    Variant,
    Vrp,
    canonical,
    from_routes,
    lengths,
    to_routes,
    variant_of,
)

SIX = {"CVRP", "OVRP", "VRPB", "VRPL", "VRPTW", "OVRPTW"}  # learnt from
TEN = {"OVRPB", "OVRPL", "VRPBL", "VRPBTW", "VRPLTW", "OVRPBL", "OVRPBTW", "OVRPLTW", "VRPBLTW", "OVRPBLTW"}


def stream(variant: str, count: int = 5, n: int = 10) -> Vrp:
    return vrp_dataset(Dataset(problem="vrp", variant=variant, n=n, count=count))


def test_the_names_are_those_of_the_paper() -> None:
    assert set(SWITCHES) == SIX | TEN
    assert Variant("OVRPBLTW").switches == (True, True, True, True)
    assert Variant("VRPBL").switches == Switches(backhaul=True, limit=True)
    for name, switches in SWITCHES.items():
        assert variant_of(switches) == name
        assert [("O" in name), ("B" in name), ("L" in name), ("TW" in name)] == list(switches)


def test_an_unknown_name_gets_those_that_are_near() -> None:
    with pytest.raises(NeurouteError, match="no routing problem 'vrptl'; is VRPL or VRPTW or"):
        Variant("vrptl")
    with pytest.raises(NeurouteError, match="no routing problem 'x'; all: CVRP, "):
        Variant("x")


@pytest.mark.parametrize("variant", SWITCHES)
def test_a_batch_knows_its_variant_and_slices(variant: str) -> None:
    batch = stream(variant)
    assert batch.variant == variant
    part = batch[1:3]
    assert (len(batch), len(part), part.customers, part.variant) == (5, 2, 10, variant)
    for name in ("coords", "demand", "capacity", "limit", "windows", "service"):
        whole, sliced = getattr(batch, name), getattr(part, name)
        assert (whole is None) == (sliced is None)
        if whole is not None:
            np.testing.assert_array_equal(sliced, whole[1:3])


@pytest.mark.parametrize("open", [False, True])
def test_lengths_are_those_of_the_routes(open: bool) -> None:
    rng = np.random.default_rng(0)
    batch = stream("OVRP" if open else "CVRP", 30)
    order = rng.permuted(np.tile(np.arange(1, 11), (30, 1)), axis=1)
    via = (rng.random((30, 10)) < 0.3).astype(np.int64)
    via[:, 0] = 1
    solutions = np.stack([order, via], axis=1)
    plain = []
    for coords, solution in zip(batch.coords.astype(float), solutions, strict=True):
        total = 0.0
        for route in to_routes(solution):
            stops = [0, *route] if open else [0, *route, 0]
            total += sum(np.linalg.norm(coords[a] - coords[b]) for a, b in pairwise(stops))
        plain.append(total)
    np.testing.assert_allclose(lengths(batch, solutions), plain, rtol=1e-12)
    assert lengths(batch, solutions.astype(np.uint8)).dtype == np.float64
    if not open:
        np.testing.assert_allclose(plain, cost(Vrp(batch.coords, batch.demand, batch.capacity), solutions), rtol=1e-12)


def test_the_stored_form_orders_routes_and_turns_none() -> None:
    given = np.stack([from_routes([[4, 2], [5], [1, 6, 3]]), from_routes([[3, 1, 2, 6, 5, 4]])])
    found = canonical(given)
    assert [to_routes(s) for s in found] == [[[1, 6, 3], [4, 2], [5]], [[3, 1, 2, 6, 5, 4]]]
    np.testing.assert_array_equal(canonical(found), found)
