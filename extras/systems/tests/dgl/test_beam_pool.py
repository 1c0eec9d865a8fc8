"""Training on a pool: what is in it, what is kept of a search, what is imitated, and refusals."""

import dataclasses
import math
from itertools import permutations

import numpy as np
import pytest
import torch
from refusals import one_line

from neuroute.core.errors import NeurouteError
from neuroute.datasets.problem_spec import spec_of
from neuroute.decoding.tsp import tour_lengths
from neuroute.networks.lehd import Lehd
from neuroute.networks.pomo import Pomo
from neuroute.solvers import nearest
from neuroute.specs.objects import Dataset
from neuroute.training.batches import World
from neuroute_systems.dgl.system import BeamPool
from neuroute_systems.dgl.training import PoolBatches, beam_pool, log_of_first
from tiny import N, pooled, scheme_of

pytestmark = pytest.mark.usefixtures("one_thread")


def batches_of(**training: object) -> PoolBatches:
    return beam_pool(scheme_of(pooled(**training)))


def stream(batches: PoolBatches, first: int, count: int) -> torch.Tensor:
    dataset = Dataset(split="train", n=N, first=first, count=count)
    return torch.from_numpy(spec_of(batches.run.validation).instances(dataset))


def renew(batches: PoolBatches, loop: int) -> None:
    batches._renew(loop, torch.Generator().manual_seed(loop))


def test_instances_drawn_at_random_are_replaced_in_every_loop() -> None:
    """Of 8 instances 3 a loop: the next ones of the stream, in any places, which some keep for long."""
    batches, ages, oldest = batches_of(renewed=3, epochs=4, validations=1), np.zeros(8, dtype=int), 0
    before = stream(batches, 0, 8)
    for loop in range(12):
        renew(batches, loop)
        new = stream(batches, 8 + 3 * loop, 3)
        at = [int((batches.coords == each).all(dim=2).all(dim=1).nonzero()) for each in new]
        assert batches.lengths[at].isinf().all()
        others = [place for place in range(8) if place not in at]
        assert torch.equal(batches.coords[others], before[others])
        ages += 1
        ages[at] = 0
        oldest, before = max(oldest, int(ages.max())), batches.coords
    assert oldest > 3  # each would be replaced before if it were the oldest's turn


def test_a_pool_begins_with_nearest_neighbour() -> None:
    batches = batches_of(renewed=0)
    renew(batches, 0)
    for coords, tour in zip(batches.coords.numpy(), batches.tours.numpy(), strict=True):
        np.testing.assert_array_equal(tour, nearest.solve(coords, 0))
    assert torch.equal(batches.lengths, tour_lengths(batches.coords, batches.tours[:, None])[:, 0])


def test_tours_become_no_longer_and_lengths_are_theirs() -> None:
    batches = batches_of(renewed=0)
    before = None
    for loop in range(3):
        loss, updates = batches.train(loop)
        assert updates == N - 1
        assert loss > 0
        assert torch.equal(batches.tours.sort(dim=1).values, torch.arange(N).expand(8, N))
        torch.testing.assert_close(batches.lengths, tour_lengths(batches.coords, batches.tours[:, None])[:, 0])
        assert before is None or (batches.lengths <= before + 1e-12).all()
        before = batches.lengths


def test_wide_beams_from_all_starts_find_the_optimum_of_five_nodes() -> None:
    """24 tours from a start: a beam that wide holds them all, whatever the network says."""
    batches = batches_of()
    batches.run = batches.run.model_copy(update={"n": 5})
    batches.training = batches.training.model_copy(update={"beam": 24})
    renew(batches, 0)
    batches._search([2])
    every = torch.tensor([[0, *rest] for rest in permutations(range(1, 5))])
    torch.testing.assert_close(batches.lengths, tour_lengths(batches.coords, every.expand(8, -1, -1)).min(1).values)


