"""The published reference solutions of the 16 problems: lengths and feasibility as our definitions have them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuroute.problems.vrp import SWITCHES, Vrp, from_routes, lengths, valid

GRID = 1e-3  # the references come from integer grids and are up to 6e-4 late
OTHER_PROBLEM = {("VRPB", "lkh"), ("VRPBTW", "lkh")}  # LKH read the capacity in another way


@pytest.fixture(params=SWITCHES)
def published(request: pytest.FixtureRequest, public: Callable[[str], Path]) -> tuple[str, Vrp, Any]:
    data = np.load(public(f"refdata/mvmoe/{request.param}_n50.npz"))
    return request.param, instances_of(data), data


def instances_of(data: Any) -> Vrp:
    count = len(data["loc"])

    def with_depot(depot: Any, customers: str) -> np.ndarray:
        rest = data[customers]
        return np.concatenate([np.broadcast_to(depot, (count, 1, *rest.shape[2:])), rest], axis=1)

    timed = "tw" in data.files
    return Vrp(
        coords=with_depot(data["depot"][:, None], "loc"),
        demand=with_depot(0, "demand").astype(np.int64),
        capacity=data["capacity"].astype(np.int64),
        open=bool(data["open"]),
        limit=data["route_limit"].astype(np.float64) if "route_limit" in data.files else None,
        windows=with_depot(data["depot_tw"], "tw") if timed else None,
        service=with_depot(np.float32(0), "service_time") if timed else None,
    )


def solutions_of(data: Any, solver: str) -> np.ndarray:
    def routes(sequence: list[int]) -> list[list[int]]:
        text = " ".join(map(str, (visit for visit in sequence if visit >= 0)))
        return [[int(customer) for customer in route.split()] for route in text.split(" 0 ")]

    return np.stack([from_routes(routes(sequence)) for sequence in data[f"routes_{solver}"].tolist()])


def test_they_are_of_the_variant_that_the_file_names(published):
    name, instances, data = published
    assert instances.variant == name == str(data["variant"])
    assert (len(instances), instances.customers) == (200, 50)


def test_they_have_the_lengths_that_were_published(published):
    _, instances, data = published
    assert len(data["solvers"])
    for solver in data["solvers"].tolist():
        ours = lengths(instances, solutions_of(data, solver))
        np.testing.assert_allclose(ours, data[f"obj_{solver}"], rtol=0, atol=1e-6)


def test_they_are_feasible_as_the_solvers_read_the_problem(published):
    name, instances, data = published
    for solver in data["solvers"].tolist():
        fine = valid(instances, solutions_of(data, solver), "free start", GRID)
        assert fine.all() or (name, solver) in OTHER_PROBLEM, (solver, np.flatnonzero(~fine))
        if name == "VRPB" and solver == "lkh":
            assert fine.mean() < 0.5
