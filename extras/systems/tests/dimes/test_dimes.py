"""DIMES: its gradient by enumeration, its steps and what is learnt from them by plain formulas, all in float64."""

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import tiny_systems
from neuroute.core.errors import NeurouteError
from neuroute.evaluation.flops import training_per_sample
from neuroute.specs.objects import Network
from neuroute_systems.dimes.network import Dimes, Instance, instance_of
from neuroute_systems.dimes.sampling import estimate
from neuroute_systems.dimes.training import MetaBatches, meta
from tiny import make_run, scheme_of

pytestmark = pytest.mark.usefixtures("one_thread")


def make(**more: Any) -> Dimes:
    torch.manual_seed(0)
    arguments = {"depth": 2, "width": 8, "neighbours": 4, "inner_rate": 0.05} | more
    return Dimes(**arguments).double()


def coords_of(n: int) -> Tensor:
    return torch.rand(1, n, 2, generator=torch.Generator().manual_seed(7), dtype=torch.float64)


def drawn(net: Dimes, n: int, seed: int = 3) -> tuple[Instance, Tensor]:
    """An instance, and its edges (n, k, W), as they are embedded."""
    coords = coords_of(n)
    neighbours, edges = net.embed(coords)
    return instance_of(coords, neighbours, seed), edges


def same_draws(instance: Instance) -> Instance:
    return instance._replace(random=instance.random.copy())


# -- the gradient -----------------------------------------------------------------------------------------------------


def expected_length(points: np.ndarray, neighbours: np.ndarray, theta: Tensor) -> Tensor:
    """Of a tour from any node, over all tours that may be drawn."""
    n = len(points)
    apart = np.linalg.norm(points[:, None] - points, axis=-1)

    def go_on(start: int, here: int, left: frozenset[int]) -> Tensor:
        if not left:
            return torch.tensor(apart[here, start])
        slots = [slot for slot, node in enumerate(neighbours[here]) if int(node) in left]
        if not slots:
            node = min(left, key=lambda node: apart[here, node])
            return apart[here, node] + go_on(start, node, left - {node})
        total = torch.zeros((), dtype=torch.float64)
        for chance, slot in zip(theta[here, slots].softmax(0), slots, strict=True):
            node = int(neighbours[here, slot])
            total = total + chance * (apart[here, node] + go_on(start, node, left - {node}))
        return total

    return sum((go_on(i, i, frozenset(range(n)) - {i}) for i in range(n)), torch.zeros(())) / n


def test_the_gradient_is_that_of_the_expected_length() -> None:
    """With two neighbours of six nodes many tours run into dead ends, which nothing is learnt from."""
    rng = np.random.default_rng(0)
    points, theta = rng.random((6, 2)), torch.from_numpy(rng.normal(size=(6, 2))).requires_grad_()
    apart = np.linalg.norm(points[:, None] - points, axis=-1)
    neighbours = np.ascontiguousarray(np.argsort(apart, axis=1)[:, 1:3])
    wanted = expected_length(points, neighbours, theta)
    wanted.backward()
    assert theta.grad is not None
    tours, random = 400_000, np.array([5], np.uint64)
    found, lengths = estimate(points, neighbours, theta.detach().numpy(), tours, random)
    assert lengths.mean() == pytest.approx(float(wanted.detach()), abs=6 * lengths.std() / math.sqrt(tours))
    np.testing.assert_allclose(found, theta.grad.numpy(), atol=6 * lengths.std() / math.sqrt(tours))
    assert np.abs(found).max() > 30 * lengths.std() / math.sqrt(tours)


