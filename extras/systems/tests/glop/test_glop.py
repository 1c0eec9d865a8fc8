"""GLOP's networks against formulas written from the descriptions of the published code, in float64."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from networks import awake
from neuroute.decoding.cvrp import CvrpBatch
from neuroute.networks.import_weights import import_weights
from neuroute.networks.weights import load_checkpoint
from neuroute.problems.cvrp import is_feasible
from neuroute.problems.vrp import Vrp, to_routes
from neuroute_systems.blocks.path_attention import Prepared
from neuroute_systems.glop.decoding import walk
from neuroute_systems.glop.network import (
    FLOOR,
    Glop,
    GlopPartition,
    Heat,
    fit_to_square,
)
from pointerformer_by_the_book import norm
from published_code import DEPTH, HEADS, WIDTH, State, weights
from published_formulas import attention, linear
from published_glop import reviser as published_reviser

pytestmark = pytest.mark.usefixtures("one_thread")
EXACT = {"rtol": 1e-10, "atol": 1e-10}
SHAPE = {"depth": 2, "width": 16, "heads": 2, "feed_forward": 24}


def settle(net: torch.nn.Module) -> None:
    """Statistics of norms leave their initial values."""
    torch.manual_seed(5)
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm1d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)


# -- paths in the unit square -----------------------------------------------------------------------------------------


def test_paths_span_x_and_reach_no_further_in_y() -> None:
    torch.manual_seed(0)
    scale = torch.tensor([0.3, 7.0]).expand(20, 1, 2).clone()
    scale[::2] = scale[::2].flip(2)
    points = torch.rand(20, 9, 2) * scale - 3
    fitted = fit_to_square(points)
    assert torch.equal(fitted.amin(1), torch.zeros(20, 2))
    assert torch.equal(fitted.amax(1)[:, 0], torch.ones(20))
    assert bool((fitted.amax(1)[:, 1] <= 1).all())
    ratio = torch.pdist(fitted[3]) / torch.pdist(points[3])
    torch.testing.assert_close(ratio, ratio[:1].expand_as(ratio), rtol=1e-4, atol=0)


def test_nodes_in_one_place_are_a_path_too() -> None:
    assert torch.equal(fit_to_square(torch.full((1, 5, 2), 0.7)), torch.zeros(1, 5, 2))


# -- the reviser ------------------------------------------------------------------------------------------------------


def by_the_book(p: State, points: Tensor, order: list[int]) -> list[Tensor]:
    """Log-probabilities of each decision of the path `order`: places in points (m, 2), of which its ends are fixed."""
    x, scale = linear(p, "init_embed", points), (WIDTH // HEADS) ** -0.5
    for i in range(DEPTH):
        at = f"embedder.layers.{i}"
        q, k, v = (x @ p[f"{at}.0.module.W_{name}"] for name in ("query", "key", "val"))  # (heads, m, width / heads)
        mixed = torch.softmax(scale * q @ k.transpose(1, 2), dim=-1) @ v @ p[f"{at}.0.module.W_out"]
        x = norm(p, f"{at}.1.normalizer", x + mixed.sum(0))
        fed = linear(p, f"{at}.2.module.2", linear(p, f"{at}.2.module.0", x).relu())
        x = norm(p, f"{at}.3.normalizer", x + fed)
    keys, values, targets = linear(p, "project_node_embeddings", x).chunk(3, dim=1)
    fixed, last, found = linear(p, "project_fixed_context", x.mean(0)), order[-1], []
    for step in range(len(order) - 3):
        open_nodes = [i for i in range(len(points)) if i not in order[: step + 1] and i != last]
        # The published code's "last" node is always row 0, in both directions.
        query = fixed + linear(p, "project_step_context", torch.cat([x[0], x[order[step]]]))
        glimpse = attention(query[None, None], keys[None, open_nodes], values[None, open_nodes], scale)[0, 0]
        logits = 10 * torch.tanh(targets[open_nodes] @ linear(p, "project_out", glimpse) / math.sqrt(WIDTH))
        whole = torch.full((len(points),), -torch.inf, dtype=points.dtype)
        whole[open_nodes] = torch.log_softmax(logits, dim=0)
        found.append(whole)
    return found


@pytest.mark.parametrize("order", [[0, 3, 1, 5, 2, 4, 6], [6, 2, 5, 1, 4, 3, 0]], ids=["there", "back"])
def test_a_path_has_the_probabilities_of_the_published_code(tmp_path: Path, order: list[int]) -> None:
    state = weights(published_reviser())
    torch.save({"model": state}, tmp_path / "theirs.pt")
    import_weights(tmp_path / "theirs.pt", tmp_path / "ours.safetensors", None, {"blocks": [7]})
    net = load_checkpoint(tmp_path / "ours.safetensors")[0].double()
    assert net.blocks == (7,)
    reviser = net.revisers[0]
    points = torch.rand(1, 7, 2, dtype=torch.float64)
    wanted = by_the_book({name: tensor.double() for name, tensor in state.items()}, points[0], order)
    prepared = reviser.prepare(points)
    rows, left = prepared.rows(), list(order)
    along = Prepared(*(part[:, order] for part in prepared))
    step, node = torch.arange(4)[:, None], torch.arange(7)
    mask = torch.zeros(4, 7, dtype=torch.float64).masked_fill((node <= step) | (node == 6), -torch.inf)
    together = reviser.decide_all(along, mask)[0].log_softmax(-1)
    for number, each in enumerate(wanted):
        alone = reviser.decide(rows[:, left])[0].log_softmax(-1)
        torch.testing.assert_close(alone, each[left[1:-1]], **EXACT)
        torch.testing.assert_close(together[number], each[order], **EXACT)
        left.pop(0)


def test_paths_go_to_the_smallest_block_that_holds_them() -> None:
    net = Glop(**SHAPE, blocks=(30, 20, 10))
    found = [list(net.revisers).index(net.reviser(nodes)) for nodes in (4, 10, 11, 20, 21, 30, 99)]
    assert found == [2, 2, 1, 1, 0, 0, 0]
    assert Glop(**SHAPE, blocks=(30, 20), shared=True).reviser(8) is not None


# -- the partition ----------------------------------------------------------------------------------------------------


def instance(customers: int, capacity: int, seed: int = 0) -> CvrpBatch:
    generator = torch.Generator().manual_seed(seed)
    coords = torch.rand(1, 1 + customers, 2, dtype=torch.float64, generator=generator)
    demand = torch.randint(1, 10, (1, 1 + customers), generator=generator)
    demand[:, 0] = 0
    return CvrpBatch(coords, demand, torch.tensor([capacity]))


def dense(heat: Heat) -> Tensor:
    """The published matrix: weights on edges, zeros elsewhere, and the floor on all of it."""
    n = heat.weights.shape[1]
    return torch.zeros(n, n, dtype=heat.weights.dtype).scatter(1, heat.neighbours[0], heat.weights[0] - FLOOR) + FLOOR


def walk_by_the_book(heat: Tensor, demand: list[int], capacity: int) -> list[list[int]]:
    """Routes of the greedy walk, node by node."""
    n, total = len(heat), sum(demand)
    most = math.ceil(total / capacity) + 1
    current, used, load, left, routes = 0, 0, capacity, set(range(1, n)), list[list[int]]()
    while left:
        fits = [i for i in sorted(left) if demand[i] <= load]
        rest = sum(demand[i] for i in left)
        depot = current != 0 and (not fits or rest <= capacity * (most - used))
        options = ([0] if depot else []) + fits
        following = max(options, key=lambda i: (float(heat[current, i]), -i))
        if following == 0:
            load = capacity
        else:
            if current == 0:
                used += 1
                routes.append([])
            routes[-1].append(following)
            load -= demand[following]
            left.remove(following)
        current = following
    return routes


@pytest.mark.parametrize(("customers", "capacity", "neighbours"), [(20, 30, 5), (20, 12, 3), (15, 200, 14), (25, 9, 4)])
def test_the_walk_is_the_published_one(customers: int, capacity: int, neighbours: int) -> None:
    net = awake(GlopPartition, depth=2, width=8, neighbours=neighbours)
    settle(net)
    for seed in range(4):
        batch = instance(customers, capacity, seed)
        with torch.no_grad():
            heat = net.encode(batch.coords, batch.share)
            (found,) = walk(net, heat, batch, 1)[0].numpy()
        assert to_routes(found) == walk_by_the_book(dense(heat), batch.demand[0].tolist(), capacity)
        coords = batch.coords.float().numpy()
        problem = Vrp(coords, batch.demand.numpy(), batch.capacity.numpy())
        assert is_feasible(problem, found[None]).all()


def test_neighbours_are_those_of_similar_directions() -> None:
    net = awake(GlopPartition, depth=1, width=8, neighbours=4)
    coords = torch.rand(2, 12, 2, dtype=torch.float64)
    found = net.encode(coords, torch.rand(2, 12, dtype=torch.float64)).neighbours
    for b, i in itertools.product(range(2), range(1, 12)):
        out = coords[b] - coords[b, 0]
        cosine = np.array([float(F.cosine_similarity(out[i], out[j], dim=0)) if j else 0.0 for j in range(12)])
        assert set(found[b, i].tolist()) == set(np.argsort(-cosine)[:4].tolist())


def test_customers_may_come_in_any_order() -> None:
    net = awake(GlopPartition, depth=2, width=8, neighbours=5)
    settle(net)
    batch = instance(12, 30)
    order = torch.cat([torch.zeros(1, dtype=torch.int64), 1 + torch.randperm(12)])
    first = dense(net.encode(batch.coords, batch.share))
    second = dense(net.encode(batch.coords[:, order], batch.share[:, order]))
    # The depot has no direction, so all are equally similar to it: its own neighbours follow from the order.
    torch.testing.assert_close(second[1:, 1:].argmax(1), first[order][:, order][1:, 1:].argmax(1))
    torch.testing.assert_close(net.encode(batch.coords, batch.share).weights.shape, (1, 13, 5))
