"""Pointerformer: reversible layers, and a pointer that knows what was visited (Jin et al., 2023), for the TSP."""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from neuroute.networks.base import MultiStartNetwork
from neuroute.networks.blocks.attention import attend, pairwise_distances, split_heads
from neuroute.networks.blocks.layers import BatchNorm, rows_of
from neuroute.networks.blocks.precision import FullLinear, in_all_digits

IMAGES = 8
FEATURES = 3 * IMAGES  # an angle and two coordinates of each image


class Encoded(NamedTuple):
    """An instance as the decoder reads it."""

    nodes: Tensor  # (batch, nodes, width)
    features: Tensor  # (batch, nodes, 24)


class Prepared(NamedTuple):
    """What the decisions of an instance share."""

    nodes: Tensor  # (batch, nodes, width), as encoded
    keys: Tensor  # (batch, nodes, width)
    of_first: Tensor  # (batch, nodes, width): what a query gets of where its tour began
    of_current: Tensor  # of where it is
    of_visited: Tensor  # of each node that it has visited
    of_graph: Tensor  # (batch, 1, width): of the mean of all nodes
    distances: Tensor  # (batch, nodes, nodes)


class ReversibleLayer(nn.Module):
    """y1 = x1 + MHA(norm(x2))        y2 = x2 + FFN(norm(y1)), after RevNets.

    4 W^2 + 2 W F + 5 W + F parameters: no biases in attention, GELU, batch norms.  Inputs follow from outputs, by which
    the published code saves memory.  The gradients are the same with everything kept, as it is here; running statistics
    are then updated once a batch, not twice.
    """

    def __init__(self, width: int, heads: int, feed_forward: int) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"width {width} is not divisible by {heads} heads")
        self.heads = heads
        self.attention_norm, self.feed_forward_norm = BatchNorm(width), BatchNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, feed_forward)
        self.down = nn.Linear(feed_forward, width)

    def forward(self, x1: Tensor, x2: Tensor) -> tuple[Tensor, Tensor]:
        """x1, x2 (batch, nodes, width) -> the same of both."""
        d_k = x2.shape[2] // self.heads
        q, k, v = split_heads(self.qkv(self.attention_norm(x2)), self.heads)
        attended = attend(q, k, v, 1 / math.sqrt(d_k))
        y1 = x1 + self.out(attended.transpose(1, 2).flatten(2))
        return y1, x2 + self.down(F.gelu(self.up(self.feed_forward_norm(y1))))


class Pointerformer(MultiStartNetwork):
    """Scores the nodes that may come next in each of several tours of an instance, as `Pomo` does.

    D (4 W^2 + 2 W F + 5 W + F) + 6 W^2 + 25 W parameters: 1,288,064 as published.

    A decision is a product of query and key, less the distance over sqrt(2), then `clipping` * tanh.  The distance is
    that of the 24 input features, as published, not that in the plane.  Also as published the products of `heads`
    heads, each over sqrt(W), are averaged: the same as one product over heads * sqrt(W), which is computed here.  What
    is linear in single nodes is projected once per instance.
    """

    pair_channels = 2  # distances, and the rows of them that decisions take

    def __init__(
        self,
        depth: int = 6,
        width: int = 128,
        heads: int = 8,
        feed_forward: int = 512,
        clipping: float = 50.0,
        train_nodes: int = 100,
    ) -> None:
        super().__init__()
        self.width, self.depth, self.train_nodes = width, depth, train_nodes
        self.clipping, self.scale = clipping, 1 / (heads * math.sqrt(width))
        self.embed = FullLinear(FEATURES, width)
        self.layers = nn.ModuleList(ReversibleLayer(width, heads, feed_forward) for _ in range(depth))
        self.parts = nn.Linear(width, 4 * width, bias=False)  # of the graph, the first, the current, visited nodes
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)

    def encode(self, coords: Tensor) -> Encoded:
        """coords (batch, nodes, 2) in the unit square."""
        features = features_of(coords)
        first = second = self.embed(features)
        for layer in self.layers:
            first, second = layer(first, second)
        return Encoded(second, features)

    def prepare(self, encoded: Encoded) -> Prepared:
        """What is computed once for all decisions."""
        nodes, features = encoded
        graph, of_first, of_current, of_visited = self.query(self.parts(nodes).unflatten(2, (4, -1))).unbind(2)
        of_visited = of_visited / nodes.shape[1]
        of_graph = graph.mean(dim=1, keepdim=True)
        distances = pairwise_distances(features, features).to(nodes)
        return Prepared(nodes, self.key(nodes), of_first, of_current, of_visited, of_graph, distances)

    def decide(self, prepared: Prepared, context: Tensor, current: Tensor, mask: Tensor) -> Tensor:
        """Logits (batch, tours, nodes) of the next stop of each tour, -inf where it cannot go; see `Pomo.decide`."""
        p = prepared
        visited = torch.isneginf(mask).to(p.of_visited.dtype) @ p.of_visited
        query = rows_of(p.of_first, context) + rows_of(p.of_current, current) + visited + p.of_graph
        return torch.add(mask, self._fits(query, p.keys, rows_of(p.distances, current)), alpha=self.clipping)

    def path_rows(self, coords: Tensor) -> Tensor:
        """coords (batch, nodes, 2) of the TSP -> rows (batch, nodes, 5 width + 24): all that `decide_path` reads.

        What all nodes together add to a query lies in each row.
        """
        encoded = self.encode(coords)
        p = self.prepare(encoded)
        whole = (p.of_graph + p.of_visited.sum(dim=1, keepdim=True)).expand_as(p.keys)
        return torch.cat([p.keys, p.of_first, p.of_current, p.of_visited, whole, encoded.features], dim=-1)

    def decide_path(self, rows: Tensor) -> Tensor:
        """rows (batch, 1 + available + 1, 5 width + 24) of [current, available..., where the tour closes] -> logits.

        These (batch, available) are those of `decide` of a tour that began at the last row, and has visited all others.
        """
        keys, of_first, of_current, of_visited, whole, features = rows.split([*[self.width] * 5, FEATURES], dim=-1)
        query = of_first[:, -1:] + of_current[:, :1] + whole[:, :1] - of_visited[:, 1:-1].sum(dim=1, keepdim=True)
        fits = self._fits(query, keys[:, 1:-1], pairwise_distances(features[:, :1], features[:, 1:-1]))
        return self.clipping * fits[:, 0]

    def _fits(self, query: Tensor, keys: Tensor, distances: Tensor) -> Tensor:
        """Within -1 and 1: query (batch, tours, width), keys (batch, nodes, width), distances (batch, tours, nodes)."""
        products = in_all_digits(torch.matmul, query * self.scale, keys.transpose(1, 2))
        return torch.sub(products.to(distances.dtype), distances, alpha=1 / math.sqrt(2)).tanh()


def features_of(coords: Tensor) -> Tensor:
    """coords (batch, nodes, 2) -> (batch, nodes, 24): the angles of the eight symmetric images, then their coordinates.

    An angle is that of atan2, which in the unit square is the published arctangent of y / x, and 0 at the origin, where
    that is no number.
    """
    x, y = coords.unbind(-1)
    images = [(a, b) for u, v in ((x, y), (y, x)) for b in (v, 1 - v) for a in (u, 1 - u)]
    angles = [torch.atan2(b, a) for a, b in images]
    return torch.stack([*angles, *(each for image in images for each in image)], dim=-1)
