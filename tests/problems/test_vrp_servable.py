"""Instances that cannot be served are refused, with the customer and how to mend it."""

from dataclasses import replace

import numpy as np
import pytest
from refusals import one_line

from neuroute.core.errors import NeurouteError
from neuroute.datasets.vrp_stream import vrp_dataset
from neuroute.plan.objects import Dataset
from neuroute.problems.vrp import SWITCHES, Vrp
from neuroute.problems.vrp_checker import check_instances


def instances(variant: str) -> Vrp:
    return vrp_dataset(Dataset(problem="vrp", variant=variant, n=8, count=4))


@pytest.mark.parametrize("variant", SWITCHES)
def test_streams_can_be_served(variant: str) -> None:
    check_instances(instances(variant), variant)


def changed(variant: str, field: str, place: tuple[int, ...], value: float) -> Vrp:
    batch = instances(variant)
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
        ("VRPL", "limit", (3,), np.nan, "instance 3: the limit of a route is not a number above 0"),
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


def test_shapes() -> None:
    batch = instances("VRPTW")
    for wrong in (
        {"demand": batch.demand[:, 1:]},
        {"capacity": batch.capacity[:1]},
        {"windows": batch.windows[:, 1:]},
        {"service": None},
        {"limit": np.ones(2)},
    ):
        with pytest.raises(NeurouteError, match="mine"):
            check_instances(replace(batch, **wrong), "mine")
