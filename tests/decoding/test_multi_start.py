"""Many starts at once: against a plain loop, valid tours, the best of them, symmetric images, chunks."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import Tensor

from neuroute.decoding.multi_start import BYTES, augment8, multi_start, roll_out, tour_lengths
from neuroute.errors import NeurouteError
from neuroute.networks.pomo import Pomo
from neuroute.problems.tsp import tour_length


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def net() -> Pomo:
    torch.manual_seed(0)
    return Pomo(depth=2, width=24, heads=3, feed_forward=40).double().eval()


def instances(count: int = 4, n: int = 11) -> Tensor:
    return torch.rand(count, n, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(5))


@torch.no_grad()
def one_tour(net: Pomo, coords: Tensor, start: int) -> list[int]:
    """A greedy tour of one instance, one decision after the other, the last one included."""
    prepared = net.prepare(net.encode(coords[None]))
    tour = [start]
    while len(tour) < len(coords):
        closed = torch.zeros(1, 1, len(coords), dtype=coords.dtype)
        closed[..., tour] = -torch.inf
        logits = net.decide(prepared, torch.tensor([[start]]), torch.tensor([[tour[-1]]]), closed)
        tour.append(int(logits[0, 0].argmax()))
    return tour


def test_equals_a_plain_loop(net: Pomo) -> None:
    coords = instances()
    by_hand = torch.tensor([[one_tour(net, one, start) for start in range(11)] for one in coords])
    with torch.inference_mode():
        found = roll_out(net, net.prepare(net.encode(coords)), torch.arange(11).expand(4, -1))
    assert torch.equal(found, by_hand)
    assert torch.equal(found[..., 0], torch.arange(11).expand(4, -1))
    lengths = tour_length(coords[:, None].numpy(), by_hand.numpy())
    np.testing.assert_allclose(tour_lengths(coords, by_hand).numpy(), lengths, rtol=1e-12)
    best = by_hand[torch.arange(4), torch.from_numpy(lengths.argmin(1))]
    assert torch.equal(multi_start(net, coords), best)
    assert torch.equal(multi_start(net, coords, 1), by_hand[:, 0])
    three = by_hand[torch.arange(4), torch.from_numpy(lengths[:, :3].argmin(1))]
    assert torch.equal(multi_start(net, coords, 3), three)


@pytest.mark.parametrize("n", [2, 3, 4, 30])
def test_tours_are_tours(net: Pomo, n: int) -> None:
    tours = multi_start(net, instances(3, n), augment=True)
    assert tours.dtype == torch.int64
    assert torch.equal(tours.sort(1).values, torch.arange(n).expand(3, n))


@pytest.mark.parametrize("augment", [False, True])
@pytest.mark.parametrize("tours", [1, 7, 40, 100])
def test_how_many_at_a_time_changes_nothing(net: Pomo, tours: int, augment: bool) -> None:
    coords = instances(5)
    all_at_once = multi_start(net, coords, augment=augment)
    assert torch.equal(multi_start(net, coords, augment=augment, memory_gb=tours * BYTES * 11 / 1e9), all_at_once)


def test_images_of_the_square() -> None:
    """Eight different isometries of the square onto itself, the identity first."""
    corners = torch.tensor([[0.0, 0], [1, 0], [1, 1], [0, 1]], dtype=torch.float64)
    images = augment8(corners)
    assert torch.equal(images[0], corners)
    assert len({tuple(image.flatten().tolist()) for image in images}) == 8
    assert all({tuple(p) for p in image.tolist()} == {tuple(p) for p in corners.tolist()} for image in images)
    points = instances()
    assert augment8(points).shape == (8, 4, 11, 2)
    for image in augment8(points):
        torch.testing.assert_close(torch.cdist(image, image), torch.cdist(points, points))


def test_an_image_has_the_same_images() -> None:
    points = instances(1, 6)
    expected = augment8(points).flatten(1).round(decimals=9)
    for image in augment8(points):
        found = augment8(image).flatten(1).round(decimals=9)
        assert {tuple(a.tolist()) for a in found + 0.0} == {tuple(a.tolist()) for a in expected + 0.0}


def test_with_images_the_best_length_is_the_same_of_every_image_and_never_longer(net: Pomo) -> None:
    coords = instances()

    def length(points: Tensor, augment: bool) -> np.ndarray:
        return tour_length(points.numpy(), multi_start(net, points, augment=augment).numpy())

    with_images = length(coords, True)
    assert (with_images <= length(coords, False) + 1e-12).all()
    assert (with_images < length(coords, False) - 1e-6).any()
    for image in augment8(coords):
        np.testing.assert_allclose(length(image, True), with_images, rtol=1e-9)


def test_bad_starts(net: Pomo) -> None:
    for starts in (0, 12):
        with pytest.raises(NeurouteError, match="give from 1 to 11"):
            multi_start(net, instances(), starts)
