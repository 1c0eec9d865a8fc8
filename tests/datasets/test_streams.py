"""Instance streams: the same bits for an instance however it is reached; distributions; the 16 VRPs as papers draw."""

import hashlib
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from neuroute.core.errors import NeurouteError
from neuroute.datasets import streams
from neuroute.datasets.problem_spec import SPEC
from neuroute.datasets.problem_specs import VRP
from neuroute.datasets.streams import (
    CAPACITIES,
    DISTRIBUTIONS,
    VRP_CAPACITIES,
    coordinates,
    cvrp_capacity,
    cvrp_dataset,
    vrp_dataset,
)
from neuroute.problems.tsp import tour_length
from neuroute.problems.vrp import SWITCHES
from neuroute.specs.objects import SHARD, Dataset

GOLDEN = [
    (Dataset(split="train", n=5, count=100), "37f407a8e6d9acb5"),
    (Dataset(n=100, count=20, first=9990), "cace6a3e07dd39e6"),
    (Dataset(split="val", n=1000, count=2, first=123456), "c112dfc606ea9761"),
    (Dataset(distribution="cluster", n=100, count=50), "8426a9e91a59d735"),
    (Dataset(distribution="explosion", n=100, count=50), "9e96b907aa75fc53"),
    (Dataset(distribution="implosion", n=100, count=50), "a89359cad3eefe99"),
    (Dataset(problem="cvrp", n=12, count=1), "0b93e83d04f7fecf"),
    (Dataset(problem="vrp", variant="OVRPBLTW", n=50, count=40, first=SHARD - 20), "ece0262dfeaad4ee"),
]


def arrays_of(data: Dataset, **change: Any) -> tuple[np.ndarray, ...]:
    spec = SPEC.of(data.problem)
    return spec.arrays(spec.instances(data.model_copy(update=change)))


@pytest.mark.parametrize(("data", "digest"), GOLDEN)
def test_streams_never_change(data: Dataset, digest: str) -> None:
    # Labels that are already made belong to these bits.
    content = b"".join(np.ascontiguousarray(array).tobytes() for array in arrays_of(data))
    assert hashlib.sha256(content).hexdigest()[:16] == digest


STREAMS: list[dict[str, Any]] = [
    *({"distribution": name, "n": n} for name in DISTRIBUTIONS for n in (4, 7)),
    *({"problem": "cvrp", "distribution": name, "n": 60} for name in ("uniform", "centred", "half-centred")),
    *({"problem": "vrp", "variant": name, "n": 7} for name in SWITCHES),
]


@pytest.mark.parametrize("stream", STREAMS, ids=str)
def test_any_part_of_a_stream_equals_that_part_of_the_whole(stream: dict[str, Any]) -> None:
    data = Dataset(split="train", first=SHARD - 9, count=20, **stream)
    whole = arrays_of(data)
    assert whole[0].shape == (20, data.nodes, 2)
    assert whole[0].dtype == np.float32
    for start, count in [(0, 1), (0, 9), (1, 4), (8, 2), (9, 11), (13, 5), (19, 1), (3, 0)]:
        for part, array in zip(arrays_of(data, first=data.first + start, count=count), whole, strict=True):
            np.testing.assert_array_equal(part, array[start : start + count])


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
    assert [cvrp_capacity(n, VRP_CAPACITIES) for n in (20, 50, 99, 100, 200)] == [30, 40, 40, 50, 70]
    assert vrp_dataset(dataset("OVRP", capacity=33)).capacity.tolist() == [33] * 40


def test_shared_labels_belong_to_the_streams(shared):
    """Those of the test set: `test_labels`."""
    for shard in range(1, 8):
        tours = np.load(shared / "labels" / f"tsp_uniform_train_n100_s{shard}_lkh.npy")[:200]
        mean = tour_length(coordinates("uniform", "train", 100, shard * SHARD, 200), tours).mean()
        assert mean == pytest.approx(7.766, abs=0.07)


@pytest.mark.parametrize("kind", ["centred", "half-centred"])
def test_customers_around_centres(kind: Any) -> None:
    """ELG's training instances: the square holds all, and nodes are nearer than uniform ones."""
    many = Dataset(problem="cvrp", distribution=kind, n=60, count=40, first=SHARD - 20)
    whole = cvrp_dataset(many)
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


def dataset(variant: str, n: int = 50, count: int = 40, **more) -> Dataset:
    return Dataset(problem="vrp", variant=variant, n=n, count=count, **more)


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
    for array, part in zip(VRP.arrays(found), arrays_of(dataset("VRPTW", 5, 4, first=shift)), strict=True):
        np.testing.assert_array_equal(part, array[shift : shift + 4])


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
