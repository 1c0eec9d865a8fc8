"""H-TSP's tours: paths between given ends, growth by plain loops, small and coincident instances, batches."""

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.datasets.problem_spec import SPEC
from neuroute.decoding.decode import decode
from neuroute.decoding.environment import choose_best
from neuroute.networks.pomo import Pomo
from neuroute.problems.tsp import is_permutation
from neuroute.specs.objects import Dataset, Decoding
from neuroute_systems.htsp.decoding import PATHS, Episode, PathBatch, Tours, fit_to_square, grow, solve_paths
from neuroute_systems.htsp.network import Htsp

pytestmark = pytest.mark.usefixtures("one_thread")

OWN = Decoding(method=Htsp.own_method)
SHAPE: dict[str, Any] = {"depth": 1, "width": 16, "heads": 2, "feed_forward": 24, "cells": 6, "channels": [4, 4]}
SHAPE |= {"upper_width": 16, "critic_width": 16}


def make(fragment: int = 8, added: int = 5, neighbours: int = 4) -> Htsp:
    torch.manual_seed(0)
    return Htsp(**SHAPE, fragment=fragment, added=added, neighbours=neighbours).double().eval()


def instances(n: int, count: int = 4) -> np.ndarray:
    coords: np.ndarray = SPEC.of("tsp").instances(Dataset(split="test", n=n, count=count)).astype(np.float64)
    return coords


# -- paths ------------------------------------------------------------------------------------------------------------


def test_one_end_follows_the_other() -> None:
    """Whatever decisions say, from wherever tours start."""
    batch = PathBatch(torch.rand(3, 7, 2))
    rollout = batch.rollout(batch.start_nodes(7), torch.float32)
    generator = torch.Generator().manual_seed(0)
    while not rollout.done():
        rollout.step(choose_best(rollout.action_mask + torch.rand(3, 7, 7, generator=generator)))
        rollout.select(torch.arange(7).expand(3, -1))  # the same once more
    tours = rollout.solutions()
    assert torch.equal(tours.sort(dim=2).values, torch.arange(7).expand(3, 7, 7))
    apart = ((tours == 6).int().argmax(dim=2) - (tours == 0).int().argmax(dim=2)) % 7
    assert set(apart.flatten().tolist()) == {1, 6}


def test_paths_are_the_best_of_all_starts_and_images() -> None:
    net, points = make(), torch.rand(5, 8, 2, dtype=torch.float64)
    orders = solve_paths(net, points, 4.0)
    assert torch.equal(orders.sort(dim=1).values, torch.arange(8).expand(5, -1))
    assert (orders[:, 0] == 0).all()
    assert (orders[:, -1] == 7).all()
    alone = solve_paths(net, points, 4.0, augment=False)
    batch = PathBatch(points)
    tours = torch.cat([solve_from(net, batch, start) for start in range(8)], dim=1)
    shortest = batch.lengths(tours).amin(dim=1)
    torch.testing.assert_close(batch.lengths(alone[:, None])[:, 0], shortest)
    assert (batch.lengths(orders[:, None])[:, 0] <= shortest + 1e-12).all()


def solve_from(net: Htsp, batch: PathBatch, start: int) -> Tensor:
    prepared = net.lower.prepare(net.lower.encode(batch.coords))
    rollout = batch.rollout(torch.full((len(batch), 1), start), torch.float64)
    with torch.no_grad():
        while not rollout.done():
            rollout.step(choose_best(net.lower.decide(prepared, rollout.context, rollout.current, rollout.action_mask)))
    return rollout.solutions()


def test_fragments_fill_the_square_but_for_a_margin() -> None:
    points = torch.rand(2, 9, 2, dtype=torch.float64) * torch.tensor([3.0, 1.0]) - 7
    fitted = fit_to_square(points)
    torch.testing.assert_close(fitted.amin(dim=1), torch.full((2, 2), 0.05, dtype=torch.float64))
    torch.testing.assert_close(fitted.amax(dim=(1, 2)), torch.full((2,), 0.95, dtype=torch.float64))
    extent = (points.amax(dim=1) - points.amin(dim=1)).amax(dim=1)
    torch.testing.assert_close(torch.cdist(fitted, fitted), 0.9 / extent[:, None, None] * torch.cdist(points, points))
    assert torch.equal(fit_to_square(torch.ones(1, 3, 2)), torch.full((1, 3, 2), 0.05))


# -- growth -----------------------------------------------------------------------------------------------------------


def found_by_loops(
    points: np.ndarray, visited: set[int], place: np.ndarray, count: int, k: int
) -> tuple[int, list[int]]:
    """The anchor, and the nodes that are found from it."""

    def closest(to: np.ndarray, among: set[int]) -> int:
        return min(among, key=lambda node: float(np.linalg.norm(points[node] - to)))

    left = set(range(len(points))) - visited
    anchor = closest(points[closest(place, left)], visited)
    new, waiting = list[int](), list[int]()
    while len(new) < count:
        if not waiting:
            waiting = [closest(points[anchor], left)]
            new += waiting
            left -= {waiting[0]}
        node = waiting.pop(0)
        near = sorted(range(len(points)), key=lambda other: float(np.linalg.norm(points[other] - points[node])))
        for other in near[: k + 1]:
            if other in left and len(new) < count:
                left -= {other}
                new.append(other)
                waiting.append(other)
    return anchor, new


