"""Anisotropic gated graph convolution on graphs of constant out-degree (Bresson and Laurent, 2018; Joshi et al., 2019).

Four systems have it, each in a variant of its own: what the gate reads, how messages are summed, which norm and which
activation.  Edges lie as (batch, n, k, W), k of each node, so nothing is scattered: a dense graph has k = n.
"""

from collections.abc import Callable
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from neuroute.networks.blocks.attention import pairwise_distances
from neuroute.networks.blocks.layers import NORMS, NormName
from neuroute.networks.blocks.precision import FullLinear

Activation = Literal["silu", "relu"]
ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {"silu": F.silu, "relu": F.relu}
TINY = 1e-20  # added to a sum of gates, as published
PAIRS_AT_ONCE = 1 << 24  # whose distances are there together


def nearest_nodes(coords: Tensor, k: int, itself: bool = False) -> tuple[Tensor, Tensor]:
    """The k nearest nodes (batch, n, k) int64 of each node, of all others where there are fewer; and how far they are.

    coords (batch, n, 2).  With `itself` a node is the nearest to itself, and one of the k.
    """
    (batch, n, _), near, apart = coords.shape, [], []
    k, to_itself = min(k, n if itself else n - 1), -1.0 if itself else torch.inf
    for rows in torch.arange(n, device=coords.device).split(max(1, PAIRS_AT_ONCE // (batch * n))):
        distances = pairwise_distances(coords[:, rows], coords)
        distances = distances.scatter(2, rows[None, :, None].expand(batch, -1, 1), to_itself)
        least, nodes = distances.topk(k, dim=2, largest=False)
        near.append(nodes)
        apart.append(least.clamp(min=0))
    return torch.cat(near, dim=1), torch.cat(apart, dim=1)


def gather_neighbours(nodes: Tensor, neighbours: Tensor) -> Tensor:
    """nodes (batch, n, width), neighbours (batch, n, k) int64 -> what each edge ends on, (batch, n, k, width)."""
    first = torch.arange(len(nodes), device=nodes.device) * nodes.shape[1]
    rows = (neighbours + first[:, None, None]).flatten()  # `nodes[instance, neighbours]`, but its gradient is faster
    return nodes.flatten(0, 1).index_select(0, rows).view(*neighbours.shape, -1)


class GatedGraphLayer(nn.Module):
    """h_i' = h_i + act(norm(U h_i + sum_j sigmoid(g_ij) * V h_j))
    e_ij' = e_ij + act(norm(a_ij)),  a_ij = P e_ij + Q h_i + R h_j

    5 W^2 + 9 W parameters; 4 W^2 + 8 W where Q is R (`shared`).  The gate g is the edge as it comes in ("old") or a
    ("new"); the sum is that, a mean over the k edges, or divided by the sum of gates ("gated-mean").  Edges read nodes
    as they come in.
    """

    def __init__(
        self,
        width: int,
        gate: Literal["old", "new"] = "old",
        total: Literal["sum", "mean", "gated-mean"] = "mean",
        norm: NormName = "batch",
        activation: Activation = "silu",
        shared: bool = False,
    ) -> None:
        super().__init__()
        self.gate, self.total, self.activation = gate, total, activation
        self.node = nn.Linear(width, width)  # U
        self.message = nn.Linear(width, width)  # V
        self.edge = nn.Linear(width, width)  # P
        self.tail = nn.Linear(width, width)  # Q
        self.head = None if shared else nn.Linear(width, width)  # R
        self.node_norm = NORMS[norm](width)
        self.edge_norm = NORMS[norm](width)

    def forward(self, nodes: Tensor, edges: Tensor, neighbours: Tensor) -> tuple[Tensor, Tensor]:
        """nodes (batch, n, W), edges (batch, n, k, W), neighbours (batch, n, k) int64 -> nodes and edges anew."""
        more_nodes, more_edges = self.convolve(nodes, edges, neighbours)
        return nodes + more_nodes, edges + more_edges

    def convolve(self, nodes: Tensor, edges: Tensor, neighbours: Tensor) -> tuple[Tensor, Tensor]:
        """What is added to nodes and edges, as `forward` takes them."""
        of_tail = self.tail(nodes)
        of_head = of_tail if self.head is None else self.head(nodes)
        new = self.edge(edges) + of_tail[:, :, None] + gather_neighbours(of_head, neighbours)
        gates = (edges if self.gate == "old" else new).sigmoid()
        messages = gates * gather_neighbours(self.message(nodes), neighbours)
        received = messages.mean(dim=2) if self.total == "mean" else messages.sum(dim=2)
        if self.total == "gated-mean":
            received = received / (gates.sum(dim=2) + TINY)
        act = ACTIVATIONS[self.activation]
        more_nodes = act(self.node_norm(self.node(nodes) + received))
        return more_nodes, act(self.edge_norm(new.flatten(1, 2))).view_as(new)


class GatedGraph(nn.Module):
    """The embeddings of nodes and edges, D layers as GLOP-G and DIMES have them, and the edges that leave these."""

    def __init__(
        self, depth: int, width: int, node_features: int, edge_features: int, norm: NormName = "batch"
    ) -> None:
        super().__init__()
        self.embed_nodes = FullLinear(node_features, width)
        self.embed_edges = FullLinear(edge_features, width)
        self.layers = nn.ModuleList(GatedGraphLayer(width, norm=norm) for _ in range(depth))

    def forward(self, nodes: Tensor, edges: Tensor, neighbours: Tensor) -> Tensor:
        """nodes (batch, n, features), edges (batch, n, k, features), neighbours (batch, n, k) -> (batch, n, k, W)."""
        nodes, edges = F.silu(self.embed_nodes(nodes)), F.silu(self.embed_edges(edges))
        for layer in self.layers:
            nodes, edges = layer(nodes, edges, neighbours)
        return edges


class EdgeHead(nn.ModuleList):
    """What edges come to: two layers of their width, and one of `outputs` numbers."""

    def __init__(self, width: int, outputs: int = 1, activation: Activation = "silu") -> None:
        super().__init__([nn.Linear(width, width), nn.Linear(width, width), FullLinear(width, outputs)])
        self.activation = activation

    def forward(self, edges: Tensor) -> Tensor:
        """edges (..., W) -> (..., outputs)."""
        for number, layer in enumerate(self):
            edges = layer(ACTIVATIONS[self.activation](edges) if number else edges)
        return edges
