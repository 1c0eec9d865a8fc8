"""GLOP-G's partition network: which customers belong on a route, as probabilities of edges (Ye et al., 2024)."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from neuroute.networks.base import RoutingNetwork
from neuroute.networks.blocks.all_digits import FullLinear
from neuroute.networks.blocks.gated_graph import GatedGraph

FLOOR = 1e-5  # of a weight, and of the smallest one that all are divided by
NEIGHBOURS_AT_ONCE = 1 << 24  # pairs of nodes whose directions are compared at a time


class Heat(NamedTuple):
    """Weights of going from a node to each of its neighbours, (batch, n, k); to all other nodes `FLOOR`."""

    neighbours: Tensor  # int64
    weights: Tensor


class GlopPartition(RoutingNetwork):
    """Scores the edges of a graph of similar directions from the depot, the depot among its nodes.

    D (5 W^2 + 9 W) + 2 (W^2 + W) + 8 W + 1 parameters: 148,513 as published, 76,801 of 6 layers.

    Node features are the share of the capacity, radius and angle around the depot; an edge's are the cosine of the
    directions of its ends, twice.  With `near`, as published for CVRPLIB, neighbours are ranked by the cosine and what
    the distance lacks of 1 together, and these two are the features.
    """

    problem = "cvrp"
    own_method = "partition"  # by which alone it is decoded

    def __init__(
        self, depth: int = 12, width: int = 48, neighbours: int = 100, near: bool = False, train_nodes: int = 1000
    ) -> None:
        super().__init__()
        self.width, self.depth, self.train_nodes = width, depth, train_nodes
        self.neighbours, self.near = neighbours, near
        self.graph = GatedGraph(depth, width, 3, 2)
        self.head = nn.ModuleList([nn.Linear(width, width), nn.Linear(width, width), FullLinear(width, 1)])

    def encode(self, coords: Tensor, demand: Tensor) -> Heat:
        """coords (batch, 1 + V, 2), demand (batch, 1 + V) in shares of the capacity, depot first.

        Weights are probabilities over a node's edges, divided by the smallest of the instance.
        """
        out = coords - coords[:, :1]
        radius, angle = out.norm(dim=-1), torch.atan2(out[..., 1], out[..., 0])
        neighbours, features = self._similar(coords, out, radius)
        edges = self.graph(torch.stack([demand, radius, angle], dim=-1), features, neighbours)
        for number, layer in enumerate(self.head):
            edges = layer(nn.functional.silu(edges) if number else edges)
        odds = edges.squeeze(-1).float().softmax(dim=-1)
        return Heat(neighbours, odds / (odds.flatten(1).amin(dim=1)[:, None, None] + FLOOR) + FLOOR)

    def decide(self, heat: Heat, context: Tensor, current: Tensor, mask: Tensor) -> Tensor:
        """Log-weights (batch, tours, n) of where tours may go next, -inf where the mask is; the context is idle.

        current (batch, tours) int64: where they are; mask (batch, tours, n): -inf where they may not go, 0 elsewhere.
        """
        instance = torch.arange(len(current), device=current.device)[:, None]
        every = heat.weights.new_full(mask.shape, FLOOR)
        weights = every.scatter(2, heat.neighbours[instance, current], heat.weights[instance, current])
        return weights.log() + mask

    def _similar(self, coords: Tensor, out: Tensor, radius: Tensor) -> tuple[Tensor, Tensor]:
        """The k neighbours (batch, n, k) of each node, and two features (batch, n, k, 2) of each edge."""
        n = coords.shape[1]
        k, rows = min(self.neighbours, n - 1), max(1, NEIGHBOURS_AT_ONCE // (len(coords) * n))
        direction = out / radius.clamp(min=1e-10)[..., None]
        neighbours, features = [], []
        for part in torch.arange(n, device=coords.device).split(rows):
            cosine = direction[:, part] @ direction.transpose(1, 2)
            closeness = 1 - torch.cdist(coords[:, part], coords) if self.near else cosine
            rank = (cosine + closeness).scatter(2, part[None, :, None].expand(len(coords), -1, 1), -torch.inf)
            nearest = rank.topk(k, dim=2).indices
            neighbours.append(nearest)
            features.append(torch.stack([closeness.gather(2, nearest), cosine.gather(2, nearest)], dim=-1))
        return torch.cat(neighbours, dim=1), torch.cat(features, dim=1)
