"""The 16 vehicle routing problems: names, batches, lengths, forms of solutions, and instances that are refused."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from refusals import one_line

from neuroute.core.errors import NeurouteError
from neuroute.datasets.streams import vrp_dataset
from neuroute.problems.cvrp import cost
from neuroute.problems.vrp import (
    SWITCHES,
    Switches,
    Variant,
    Vrp,
    canonical,
    check_instances,
    from_routes,
    lengths,
    to_routes,
    variant_of,
)
from neuroute.specs.objects import Dataset

SIX = {"CVRP", "OVRP", "VRPB", "VRPL", "VRPTW", "OVRPTW"}  # learnt from
TEN = {"OVRPB", "OVRPL", "VRPBL", "VRPBTW", "VRPLTW", "OVRPBL", "OVRPBTW", "OVRPLTW", "VRPBLTW", "OVRPBLTW"}


def stream(variant: str, count: int = 5, n: int = 8) -> Vrp:
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
    assert (len(batch), len(part), part.customers, part.variant) == (5, 2, 8, variant)
    for name in ("coords", "demand", "capacity", "limit", "windows", "service"):
        whole, sliced = getattr(batch, name), getattr(part, name)
        assert (whole is None) == (sliced is None)
        if whole is not None:
            np.testing.assert_array_equal(sliced, whole[1:3])


@pytest.mark.parametrize("open", [False, True])
def test_lengths_are_those_of_the_routes(open: bool) -> None:
    rng = np.random.default_rng(0)
    batch = stream("OVRP" if open else "CVRP", 30, 10)
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


# -- instances that cannot be served ----------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", SWITCHES)
def test_streams_can_be_served(variant: str) -> None:
    check_instances(stream(variant), variant)


def changed(variant: str, field: str, place: tuple[int, ...], value: float) -> Vrp:
    batch = stream(variant)
    array = getattr(batch, field).copy()
    array[place] = value
    return replace(batch, **{field: array})


@pytest.mark.parametrize(
    ("variant", "field", "place", "value", "message"),
    [
        ("CVRP", "coords", (2, 3, 0), np.nan, "instance 2, customer 3: a coordinate is not a finite number"),
        ("CVRP", "capacity", (1,), 0, "instance 1: the capacity is not above 0"),
        ("CVRP", "demand", (1, 0), 3, "instance 1: the depot has a demand"),
        ("CVRP", "demand", (1, 5), 99, "instance 1, customer 5: it demands more than the capacity"),
        ("VRPB", "demand", (1, 5), -99, "instance 1, customer 5: its goods to be picked up are more than the capacity"),
        ("VRPL", "limit", (3,), np.nan, "instance 3: the limit of a route is not a finite number above 0"),
        ("VRPL", "coords", (3, 4, 0), 9, "instance 3, customer 4: the way there and back alone is longer than"),
        ("OVRPL", "coords", (3, 4, 0), 9, "instance 3, customer 4: the way there alone is longer than the limit"),
        ("VRPTW", "windows", (1, 2, 0), 2.999, "instance 1, customer 2: its window closes before it opens"),
        ("VRPTW", "windows", (1, 2, 1), np.nan, "instance 1, customer 2: a time of its window is no number"),
        ("OVRPTW", "windows", (1, 2), 1e-3, "instance 1, customer 2: no vehicle gets there before its window closes"),
        ("VRPTW", "windows", (1, 2), 2.9, "instance 1, customer 2: no vehicle that serves it is back before"),
        ("VRPTW", "windows", (1, 0, 0), 0.5, "instance 1: the depot does not open at 0"),
        ("VRPTW", "service", (1, 2), -0.1, "instance 1, customer 2: its service time is not a number from 0 on"),
        ("VRPTW", "service", (1, 2), 3, "instance 1, customer 2: no vehicle that serves it is back before"),
        ("VRPTW", "service", (1, 0), 0.1, "instance 1: the depot has a service time"),
    ],
)
def test_each_fault_names_its_customer(variant: str, field: str, place: tuple, value: float, message: str) -> None:
    with one_line(f"^mine.npz, {message}"):
        check_instances(changed(variant, field, place, value), "mine.npz")


def test_what_open_routes_do_not_need_is_not_asked() -> None:
    check_instances(changed("OVRPTW", "windows", (1, 2), 2.9), "x")
    check_instances(changed("OVRPL", "coords", (1, 4), 1.9), "x")  # nearer than the limit, but not there and back
    with pytest.raises(NeurouteError, match="customer 4"):
        check_instances(changed("VRPL", "coords", (1, 4), 1.9), "x")