def test_tours_grow_as_by_plain_loops() -> None:
    """Where fragments lie, which nodes they have, what grows, and what the upper level sees of it."""
    coords, rng = instances(31), np.random.default_rng(0)
    tours = Tours(coords, fragment=10, added=7, neighbours=3)
    sizes = list[int]()
    while not tours.done():
        before = [list(tour) for tour in tours.tours]
        places = rng.random((4, 2))
        fragments = tours.open(places)
        count = len(fragments[0]) - min(len(before[0]), 10 - min(31 - len(before[0]), max(7, 10 - len(before[0]))))
        for points, tour, place, fragment, anchor in zip(coords, before, places, fragments, tours.anchors, strict=True):
            wanted, new = found_by_loops(points, set(tour), place, count, 3)
            assert anchor == wanted
            half = (len(fragment) - count) // 2
            assert list(fragment[half : half + count]) == new
            assert fragment[half + count] == anchor
            turned = tour[tour.index(anchor) :] + tour[: tour.index(anchor)]
            assert list(fragment[half + count :]) == turned[: len(fragment) - count - half]
            assert list(fragment[:half]) == turned[-half:]
        inside = rng.permuted(fragments[:, 1:-1], axis=1)
        grown = tours.close(np.concatenate([fragments[:, :1], inside, fragments[:, -1:]], axis=1))
        lengths = [_length(points[tour]) for points, tour in zip(coords, before, strict=True)]
        after = [_length(points[tour]) for points, tour in zip(coords, tours.tours, strict=True)]
        np.testing.assert_allclose(grown, np.array(after) - lengths, atol=1e-12)
        _check_state(tours, coords, 3)
        sizes.append(tours.tours.shape[1])
    assert sizes == [10, 17, 24, 31]
    for tour in tours.tours:
        assert sorted(tour) == list(range(31))


def _length(stops: np.ndarray) -> float:
    return float(np.linalg.norm(stops - np.roll(stops, 1, axis=0), axis=1).sum())


def _check_state(tours: Tours, coords: np.ndarray, k: int) -> None:
    for points, tour, state in zip(coords, tours.tours.tolist(), tours.state(), strict=True):
        for node, seen in enumerate(state):
            near = sorted(range(len(points)), key=lambda other: float(np.linalg.norm(points[other] - points[node])))
            available = node in tour and not set(near[: k + 1]) <= set(tour)
            beside = [0.0] * 4
            if node in tour:
                at = tour.index(node)
                beside = [*points[tour[at - 1]], *points[tour[(at + 1) % len(tour)]]]
            np.testing.assert_allclose(seen, [*points[node], node in tour, available, *beside])


@pytest.mark.parametrize("n", [2, 3, 4, 7, 8, 9, 13, 40])
def test_every_size_has_tours(n: int) -> None:
    """With fewer nodes than a fragment, than neighbours, or than what joins at a time."""
    coords = instances(max(n, 4))[:, :n]
    tours = decode("tsp", make(), coords, OWN).numpy()
    assert tours.shape[1] == n
    assert is_permutation(tours).all()


@pytest.mark.parametrize("points", [[[0.5, 0.5]] * 20, [[0.1, 0.2]] * 12 + [[0.9, 0.8]] * 8])
def test_nodes_at_one_place(points: list[list[float]]) -> None:
    """More of them than neighbours: what is found from node to node ends, and begins anew."""
    assert is_permutation(decode("tsp", make(), np.array([points, points[::-1]]), OWN).numpy()).all()


def test_instances_grow_together_as_alone() -> None:
    net, coords = make(), instances(33, 6)
    together = decode("tsp", net, coords, OWN)
    alone = [decode("tsp", net, coords[i : i + 1], OWN) for i in range(6)]
    assert torch.equal(together, torch.cat(alone))
    split = decode("tsp", net, coords, OWN.model_copy(update={"batch_size": 4}))
    assert torch.equal(together, split)


def test_a_place_decides() -> None:
    """Tours grow elsewhere where the upper level says so."""
    net, coords = make(), torch.from_numpy(instances(33, 2))
    found = []
    for corner in itertools.product((-9.0, 9.0), repeat=2):
        episode = Episode(net, coords, 4.0)
        episode.grow(torch.zeros(2, 2, dtype=torch.float64))
        episode.grow(torch.tensor([corner, corner], dtype=torch.float64))
        found.append(set(episode.tours.tours[0].tolist()))
    assert len({frozenset(each) for each in found}) == 4


def test_other_networks_do_not_grow_tours() -> None:
    with pytest.raises(NeurouteError, match="method 'grow' is for Htsp, not for Pomo"):
        grow(Pomo(1, 16, 2, 24), PATHS.batch(instances(9), torch.device("cpu")), OWN, 4.0, 0)  # type: ignore[arg-type]
