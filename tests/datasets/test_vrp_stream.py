"""Streams of the 16 vehicle routing problems: the same bits however reached, on CVRP's ground, as the paper draws."""

import hashlib

import numpy as np
import pytest
from pydantic import ValidationError

from neuroute.core.errors import NeurouteError
from neuroute.datasets import vrp_stream
from neuroute.datasets.problem_specs import VRP
from neuroute.datasets.streams import cvrp_capacity, cvrp_dataset
from neuroute.datasets.vrp_stream import VRP_CAPACITIES, vrp_dataset
from neuroute.plan.objects import SHARD, Dataset
from neuroute.problems.vrp import SWITCHES, Vrp

FIELDS = ("coords", "demand", "capacity", "limit", "windows", "service")


def dataset(variant: str, n: int = 50, count: int = 40, **more) -> Dataset:
    return Dataset(problem="vrp", variant=variant, n=n, count=count, **more)


def same(a: Vrp, b: Vrp) -> bool:
    pairs = [(getattr(a, field), getattr(b, field)) for field in FIELDS]
    return a.open == b.open and all((x is None and y is None) or np.array_equal(x, y) for x, y in pairs)


def test_streams_never_change() -> None:
    # Labels that are already made belong to these bits.
    found = vrp_dataset(dataset("OVRPBLTW", first=SHARD - 20))
    digest = hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in VRP.arrays(found))).hexdigest()
    assert digest[:16] == "ece0262dfeaad4ee"


@pytest.mark.parametrize("variant", SWITCHES)
def test_any_part_equals_that_part_of_the_whole(variant: str) -> None:
    whole = vrp_dataset(dataset(variant, 7, 20, first=SHARD - 9))
    for start, count in [(0, 20), (0, 1), (8, 2), (9, 11), (19, 1), (3, 0)]:
        part = vrp_dataset(dataset(variant, 7, count, first=SHARD - 9 + start))
        assert same(part, whole[start : start + count])


@pytest.mark.parametrize("variant", SWITCHES)
def test_variants_share_ground_and_have_what_their_name_says(variant: str) -> None:
    on = SWITCHES[variant]
    found, ground = vrp_dataset(dataset(variant)), cvrp_dataset(Dataset(problem="cvrp", n=50, count=40))
    np.testing.assert_array_equal(found.coords, ground.coords)
    np.testing.assert_array_equal(abs(found.demand), ground.demand)
    np.testing.assert_array_equal((found.demand < 0).sum(1), 10 if on.backhaul else 0)
    assert found.switches == on
    assert found.capacity.tolist() == [40] * 40
    if on.limit:
        assert found.limit.tolist() == [3.0] * 40
    if on.windows:
        np.testing.assert_array_equal(found.service[:, 1:], np.float32(0.2))
        assert found.windows[:, 0].tolist() == [[0.0, 3.0]] * 40
        assert found.windows.dtype == found.service.dtype == np.float32


@pytest.mark.parametrize("shift", [0, 3])
def test_an_instance_that_cannot_be_served_in_time_is_drawn_anew_alone(shift: int, monkeypatch) -> None:
    """With a day so short that it happens often."""
    usual = vrp_dataset(dataset("VRPTW", 5, 30))
    monkeypatch.setattr(vrp_stream, "HORIZON", 2.0)
    found = vrp_dataset(dataset("VRPTW", 5, 30))
    out = np.linalg.norm(found.coords.astype(float) - found.coords[:, :1], axis=-1)[:, 1:]
    assert (np.maximum(out, found.windows[:, 1:, 0]) + 0.2 + out <= 2 + 1e-5).all()
    redrawn = (found.coords != usual.coords).any((1, 2))
    assert 0 < redrawn.sum() < 30
    np.testing.assert_array_equal((found.demand != usual.demand).any(1), redrawn)
    far = np.linalg.norm(usual.coords.astype(float) - usual.coords[:, :1], axis=-1).max(1)
    assert redrawn[2 * far + 0.2 > 2 + 1e-4].all()
    assert same(vrp_dataset(dataset("VRPTW", 5, 4, first=shift)), found[shift : shift + 4])


def test_capacities() -> None:
    assert [cvrp_capacity(n, VRP_CAPACITIES) for n in (20, 50, 99, 100, 200)] == [30, 40, 40, 50, 70]
    assert vrp_dataset(dataset("OVRP", capacity=33)).capacity.tolist() == [33] * 40


def test_specs() -> None:
    spec = dataset("OVRPB", 10, 3)
    assert (spec.id, spec.nodes) == ("vrp_OVRPB_uniform_test_n10_c3", 11)
    assert "variant" not in Dataset(n=5, count=1).canonical()
    assert Dataset.model_validate_json(spec.canonical()) == spec
    for wrong in ({"problem": "vrp"}, {"variant": "VRPB"}, {"problem": "cvrp", "variant": "CVRP"}):
        with pytest.raises(ValidationError, match="variant"):
            Dataset(n=5, count=1, **wrong)
    with pytest.raises(NeurouteError, match="is VRPB or"):
        dataset("VRPBB")


def test_other_distributions_are_refused() -> None:
    with pytest.raises(NeurouteError, match="no VRP stream 'cluster'"):
        vrp_dataset(dataset("CVRP", distribution="cluster"))


@pytest.mark.parametrize("variant", SWITCHES)
def test_the_kind_accepts_nearest_neighbours_and_nothing_broken(variant: str) -> None:
    from neuroute.solvers.nearest import vrp_solutions

    batch = vrp_dataset(dataset(variant, 20, 6))
    solutions = vrp_solutions(batch)
    assert VRP.valid(batch, solutions).all()
    np.testing.assert_array_equal(VRP.simple_lengths(batch), VRP.lengths(batch, solutions))
    stored = VRP.canonical(solutions).astype(VRP.dtype(20))
    assert VRP.valid(batch, stored).all()
    np.testing.assert_allclose(VRP.lengths(batch, stored), VRP.lengths(batch, solutions), rtol=1e-12)
    one_route = solutions.copy()
    one_route[:, 1, 1:] = 0
    assert not VRP.valid(batch, one_route).all()
