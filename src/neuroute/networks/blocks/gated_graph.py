"""Anisotropic gated graph convolution on sparse graphs of constant out-degree (Bresson and Laurent, 2018; DIMES; GLOP).

Every node has k neighbours, so edges are (n, k) and nothing is scattered: neighbours are gathered and reduced over k.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from neuroute.networks.blocks.all_digits import FullLinear
from neuroute.networks.blocks.norms import BatchNorm


def gather_neighbours(nodes: Tensor, neighbours: Tensor) -> Tensor:
    """nodes (batch, n, width), neighbours (batch, n, k) int64 -> what each edge ends on, (batch, n, k, width)."""
    instance = torch.arange(len(nodes), device=nodes.device)[:, None, None]
    return nodes[instance, neighbours]


class GatedGraphLayer(nn.Module):
    """h_i' = h_i + SiLU(BN(U h_i + mean_j sigmoid(e_ij) * V h_j))
    e_ij' = e_ij + SiLU(BN(P e_ij + Q h_i + R h_j))

    5 W^2 + 9 W parameters.  The gate is the edge as it comes in, and edges read nodes as they come in.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.node = nn.Linear(width, width)  # U
        self.message = nn.Linear(width, width)  # V
        self.edge = nn.Linear(width, width)  # P
        self.tail = nn.Linear(width, width)  # Q
        self.head = nn.Linear(width, width)  # R
        self.node_norm = BatchNorm(width)
        self.edge_norm = BatchNorm(width)

    def forward(self, nodes: Tensor, edges: Tensor, neighbours: Tensor) -> tuple[Tensor, Tensor]:
        """nodes (batch, n, W), edges (batch, n, k, W), neighbours (batch, n, k) int64 -> nodes and edges anew."""
        messages = edges.sigmoid() * gather_neighbours(self.message(nodes), neighbours)
        node_update = self.node(nodes) + messages.mean(dim=2)
        edge_update = self.edge(edges) + self.tail(nodes)[:, :, None] + gather_neighbours(self.head(nodes), neighbours)
        nodes = nodes + F.silu(self.node_norm(node_update))
        return nodes, edges + F.silu(self.edge_norm(edge_update.flatten(1, 2))).view_as(edges)


class GatedGraph(nn.Module):
    """The embeddings of nodes and edges, D layers, and the edges that leave them."""

    def __init__(self, depth: int, width: int, node_features: int, edge_features: int) -> None:
        super().__init__()
        self.embed_nodes = FullLinear(node_features, width)
        self.embed_edges = FullLinear(edge_features, width)
        self.layers = nn.ModuleList(GatedGraphLayer(width) for _ in range(depth))

    def forward(self, nodes: Tensor, edges: Tensor, neighbours: Tensor) -> Tensor:
        """nodes (batch, n, features), edges (batch, n, k, features), neighbours (batch, n, k) -> (batch, n, k, W)."""
        nodes, edges = F.silu(self.embed_nodes(nodes)), F.silu(self.embed_edges(edges))
        for layer in self.layers:
            nodes, edges = layer(nodes, edges, neighbours)
        return edges
