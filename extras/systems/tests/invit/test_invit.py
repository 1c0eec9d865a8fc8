"""INViT: what its decisions do not depend on, what they cost, its solutions.  The equations: test_published_invit."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from networks import awake
from neuroute.core.errors import NeurouteError
from neuroute.decoding.cvrp import CvrpBatch
from neuroute.decoding.decode import decode
from neuroute.decoding.multi_start import multi_start, start_rollout
from neuroute.decoding.tsp import TSP
from neuroute.evaluation.flops import counts
from neuroute.networks.weights import build
from neuroute.problems.cvrp import is_feasible
from neuroute.problems.tsp import is_permutation
from neuroute.problems.vrp import Vrp
from neuroute.specs.objects import Decoding, Network
from neuroute_systems.invit.network import Invit, InvitCvrp, to_unit_box

pytestmark = pytest.mark.usefixtures("one_thread")

EXACT = {"rtol": 1e-9, "atol": 1e-9}
SMALL: dict[str, Any] = {"depth": 1, "action_depth": 2, "width": 16, "heads": 2, "feed_forward": 24}
VIEWS: dict[str, Any] = {"views": (6, 9), "actions": 4}


def net(kind: type[Invit] = Invit, **more: Any) -> Any:
    return awake(kind, **SMALL | VIEWS | more)


def points(n: int, batch: int = 2, seed: int = 1) -> Tensor:
    return torch.rand(batch, n, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def closed_at(n: int, *tours: list[int]) -> Tensor:
    """(1, tours, n)"""
    mask = torch.zeros(1, len(tours), n, dtype=torch.float64)
    for number, visited in enumerate(tours):
        mask[0, number, visited] = -torch.inf
    return mask


# -- views ------------------------------------------------------------------------------------------------------------


def test_views_of_one_place_have_no_size() -> None:
    """Coincident nodes: a range of 0 counts as 1."""
    seen, here, other = to_unit_box(torch.ones(1, 1, 4, 2), torch.ones(1, 1, 2), torch.zeros(1, 1, 2))
    assert not seen.any()
    assert not here.any()
    assert torch.equal(other, -torch.ones(1, 1, 2))


# -- what decisions depend on -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Invit, InvitCvrp])
def test_moved_and_scaled_instances_are_decided_alike(kind: type[Invit]) -> None:
    logits = decided(net(kind), points(30))
    for moved in (points(30) + 5, 7 * points(30), 0.01 * points(30) - 3):
        torch.testing.assert_close(decided(net(kind), moved), logits, rtol=1e-6, atol=1e-6)


def decided(network: Any, coords: Tensor) -> Tensor:
    """Of three tours each, some steps on."""
    n, generator = coords.shape[1], torch.Generator().manual_seed(5)
    tours = torch.stack([torch.stack([torch.randperm(n, generator=generator)[:8] for _ in range(3)]) for _ in coords])
    mask = torch.zeros(len(coords), 3, n, dtype=torch.float64).scatter(2, tours, -torch.inf)
    if network.problem == "tsp":
        return network.decide(network.encode(coords), tours[..., 0], tours[..., -1], mask)
    share = torch.rand(len(coords), n, dtype=torch.float64, generator=generator) / 2
    context = torch.cat([torch.full((len(coords), 3, 1), 0.4, dtype=torch.float64), mask], dim=-1)
    fits = mask.masked_fill(share[:, None] > 0.4, -torch.inf)
    fits[..., 0] = 0
    return network.decide(network.encode(coords, share), context, tours[..., -1], fits)


def test_paths_are_decided_as_tours_are() -> None:
    network, coords = net(), points(12, 1)
    visited = [3, 8, 1]
    logits = network.decide(network.encode(coords), torch.tensor([[3]]), torch.tensor([[1]]), closed_at(12, visited))
    open_ = [i for i in range(12) if i not in visited]
    paths = network.decide_path(network.path_rows(coords[:, [1, *open_, 3]]))
    torch.testing.assert_close(paths, logits[:, 0, open_], **EXACT)
    with pytest.raises(NeurouteError, match="path_rows"):
        net(InvitCvrp).path_rows(coords)


# -- what it takes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["Invit", "InvitCvrp"])
def test_a_decision_costs_the_same_for_any_size(kind: str) -> None:
    """FLOPs by the formula, and the tokens that encoders get while it runs; of the search n numbers a tour."""
    count = counts(Network(kind=f"neuroute_systems.invit.network:{kind}", arguments={}))
    assert len({count.decision(n + 1) for n in (67, 1_000, 10_000, 100_000)}) == 1
    assert count.decision(40) < count.decision(67)
    network, tokens = net(Invit if kind == "Invit" else InvitCvrp), list[int]()
    for view in (network.action_view, *network.views):
        view.layers[0].register_forward_hook(lambda _, given, __: tokens.append(given[0].shape[1]))
    for n in (30, 300):
        decided(network, points(n))
    assert tokens[:3] == tokens[3:]


def test_sizes_below_a_view_and_bad_shapes() -> None:
    for n in (3, 4, 5, 9):
        tours = multi_start(TSP, net(), points(n, 3).numpy(), 1)
        assert is_permutation(tours.numpy()).all()
    for views, actions in (((3,), 4), ((), 1), ((5,), 0)):
        with pytest.raises(NeurouteError, match="each must hold"):
            build(Network(kind="neuroute_systems.invit.network:Invit", arguments={"views": views, "actions": actions}))


# -- solutions --------------------------------------------------------------------------------------------------------


def vehicles(n: int, count: int, capacity: int = 10, seed: int = 4) -> Vrp:
    generator = torch.Generator().manual_seed(seed)
    demand = torch.randint(1, 11, (count, n + 1), generator=generator)
    demand[:, 0] = 0
    coords = torch.rand(count, n + 1, 2, generator=generator)
    coords[0] = coords[0, :1]  # all at the depot
    return Vrp(coords.numpy(), demand.numpy(), torch.full((count,), capacity).numpy())


def in_double(instances: Vrp) -> Vrp:
    return Vrp(instances.coords.astype(np.float64), instances.demand, instances.capacity)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("starts", [1, "all"])
def test_routes_are_feasible_though_a_customer_fills_a_vehicle(strict: bool, starts: Any) -> None:
    """Demands up to the capacity, n below and above a view's size, and coincident nodes."""
    for n in (5, 14):
        instances = vehicles(n, 4)
        found = decode("cvrp", net(InvitCvrp, strict=strict).float(), instances, Decoding(starts=starts)).numpy()
        assert is_feasible(instances, found).all()