def test_draws_do_not_hang_on_place_turn_or_order() -> None:
    """Longer instances have a longer gradient; numbers of nodes change draws, and no expectation."""
    rng = np.random.default_rng(1)
    points, theta = rng.random((30, 2)), rng.normal(size=(30, 5))
    neighbours = np.ascontiguousarray(np.argsort(np.linalg.norm(points[:, None] - points, axis=-1), axis=1)[:, 1:6])
    gradient, lengths = estimate(points, neighbours, theta, 50, np.array([9], np.uint64))
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    moved, longer = estimate(3 * points @ turn.T + 7, neighbours, theta + 2, 50, np.array([9], np.uint64))
    np.testing.assert_allclose(longer, 3 * lengths, rtol=1e-9)
    np.testing.assert_allclose(moved, 3 * gradient, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(gradient.sum(axis=1), 0, atol=1e-12)  # a softmax only knows differences


def test_theta_is_the_same_for_nodes_in_any_order() -> None:
    net, coords = make(), coords_of(12)
    order = torch.randperm(12, generator=torch.Generator().manual_seed(1))
    found, moved = (np.zeros((12, 12)) for _ in range(2))
    for into, each, names in ((found, coords, torch.arange(12)), (moved, coords[:, order], order)):
        neighbours, theta = (part[0] for part in net.encode(each))
        into[names[:, None], names[neighbours]] = theta.numpy()
    np.testing.assert_allclose(moved, found, rtol=1e-9, atol=1e-9)


# -- steps on an instance ---------------------------------------------------------------------------------------------


def step_by_hand(instance: Instance, edges: Tensor, weights: list[Tensor], tours: int) -> list[Tensor]:
    """Gradients of the edges and of the head's weights, by a head that is written out."""
    x = edges
    for number in range(0, 6, 2):
        x = (x if number == 0 else x * x.sigmoid()) @ weights[number].T + weights[number + 1]
    theta = x[..., 0]
    gradient, _ = estimate(
        instance.points, instance.neighbours, theta.detach().double().numpy(), tours, instance.random
    )
    return list(torch.autograd.grad((theta * torch.from_numpy(gradient)).sum(), [edges, *weights]))


def test_inner_steps_are_those_of_adam_with_decay() -> None:
    net = make()
    instance, edges = drawn(net, 11)
    found_edges, found_head = net.learn(same_draws(instance), edges, 4, 20)
    now = [p.detach().clone().requires_grad_() for p in (edges, *net.head.parameters())]
    first, second = ([torch.zeros_like(p) for p in now] for _ in range(2))
    for step in range(1, 5):
        gradients = step_by_hand(instance, now[0], now[1:], 20)
        for i, gradient in enumerate(gradients):
            first[i] = 0.9 * first[i] + 0.1 * gradient
            second[i] = 0.999 * second[i] + 0.001 * gradient**2
            size = (second[i] / (1 - 0.999**step)).sqrt() + 1e-8
            with torch.no_grad():
                now[i] *= 1 - 0.05 * 1e-4
                now[i] -= 0.05 * first[i] / (1 - 0.9**step) / size
    # The last bias moves all of theta alike, so its gradient is rounding alone.
    for wanted, found in zip(now[:-1], (found_edges, *list(found_head.parameters())[:-1]), strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-8, atol=1e-10)
    assert not torch.equal(found_edges, edges)


@pytest.mark.parametrize("steps", [0, 2])
def test_what_is_learnt_is_the_gradient_where_the_steps_end(steps: int) -> None:
    """Of edges it goes on through the graph network, of the head to the head; an instance is a share of its batch."""
    run = tiny_systems.dimes_run()
    run = run.model_copy(update={"training": run.training.model_copy(update={"inner_steps": steps})})
    batches = MetaBatches(scheme_of(run, make()))
    coords = coords_of(9)
    length = batches._learn(coords, 5, 4)
    found = {name: p.grad for name, p in batches.net.named_parameters()}
    batches.net.zero_grad(set_to_none=True)
    neighbours, edges = batches.net.embed(coords)
    instance = instance_of(coords, neighbours, 5 + run.seed * 2_654_435_769 % 2**32)
    ends, head = batches.net.learn(instance, edges, steps, run.training.tours)
    of_edges, *of_head = step_by_hand(instance, ends, list(head.parameters()), run.training.tours)
    (edges * of_edges / 4).sum().backward()
    for name, p in batches.net.graph.named_parameters():
        wanted = torch.zeros_like(p) if p.grad is None else p.grad
        given = found[f"graph.{name}"]
        torch.testing.assert_close(torch.zeros_like(p) if given is None else given, wanted, rtol=1e-9, atol=1e-12)
    for (name, _), wanted in zip(batches.net.head.named_parameters(), of_head, strict=True):
        torch.testing.assert_close(found[f"head.{name}"], wanted / 4, rtol=1e-9, atol=1e-12)
    assert length > 0


def test_the_search_goes_on_from_the_map() -> None:
    """What a search has learnt of one instance is of no other, and leaves the network as it was."""
    plain, searching = make(), make(search_steps=3, search_tours=20)
    coords = coords_of(11)
    before = {name: p.clone() for name, p in searching.named_parameters()}
    neighbours, theta = plain.encode(coords, 4)
    _, searched = searching.encode(coords, 4)
    instance = instance_of(coords, neighbours[0], 4)
    edges, head = plain.learn(instance, plain.embed(coords)[1], 3, 20)
    torch.testing.assert_close(searched[0], head(edges)[..., 0], rtol=1e-9, atol=1e-9)
    assert not torch.equal(searched, theta)
    assert torch.equal(searching.encode(coords, 4)[1], searched)
    assert all(torch.equal(p, before[name]) for name, p in searching.named_parameters())


def test_what_a_search_gets_of_theta() -> None:
    """The five best edges of a node by a softmax, flatter until none of them is less likely than 1e-4."""
    rng = np.random.default_rng(2)
    neighbours, theta = np.tile(np.arange(1, 9), (6, 1)), 9 * rng.normal(size=(6, 8))
    found_neighbours, found = make().edges(rng.random((6, 2)), neighbours, theta, search=True)
    for halvings in itertools.count():
        wanted = []
        for row in theta / 2**halvings:
            best = np.sort(row)[::-1][:5]
            wanted.append(np.exp(best) / np.exp(best).sum())
        if np.min(wanted) >= 1e-4:
            break
    assert halvings > 0
    np.testing.assert_allclose(found, wanted, rtol=1e-9)
    assert (found_neighbours == 1 + np.argsort(-theta, axis=1)[:, :5]).all()
    _, whole = make().edges(rng.random((6, 2)), neighbours, theta, search=False)
    np.testing.assert_allclose(whole, np.exp(theta) / np.exp(theta).sum(axis=1, keepdims=True), rtol=1e-9)


# -- what it takes, and what is refused -------------------------------------------------------------------------------


def test_a_sparse_graph_needs_no_pairs() -> None:
    """An instance of 10,000 nodes in less than a float for each pair."""
    net = Dimes(depth=1, width=4, neighbours=3, search_steps=1, search_tours=2)
    neighbours, theta = net.encode(torch.rand(1, 10_000, 2, generator=torch.Generator().manual_seed(0)))
    assert neighbours.shape == theta.shape == (1, 10_000, 3)
    assert theta.isfinite().all()


def test_inner_steps_are_counted() -> None:
    run = tiny_systems.dimes_run()
    more = run.model_copy(update={"training": run.training.model_copy(update={"inner_steps": 12})})
    searched = tiny_systems.dimes_run(search_steps=40)
    plain = training_per_sample(run)
    head = 5 * run.n * (2 * (2 * 64 + 8) + 16)  # edges, two FLOPs for each weight, one for each activation
    assert training_per_sample(more) - plain == 3 * 10 * head
    assert training_per_sample(searched) == plain


def test_runs_that_do_not_fit() -> None:
    with pytest.raises(NeurouteError, match="is for Dimes, not DecoderOnly"):
        meta(scheme_of(make_run()))
    run = tiny_systems.dimes_run()
    batches = meta(scheme_of(run))
    for parameter in batches.net.parameters():
        parameter.data.fill_(math.nan)
    with pytest.raises(NeurouteError, match="not finite: its network diverged"):
        batches.train(0)
    pomo = Network(kind="neuroute.networks.pomo:Pomo", arguments={"depth": 1, "width": 16, "heads": 2})
    with pytest.raises(NeurouteError, match="is for Dimes, not Pomo"):
        meta(replace(scheme_of(run.model_copy(update={"network": pomo}))))
