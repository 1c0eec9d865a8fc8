"""Gated graph convolution, node by node and edge by edge from its formulas, in float64; the nearest nodes."""

import itertools
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from neuroute.networks.blocks.gated_graph import GatedGraphLayer, nearest_nodes

pytestmark = pytest.mark.usefixtures("one_thread")
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
