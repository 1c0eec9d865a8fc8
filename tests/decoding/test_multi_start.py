"""Many starts at once: against a plain loop, valid tours, the best of them, symmetric images, chunks."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.decoding.environment import BYTES
from neuroute.decoding.multi_start import augment8, multi_start, roll_out
from neuroute.decoding.recompute import RecordedChoices, recompute
from neuroute.decoding.tsp import TSP, TspBatch, TspRollout, tour_lengths
from neuroute.networks.icam import Icam
from neuroute.networks.pomo import Pomo
from neuroute.problems.tsp import canonical, tour_length

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(params=[Pomo, Icam])
def net(request: pytest.FixtureRequest) -> Any:
    torch.manual_seed(0)
    shape = {"heads": 3} if request.param is Pomo else {}
    return request.param(depth=2, width=24, feed_forward=40, **shape).double().eval()


def instances(count: int = 4, n: int = 11) -> Tensor:
    return torch.rand(count, n, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(5))


def same_tours(one: Tensor, other: Tensor) -> bool:
    """From whichever node on: two starts of one tour are equally long, but for rounding, which decides."""
    return np.array_equal(canonical(one.numpy()), canonical(other.numpy()))


@torch.no_grad()
def one_tour(net: Any, coords: Tensor, start: int) -> list[int]:
    """A greedy tour of one instance, one decision after the other, the last one included."""
    prepared = net.prepare(net.encode(coords[None]))
    tour = [start]
    while len(tour) < len(coords):
        closed = torch.zeros(1, 1, len(coords), dtype=coords.dtype)
        closed[..., tour] = -torch.inf
        logits = net.decide(prepared, torch.tensor([[start]]), torch.tensor([[tour[-1]]]), closed)
        tour.append(int(logits[0, 0].argmax()))
    return tour


def test_equals_a_plain_loop(net: Any) -> None:
    coords = instances()
    by_hand = torch.tensor([[one_tour(net, one, start) for start in range(11)] for one in coords])
    with torch.inference_mode():
        found = roll_out(net, net.prepare(net.encode(coords)), TspBatch(coords), torch.arange(11).expand(4, -1))
    assert torch.equal(found, by_hand)
    assert torch.equal(found[..., 0], torch.arange(11).expand(4, -1))
    lengths = tour_length(coords[:, None].numpy(), by_hand.numpy())
    np.testing.assert_allclose(tour_lengths(coords, by_hand).numpy(), lengths, rtol=1e-12)
    assert same_tours(multi_start(TSP, net, coords), by_hand[torch.arange(4), torch.from_numpy(lengths.argmin(1))])
    assert torch.equal(multi_start(TSP, net, coords, 1), by_hand[:, 0])
    three = by_hand[torch.arange(4), torch.from_numpy(lengths[:, :3].argmin(1))]
    assert same_tours(multi_start(TSP, net, coords, 3), three)


@pytest.mark.parametrize("n", [2, 3, 4, 30])
def test_tours_are_tours(net: Any, n: int) -> None:
    tours = multi_start(TSP, net, instances(3, n), augment=True)
    assert tours.dtype == torch.int64
    assert torch.equal(tours.sort(1).values, torch.arange(n).expand(3, n))


@pytest.mark.parametrize("augment", [False, True])
@pytest.mark.parametrize("tours", [1, 7, 40, 100])
def test_how_many_at_a_time_changes_nothing(
    net: Any, tours: int, augment: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of what the encoder takes there would be too little.
    monkeypatch.setattr("neuroute.decoding.environment.batch_size_for", lambda *_: 10)
    coords = instances(5)
    all_at_once = multi_start(TSP, net, coords, augment=augment)
    assert same_tours(multi_start(TSP, net, coords, augment=augment, memory_gb=tours * BYTES * 11 / 1e9), all_at_once)


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


def test_with_images_the_best_length_is_the_same_of_every_image_and_never_longer(net: Any) -> None:
    coords = instances()

    def length(points: Tensor, augment: bool) -> np.ndarray:
        return tour_length(points.numpy(), multi_start(TSP, net, points, augment=augment).numpy())

    with_images = length(coords, True)
    assert (with_images <= length(coords, False) + 1e-12).all()
    assert (with_images < length(coords, False) - 1e-6).any()
    for image in augment8(coords):
        np.testing.assert_allclose(length(image, True), with_images, rtol=1e-9)


def test_bad_starts(net: Any) -> None:
    for starts in (0, 12):
        with pytest.raises(NeurouteError, match="give from 1 to 11"):
            multi_start(TSP, net, instances(), starts)


def test_what_the_encoder_needs_counts(net: Any) -> None:
    """One start of an instance takes little memory, its encoder no less than with many."""
    with pytest.raises(NeurouteError, match="an instance of 11 nodes needs about"):
        multi_start(TSP, net, instances(), 1, memory_gb=1e-6)
    assert TSP.batch_sizes(net, 1000, 1, 1, 4.0)[1] <= 4e9 / (64 * 24 * 1000)
    assert TSP.batch_sizes(net, 1000, 8, 8, 4.0)[1] <= 4e9 / (64 * 24 * 1000) / 8
    assert TSP.batch_sizes(net, 1000, 1000, 1, 1.0) == (20833, 8)


def test_no_instances(net: Any) -> None:
    assert multi_start(TSP, net, torch.empty(0, 7, 2, dtype=torch.float64)).shape == (0, 7)


def test_logits_of_every_decision_pass_through_choose(net: Any) -> None:
    """Closed are the stops before, and a tour does not change what another sees."""
    coords, seen = instances(2, 6), []

    def last(logits: Tensor) -> Tensor:
        seen.append(logits)
        return 5 - (logits > -torch.inf).flip(-1).int().argmax(-1)

    with torch.no_grad():
        tours = roll_out(net, net.prepare(net.encode(coords)), TspBatch(coords), torch.arange(6).expand(2, -1), last)
    assert tours[0].tolist() == [[start, *(j for j in range(5, -1, -1) if j != start)] for start in range(6)]
    for place, logits in enumerate(seen):
        closed = torch.zeros(2, 6, 6, dtype=torch.bool).scatter(2, tours[..., : place + 1], True)
        assert torch.equal(logits == -torch.inf, closed)


@pytest.mark.parametrize("moves", [1, 2, 100])
def test_a_replay_has_the_gradients_of_the_roll_out(net: Any, moves: int) -> None:
    coords, weight = instances(2, 7), torch.randn(2, 7, dtype=torch.float64)
    starts = torch.arange(7).expand(2, -1)

    def log_p(logits: Tensor, chosen: Tensor) -> Tensor:
        return logits.log_softmax(-1).gather(2, chosen[..., None])[..., 0]

    torch.manual_seed(3)
    in_one: list[Tensor] = []

    def sample(logits: Tensor) -> Tensor:
        chosen = torch.distributions.Categorical(logits=logits).sample()
        in_one.append(log_p(logits, chosen))
        return chosen

    record = RecordedChoices(sample)
    tours = roll_out(net, net.prepare(net.encode(coords)), TspBatch(coords), starts, record)
    (torch.stack(in_one).sum(0) * weight).sum().backward()
    expected = {name: p.grad.clone() for name, p in net.named_parameters()}
    net.zero_grad()

    again = RecordedChoices(lambda logits: record.stops[len(again.stops)])
    with torch.no_grad():
        assert torch.equal(roll_out(net, net.prepare(net.encode(coords)), TspBatch(coords), starts, again), tours)
    prepared = net.prepare(net.encode(coords))
    under_way = TspRollout(starts, 7, torch.float64)
    for part in recompute(under_way, again.stops, moves):
        found = log_p(net.decide(prepared, part.context, part.current, part.mask), part.chosen)
        (found.view(2, -1, 7).sum(1) * weight).sum().backward(retain_graph=True)
    assert torch.equal(under_way.solutions(), tours)
    for name, p in net.named_parameters():
        torch.testing.assert_close(p.grad, expected[name], rtol=1e-9, atol=1e-9)