def test_images_are_rotated_and_half_of_them_reflected() -> None:
    """Distances stay; the first instance stays as it is."""
    batches = batches_of(pool=64, renewed=0)
    renew(batches, 0)
    stops = batches.coords.gather(1, batches.tours[..., None].expand(-1, -1, 2))
    images = batches._images(torch.Generator().manual_seed(0))
    assert torch.equal(images[0], stops[0])
    torch.testing.assert_close(torch.cdist(images, images), torch.cdist(stops, stops), rtol=1e-5, atol=1e-5)

    def sides(x: torch.Tensor) -> torch.Tensor:
        (a, b), (c, d) = (x[:, 1] - x[:, 0]).unbind(-1), (x[:, 2] - x[:, 0]).unbind(-1)
        return torch.sign(a * d - b * c)

    reflected = sides(images) != sides(stops)
    assert 0 < reflected.sum() < 64
    assert not torch.allclose(images[1:], stops[1:], atol=1e-2)


def test_an_update_is_that_of_one_decision() -> None:
    """The first one, against Adam's own step on the mean of the first decision's losses."""
    batches = batches_of()
    renew(batches, 0)
    net = batches.net
    stops = batches.coords.gather(1, batches.tours[..., None].expand(-1, -1, 2))
    rows = net.encode(stops)
    rows = torch.cat([rows, rows[:, :1]], dim=1)
    net.arrive(rows)
    chances = torch.softmax(net.decide(rows).double(), dim=1)[:, 0]
    wanted = torch.autograd.grad(-(chances + 1e-7 * (chances <= 1e-5)).log().mean(), list(net.parameters()))
    found = []
    step = batches.optimizer.step
    batches.optimizer.step = lambda: (found.append([p.grad.clone() for p in net.parameters()]), step())[1]  # type: ignore[method-assign, assignment, union-attr, func-returns-value]
    _, updates = batches._imitate(stops, 0)
    assert len(found) == updates == N - 1
    for a, b in zip(found[0], wanted, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)
    assert not any(g.any() for g in found[-1])  # one stop is left


def test_what_is_closed_has_no_gradient() -> None:
    logits = torch.tensor([[-torch.inf, 1.0, 2.0], [0.0, 1.0, 2.0]], requires_grad=True)
    log_of_first(logits).sum().backward()
    assert not logits.grad[0].any()
    assert logits.grad[1].all()
    assert float(log_of_first(logits.detach())[0]) == pytest.approx(math.log(1e-20))
    unlikely = torch.tensor([[-40.0, 0.0]])
    assert float(log_of_first(unlikely)[0]) == pytest.approx(math.log(1e-7 + math.exp(-40)))


def test_the_rate_falls_every_so_many_epochs() -> None:
    batches = batches_of(epochs=5, decay_every=2, decay_gamma=0.5, validations=1)
    rates = [batches.learning_rate(3 * epoch + 2) / 2e-3 for epoch in range(5)]
    assert rates == [1, 1, 0.5, 0.5, 0.25]


def test_the_published_defaults_are_a_million_updates() -> None:
    spec = BeamPool()
    assert (spec.batches, spec.samples, spec.renewed / spec.pool) == (10_000, 25_600, 0.125)


def test_refusals() -> None:
    for run, more, message in (
        (pooled(starts=N + 1), {}, f"{N + 1} starts of instances of {N} nodes"),
        (pooled(), {"world": World(0, 9)}, "a pool of 8 instances for 9 processes"),
        (pooled(), {"net": Pomo(1, 8, 2, 8)}, "builds one path"),
    ):
        with one_line(message):
            beam_pool(scheme_of(run, **more))
    with pytest.raises(ValueError, match="renewed: 9 of a pool of 8"):
        pooled(renewed=9)
    learnt = beam_pool(dataclasses.replace(scheme_of(pooled(), net=Lehd(1, 16, 2, 24))))
    with pytest.raises(NeurouteError, match="Lehd trains its encoder"):
        learnt.train(0)