def test_strict_routes_never_end_empty() -> None:
    """Demands of 10 and a capacity of 50: no route has five customers, though five would fit."""
    instances = vehicles(12, 2, capacity=50)
    instances.demand[:, 1:] = 10
    lengths = {}
    for strict in (False, True):
        found = decode("cvrp", net(InvitCvrp, strict=strict).float(), instances, Decoding()).numpy()
        assert is_feasible(instances, found).all()
        starts = [[i for i, flag in enumerate(via) if flag] + [12] for via in found[:, 1]]
        lengths[strict] = max(b - a for each in starts for a, b in pairwise(each))
    assert lengths[True] <= 4
    assert lengths[False] <= 5


@pytest.mark.parametrize("images", [1, 5])
@pytest.mark.parametrize("problem", ["tsp", "cvrp"])
def test_instances_do_not_meet(problem: str, images: int) -> None:
    """Together as one by one, of a draw; another draw starts elsewhere."""
    network = net(Invit if problem == "tsp" else InvitCvrp)
    # Of `vehicles`, not the first: all its customers are at one place, where rounding decides.
    instances = points(17, 4).numpy() if problem == "tsp" else in_double(vehicles(16, 5)[1:])
    every = decode(problem, network, instances, Decoding(images=images, draw=3))
    alone = decode(problem, network, instances, Decoding(images=images, draw=3, batch_size=1))
    assert torch.equal(every, alone)
    if problem == "tsp" and images == 1:
        assert len({tuple(decode(problem, network, instances, Decoding(draw=d))[:, 0].tolist()) for d in range(4)}) > 1
        assert len(set(every[:, 0].tolist())) > 1


def test_more_images_are_no_longer() -> None:
    network, coords = net(), points(17, 6).numpy()
    one, four, eight = (
        TSP.batch(coords, torch.device("cpu")).lengths(decode("tsp", network, coords, Decoding(images=images))[:, None])
        for images in (1, 4, 8)
    )
    assert (four <= one).all()
    assert (eight <= four).all()
    assert (eight < one).any()


def test_what_has_been_served_is_told() -> None:
    batch = CvrpBatch.of(vehicles(6, 2, capacity=30), torch.device("cpu"))
    rollout = start_rollout(net(InvitCvrp), batch, torch.tensor([[0], [3]]), torch.float32)
    rollout.step(torch.tensor([[2], [5]]))
    assert rollout.context.shape == (2, 1, 8)
    assert [set((row[0, 1:] < 0).nonzero().flatten().tolist()) - {0} for row in rollout.context] == [{2}, {3, 5}]
