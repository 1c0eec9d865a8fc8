"""Maps of edges: what diffusion, sub-graphs and their merging are, by formulas of our own in float64."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from networks import awake
from neuroute.core.errors import NeurouteError
from neuroute.decoding.decode import decode
from neuroute.problems.tsp import is_permutation
from neuroute.specs.objects import Decoding
from neuroute_systems.att_gcn.network import AttGcn, fit
from neuroute_systems.blocks.gated_graph import GatedGraphLayer, nearest_nodes
from neuroute_systems.difusco.network import STEPS, Difusco, add_noise, cosine_steps, posterior, remaining
from neuroute_systems.dimes.network import Dimes
from neuroute_systems.edge_maps.network import EdgeMapNetwork, symmetric_map

pytestmark = pytest.mark.usefixtures("one_thread")
KINDS: dict[str, tuple[type[EdgeMapNetwork], dict[str, Any]]] = {
    "att-gcn": (AttGcn, {"depth": 2, "width": 8, "near": 3, "coverage": 3, "actions": 5, "train_nodes": 8}),
    "difusco": (Difusco, {"depth": 2, "width": 8, "steps": 3, "actions": 5}),
    "difusco sparse": (Difusco, {"depth": 2, "width": 8, "steps": 3, "neighbours": 6, "actions": 5}),
    "dimes": (Dimes, {"depth": 2, "width": 8, "neighbours": 6, "actions": 5}),
    "dimes searched": (
        Dimes,
        {"depth": 2, "width": 8, "neighbours": 6, "search_steps": 2, "search_tours": 9, "actions": 5},
    ),
}


def make(name: str, **more: Any) -> Any:
    kind, arguments = KINDS[name]
    return awake(kind, **arguments | more)


def coords_of(count: int, n: int) -> Tensor:
    return torch.rand(count, n, 2, generator=torch.Generator().manual_seed(7), dtype=torch.float64)


# -- diffusion --------------------------------------------------------------------------------------------------------


def transitions() -> list[Tensor]:
    """The matrix of each step of noise, of 0 and 1."""
    betas = [1e-4 + (2e-2 - 1e-4) * i / (STEPS - 1) for i in range(STEPS)]
    return [(1 - b) * torch.eye(2, dtype=torch.float64) + b / 2 for b in betas]


def test_noise_is_the_product_of_its_steps() -> None:
    c, product = remaining(), torch.eye(2, dtype=torch.float64)
    for step, matrix in enumerate(transitions(), start=1):
        product = product @ matrix
        if step in (1, 2, 500, STEPS):
            wanted = c[step] * torch.eye(2, dtype=torch.float64) + (1 - c[step]) / 2
            torch.testing.assert_close(product, wanted, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(product, torch.full((2, 2), 0.5, dtype=torch.float64), rtol=0, atol=1e-4)
    edges = torch.tensor([[0, 1]] * 4)
    c_of = torch.tensor([1.0, 1.0, 0.0, 0.5])
    uniform = torch.tensor([[0.3, 0.7], [0.9, 0.1], [0.4, 0.6], [0.3, 0.7]])
    assert add_noise(edges, c_of, uniform).tolist() == [[0, 1], [0, 1], [1, 0], [0, 1]]


@pytest.mark.parametrize(("before", "now"), [(0, 1), (0, 700), (1, 2), (300, 301), (938, 1000)])
def test_the_posterior_is_bayes_rule(before: int, now: int) -> None:
    """Enumerated over the clean and the earlier value."""
    matrices, c = transitions(), remaining().tolist()
    until, between = (torch.eye(2, dtype=torch.float64) for _ in range(2))
    for matrix in matrices[:before]:
        until = until @ matrix
    for matrix in matrices[before:now]:
        between = between @ matrix
    for noisy, likely in itertools.product((0, 1), (0.0, 0.2, 1.0)):
        wanted = 0.0
        for clean, share in ((0, 1 - likely), (1, likely)):
            joint = [float(until[clean, earlier] * between[earlier, noisy]) for earlier in (0, 1)]
            wanted += share * joint[1] / sum(joint)
        found = posterior(torch.tensor(likely, dtype=torch.float64), torch.tensor(noisy), c[before], c[now])
        assert float(found) == pytest.approx(wanted, rel=1e-9, abs=1e-12)


def test_times_of_inference() -> None:
    steps = cosine_steps(50)
    assert steps[:3] == [1000, 969, 938]
    assert steps[-1] == 0
    assert all(a > b for a, b in itertools.pairwise(steps))
    assert cosine_steps(1) == [1000, 0]


@pytest.mark.parametrize("name", ["difusco", "difusco sparse"])
def test_denoising_is_the_same_for_nodes_in_any_order(name: str) -> None:
    net, coords = make(name), coords_of(2, 9)
    order = torch.randperm(9, generator=torch.Generator().manual_seed(1))
    near, time = net.graph(coords), torch.tensor([3.0, 800.0], dtype=torch.float64)
    noise = torch.randn(2, 9, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    found = net.denoise(coords, near, noise.gather(2, near), time)
    whole = torch.zeros(2, 9, 9, 2, dtype=torch.float64).scatter(2, near[..., None].expand_as(found), found)
    moved_near = net.graph(coords[:, order])
    moved = net.denoise(coords[:, order], moved_near, noise[:, order][:, :, order].gather(2, moved_near), time)
    moved_whole = torch.zeros_like(whole).scatter(2, moved_near[..., None].expand_as(moved), moved)
    torch.testing.assert_close(moved_whole, whole[:, order][:, :, order], rtol=1e-9, atol=1e-9)
    alone = net.denoise(coords[1:], near[1:], noise.gather(2, near)[1:], time[1:])
    torch.testing.assert_close(alone, found[1:], rtol=1e-10, atol=1e-10)


def test_what_a_search_gets_of_a_diffused_map() -> None:
    """The best ten a node of all and three of each, a little likelier, both directions added, in rows of 1."""
    rng, n = np.random.default_rng(0), 30
    points, heat = rng.random((n, 2)), rng.random((n, n)) ** 8
    neighbours = np.tile(np.arange(n), (n, 1))
    score = heat + 0.01 * (1 - np.linalg.norm(points[:, None] - points, axis=-1))
    np.fill_diagonal(score, -np.inf)
    best = set(np.argsort(-score.ravel())[: 10 * n].tolist())
    best |= {i * n + int(j) for i in range(n) for j in np.argsort(-score[i])[:3]}
    kept = np.zeros((n, n))
    for place in best:
        kept.flat[place] = score.flat[place] + 0.01
    kept += kept.T
    kept /= kept.sum(axis=1, keepdims=True)
    found_neighbours, found = make("difusco").edges(points, neighbours, heat, search=True)
    dense = np.zeros((n, n))
    np.add.at(dense, (np.arange(n)[:, None], found_neighbours), found)
    np.testing.assert_allclose(dense, kept, rtol=1e-12)


# -- sub-graphs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "m"), [(5, 8), (8, 8), (9, 8), (40, 8), (41, 10)])
def test_sub_graphs_cover_all_nodes(n: int, m: int) -> None:
    net, coords = make("att-gcn", train_nodes=m), coords_of(1, n)[0]
    graphs = list(net.sub_graphs(coords, 3))
    often = np.bincount(np.concatenate(graphs), minlength=n)
    assert often.min() > 0
    assert all(len(set(nodes.tolist())) == min(m, n) for nodes in graphs)
    assert len(graphs) >= (math.ceil(3 * n / m) if m < n else 1)
    first = graphs[0]
    if n > m:
        assert set(first.tolist()) == set((coords - coords[0]).norm(dim=1).argsort()[:m].tolist())
    again = list(net.sub_graphs(coords, 3))
    assert all((a == b).all() for a, b in zip(graphs, again, strict=True))


def test_published_counts_of_sub_graphs() -> None:
    net = make("att-gcn", train_nodes=50, coverage=5)
    for n, count in ((200, 20), (500, 50)):
        assert count <= len(list(net.sub_graphs(coords_of(1, n)[0], 0))) <= count + 10


def test_a_merged_map_is_the_mean_over_sub_graphs() -> None:
    net, coords, n = make("att-gcn"), coords_of(1, 20), 20
    graphs, likely = (part[0].detach().numpy() for part in net.encode(coords, 1))
    total, often = np.zeros((n, n)), np.zeros((n, n))
    for nodes, each in zip(graphs, likely, strict=True):
        for i, j in itertools.product(range(len(nodes)), repeat=2):
            total[nodes[i], nodes[j]] += each[i, j]
            often[nodes[i], nodes[j]] += 1
    wanted = total / (often + 1e-8)
    np.fill_diagonal(wanted, 0)
    wanted += wanted.T
    wanted /= wanted.sum(axis=1, keepdims=True)
    neighbours, heat = net.edges(coords[0].numpy(), graphs, likely, search=True)
    dense = np.zeros((n, n))
    np.add.at(dense, (np.arange(n)[:, None], neighbours), heat)
    np.testing.assert_allclose(dense, wanted, rtol=1e-6)


def test_classes_of_pairs_do_not_hang_on_place_scale_or_order() -> None:
    net, coords = make("att-gcn"), coords_of(3, 8)
    found = net.classify(coords)
    torch.testing.assert_close(net.classify(40 * coords - 7), found, rtol=1e-8, atol=1e-8)
    order = torch.randperm(8, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(net.classify(coords[:, order]), found[:, order][:, :, order], rtol=1e-8, atol=1e-8)
    assert torch.equal(fit(torch.full((1, 4, 2), 0.3)), torch.zeros(1, 4, 2))


# -- all of them ------------------------------------------------------------------------------------------------------


def test_a_map_in_both_directions() -> None:
    neighbours, heat = symmetric_map(4, np.array([0, 0, 2, 1]), np.array([1, 2, 0, 1]), np.array([3.0, 1.0, 2.0, 9.0]))
    dense = np.zeros((4, 4))
    np.add.at(dense, (np.arange(4)[:, None], neighbours), heat)
    np.testing.assert_allclose(dense, [[0, 0.5, 0.5, 0], [1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]])


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("way", ["tree_search", "merging"])
def test_tours_do_not_hang_on_what_is_solved_beside(name: str, way: str) -> None:
    net, coords = make(name), coords_of(4, 13).numpy()
    how = Decoding(method=f"edge_maps:{way}")
    tours = decode("tsp", net, coords, how).numpy()
    assert is_permutation(tours).all()
    alone = decode("tsp", net, coords, how.model_copy(update={"batch_size": 1})).numpy()
    np.testing.assert_array_equal(tours, alone)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("way", ["tree_search", "merging"])
@pytest.mark.parametrize("n", [4, 5, 8])
def test_small_and_coincident_instances(name: str, way: str, n: int) -> None:
    how = Decoding(method=f"edge_maps:{way}")
    coords = coords_of(2, n).numpy()
    coords[1] = coords[1, 0]
    assert is_permutation(decode("tsp", make(name), coords, how).numpy()).all()


@pytest.mark.parametrize("name", KINDS)
def test_what_is_refused(name: str) -> None:
    net, coords = make(name), coords_of(1, 9).numpy()
    with pytest.raises(NeurouteError, match="'tree_search' or 'merging' alone, not by 'greedy'"):
        decode("tsp", net, coords, Decoding())
    for parameter in net.parameters():
        parameter.data.fill_(torch.nan)
    for way in (net.own_method, *net.other_methods):
        with pytest.raises(NeurouteError, match="not finite"):
            decode("tsp", net, coords, Decoding(method=way))
    with pytest.raises(NeurouteError, match="decides on no stop"):
        net.decide()


# -- gated graph convolution, node by node and edge by edge from its formulas; the nearest nodes ----------------------


EXACT = {"rtol": 1e-10, "atol": 1e-10}
VARIANTS: dict[str, dict[str, Any]] = {
    "glop and dimes": {},
    "att-gcn": {
        "gate": "new",
        "total": "gated-mean",
        "norm": "batch-untracked",
        "activation": "relu",
        "shared": True,
    },
    "difusco": {"gate": "new", "total": "sum", "norm": "layer", "activation": "relu"},
}
SIZES = {"glop and dimes": lambda w: 5 * w * w + 9 * w, "att-gcn": lambda w: 4 * w * w + 8 * w}


def norm(rows: Tensor, of: Any, kind: str) -> Tensor:
    """rows (rows, W)."""
    if kind == "layer":
        return F.layer_norm(rows, rows.shape[1:], of.weight, of.bias)
    mean, variance = (
        (rows.mean(0), rows.var(0, correction=0))
        if kind == "batch-untracked"
        else (of.norm.running_mean, of.norm.running_var)
    )
    return (rows - mean) / torch.sqrt(variance + of.norm.eps) * of.norm.weight + of.norm.bias


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_layer_is_its_formula(variant: str) -> None:
    torch.manual_seed(0)
    (batch, n, k, width), how = (2, 6, 3, 5), VARIANTS[variant]
    layer = GatedGraphLayer(width, **how).double().eval()
    for module in layer.modules():
        if isinstance(module, torch.nn.BatchNorm1d) and module.running_mean is not None:
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
    for name, parameter in layer.named_parameters():
        if "norm" in name:
            parameter.data.normal_(1, 0.3)
    nodes = torch.randn(batch, n, width, dtype=torch.float64)
    edges = torch.randn(batch, n, k, width, dtype=torch.float64)
    near = torch.stack([torch.stack([torch.randperm(n)[:k] for _ in range(n)]) for _ in range(batch)])

    def linear(x: Tensor, of: torch.nn.Linear) -> Tensor:
        return of.weight @ x + of.bias

    head = layer.tail if how.get("shared") else layer.head
    new, told = torch.zeros_like(edges), torch.zeros_like(nodes)
    for b, i in itertools.product(range(batch), range(n)):
        for e in range(k):
            j = near[b, i, e]
            new[b, i, e] = (
                linear(edges[b, i, e], layer.edge) + linear(nodes[b, i], layer.tail) + linear(nodes[b, j], head)
            )
        gates = torch.sigmoid(new[b, i] if how.get("gate") == "new" else edges[b, i])
        messages = sum(gates[e] * linear(nodes[b, near[b, i, e]], layer.message) for e in range(k))
        total = {"sum": 1.0, "gated-mean": gates.sum(0)}.get(how.get("total", "mean"), k)
        told[b, i] = linear(nodes[b, i], layer.node) + messages / total
    act, kind = (F.relu if how.get("activation") == "relu" else F.silu), how.get("norm", "batch")
    wanted_nodes = nodes + act(norm(told.flatten(0, 1), layer.node_norm, kind)).view_as(nodes)
    wanted_edges = edges + act(norm(new.flatten(0, 2), layer.edge_norm, kind)).view_as(edges)
    found_nodes, found_edges = layer(nodes, edges, near)
    torch.testing.assert_close(found_nodes, wanted_nodes, **EXACT)
    torch.testing.assert_close(found_edges, wanted_edges, **EXACT)
    if variant in SIZES:
        assert sum(p.numel() for p in layer.parameters()) == SIZES[variant](width)


@pytest.mark.parametrize("itself", [False, True])
def test_nearest_nodes(itself: bool) -> None:
    coords = torch.rand(2, 9, 2, generator=torch.Generator().manual_seed(0))
    coords[0, 3] = coords[0, 4] = coords[0, 5]
    nodes, apart = nearest_nodes(coords, 4, itself)
    for b, i in itertools.product(range(2), range(9)):
        all_apart = (coords[b] - coords[b, i]).norm(dim=1)
        assert (i in nodes[b, i]) == itself
        assert len(set(nodes[b, i].tolist())) == 4
        torch.testing.assert_close(apart[b, i], all_apart[nodes[b, i]])
        others = all_apart if itself else torch.cat([all_apart[:i], all_apart[i + 1 :]])
        torch.testing.assert_close(apart[b, i], others.sort().values[:4])
    assert nearest_nodes(coords, 50, itself)[0].shape == (2, 9, 9 if itself else 8)
