"""Instance streams: the same bits for an instance however it is reached; distributions; the 16 VRPs as papers draw."""

import hashlib
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from neuroute.core.errors import NeurouteError
from neuroute.datasets import streams
from neuroute.datasets.problem_specs import VRP
from neuroute.datasets.streams import (
    CAPACITIES,
    DISTRIBUTIONS,
    VRP_CAPACITIES,
    coordinates,
    cvrp_capacity,
    cvrp_dataset,
    dataset_coordinates,
    vrp_dataset,
)
from neuroute.problems.tsp import tour_length
from neuroute.problems.vrp import SWITCHES, Vrp
from neuroute.specs.objects import SHARD, Dataset

GOLDEN = [
    (("uniform", "train", 5, 0, 100), "37f407a8e6d9acb5"),
    (("uniform", "test", 100, 9990, 20), "cace6a3e07dd39e6"),
    (("uniform", "val", 1000, 123456, 2), "c112dfc606ea9761"),
    (("cluster", "test", 100, 0, 50), "8426a9e91a59d735"),
    (("explosion", "test", 100, 0, 50), "9e96b907aa75fc53"),
    (("implosion", "test", 100, 0, 50), "a89359cad3eefe99"),
]


@pytest.mark.parametrize(("stream", "digest"), GOLDEN)
def test_streams_never_change(stream, digest):
    # Labels that are already made belong to these bits.
    assert hashlib.sha256(coordinates(*stream).tobytes()).hexdigest()[:16] == digest


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("n", [4, 7])
def test_any_part_of_a_stream_equals_that_part_of_the_whole(distribution, n):
    first = SHARD - 9
    whole = coordinates(distribution, "train", n, first, 20)
    assert whole.shape == (20, n, 2)
    assert whole.dtype == np.float32
    for start, count in [(0, 1), (0, 9), (1, 4), (8, 2), (9, 11), (13, 5), (19, 1), (3, 0)]:
        part = coordinates(distribution, "train", n, first + start, count)
        np.testing.assert_array_equal(part, whole[start : start + count])


def test_a_data_set_is_its_part_of_the_stream():
    data = Dataset(distribution="explosion", split="val", n=6, count=5, first=3)
    np.testing.assert_array_equal(dataset_coordinates(data), coordinates("explosion", "val", 6, 3, 5))


def test_a_stated_capacity_changes_no_customer_and_no_demand():
    ruled = Dataset(problem="cvrp", n=100, count=4, first=SHARD - 2)
    stated = ruled.model_copy(update={"capacity": 333})
    with_rule, with_capacity = cvrp_dataset(ruled), cvrp_dataset(stated)
    np.testing.assert_array_equal(with_capacity.coords, with_rule.coords)
    np.testing.assert_array_equal(with_capacity.demand, with_rule.demand)
    assert with_rule.capacity.tolist() == [50] * 4
    assert with_capacity.capacity.tolist() == [333] * 4
    assert ruled.id != stated.id  # labels of the one are not those of the other
    assert stated.stem == "cvrp_uniform_test_n100_q333"


def test_capacities_by_size_are_those_of_the_papers():
    # Kool et al. (2019), LEHD (Luo et al., 2023), sit: "250 for CVRP1K, 500 for CVRP5K, 1,000 for CVRP10K, and 2,000
    # for CVRP50K/100K" (Section 5)
    sizes = {10: 20, 20: 30, 50: 40, 100: 50, 200: 80, 500: 100, 1000: 250, 5000: 500}
    sizes |= {10_000: 1000, 50_000: 2000, 100_000: 2000}
    assert {n: cvrp_capacity(n) for n in sizes} == sizes
    assert [cvrp_capacity(n) for n in (999, 4999, 9999, 49_999)] == [100, 250, 500, 1000]
    assert min(CAPACITIES.values()) >= 9  # the largest demand


def test_shared_labels_belong_to_the_streams(shared):
    """Those of the test set: `test_labels`."""
    for shard in range(1, 8):
        tours = np.load(shared / "labels" / f"tsp_uniform_train_n100_s{shard}_lkh.npy")[:200]
        mean = tour_length(coordinates("uniform", "train", 100, shard * SHARD, 200), tours).mean()
        assert mean == pytest.approx(7.766, abs=0.07)


@pytest.mark.parametrize("kind", ["centred", "half-centred"])
def test_customers_around_centres(kind: Any) -> None:
    """ELG's training instances: any range is the same, the square holds all, and nodes are nearer than uniform ones."""
    many = Dataset(problem="cvrp", distribution=kind, n=60, count=40, first=SHARD - 20)
    whole, alone = cvrp_dataset(many), cvrp_dataset(many.model_copy(update={"first": SHARD + 3, "count": 2}))
    assert np.array_equal(whole.coords[23:25], alone.coords)
    assert np.array_equal(whole.demand[23:25], alone.demand)
    assert whole.coords.shape == (40, 61, 2)
    assert whole.coords.min() >= 0
    assert whole.coords.max() <= 1
    assert (whole.demand[:, 0] == 0).all()
    uniform = cvrp_dataset(many.model_copy(update={"distribution": "uniform"}))
    assert nearest(whole.coords) < 0.9 * nearest(uniform.coords)


def test_a_depot_may_be_anywhere_in_a_cluster() -> None:
    """Clusters are parts in the order of nodes; whichever of them is the depot changes places with the first."""
    coords = cvrp_dataset(Dataset(problem="cvrp", distribution="centred", n=59, count=200)).coords
    middles = coords[:, 1:20].mean(axis=1)
    near = np.linalg.norm(coords[:, 0] - middles, axis=1) < 0.15
    assert 40 < near.sum() < 140  # a third, and those whose clusters overlap


def nearest(coords: np.ndarray) -> float:
    apart = np.linalg.norm(coords[:, :, None] - coords[:, None], axis=-1)
    return float(np.where(apart > 0, apart, 9).min(axis=2).mean())


# -- of the 16 vehicle routing problems ------------------------------------------------------------------------------


FIELDS = ("coords", "demand", "capacity", "limit", "windows", "service")


def dataset(variant: str, n: int = 50, count: int = 40, **more) -> Dataset:
    return Dataset(problem="vrp", variant=variant, n=n, count=count, **more)


def same(a: Vrp, b: Vrp) -> bool:
    pairs = [(getattr(a, field), getattr(b, field)) for field in FIELDS]
    return a.open == b.open and all((x is None and y is None) or np.array_equal(x, y) for x, y in pairs)


def test_streams_of_vrps_never_change() -> None:
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
    monkeypatch.setattr(streams, "HORIZON", 2.0)
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


def test_specs_of_vrps() -> None:
    spec = dataset("OVRPB", 10, 3)
    assert (spec.id, spec.nodes) == ("vrp_OVRPB_uniform_test_n10_c3", 11)
    assert "variant" not in Dataset(n=5, count=1).canonical()
    assert Dataset.model_validate_json(spec.canonical()) == spec
    for wrong in ({"problem": "vrp"}, {"variant": "VRPB"}, {"problem": "cvrp", "variant": "CVRP"}):
        with pytest.raises(ValidationError, match="variant"):
            Dataset(n=5, count=1, **wrong)
    with pytest.raises(NeurouteError, match="is VRPB or"):
        dataset("VRPBB")


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
