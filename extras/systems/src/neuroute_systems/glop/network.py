"""GLOP's revisers: attention models that rebuild a path of so many nodes (Ye et al., 2024; Kool et al., 2019).

A reviser is for blocks of one size.  `Glop` holds one for each size, and takes paths as every path network does.
`GlopPartition` says which customers belong on a route, as probabilities of edges, by anisotropic gated graph
convolution on sparse graphs of constant out-degree (Bresson and Laurent, 2018; DIMES).
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from neuroute.networks.base import Count, PathNetwork, RoutingNetwork
from neuroute_systems.blocks.gated_graph import EdgeHead, GatedGraph
from neuroute_systems.blocks.path_attention import PathAttention, Prepared

LEAST_EXTENT = 1e-10  # of a path whose nodes coincide


def fit_to_square(points: Tensor) -> Tensor:
    """points (batch, m, 2) moved, with axes swapped where it is higher than wide, and scaled: x spans [0, 1].

    y begins at 0 and reaches no further than x.  Paths keep their shape; where all nodes coincide they come to 0.
    """
    points = points - points.amin(dim=1, keepdim=True)
    extent = points.amax(dim=1, keepdim=True)
    points = torch.where(extent[..., 1:] > extent[..., :1], points.flip(2), points)
    return points / (extent.amax(dim=2, keepdim=True) + LEAST_EXTENT)


class Glop(PathNetwork):
    """A reviser for each size of block; where they are `shared`, one for all.

    A path goes to the reviser of the smallest block that is no shorter than it, or of the largest.  It is moved and
    scaled as `fit_to_square` says, so that one reviser can serve blocks of several sizes.  How many random insertions
    a revision starts from, where nothing else is said, are `insertions`: of tours no longer than the largest block, of
    longer ones, of large ones, and of TSPLIB's.
    """

    def __init__(
        self,
        depth: int = 6,
        width: int = 128,
        heads: int = 8,
        feed_forward: int = 512,
        clipping: float = 10.0,
        blocks: Sequence[int] = (100, 50, 20),
        shared: bool = False,
        insertions: Sequence[int] = (35, 10, 1, 128),
        train_nodes: int = 100,
    ) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"width {width} is not divisible by {heads} heads")
        if list(blocks) != sorted(set(blocks), reverse=True) or not blocks or min(blocks) < 4:
            raise ValueError(f"blocks {list(blocks)} must be falling numbers of at least 4 nodes")
        self.width, self.depth, self.train_nodes = width, depth, train_nodes
        self.blocks, self.insertions, self.heads = tuple(blocks), tuple(insertions), heads
        self.revisers = nn.ModuleList(
            PathAttention(depth, width, heads, feed_forward, clipping) for _ in blocks[: 1 if shared else None]
        )

    def reviser(self, nodes: int) -> PathAttention:
        """The one for paths of so many nodes."""
        fitting = [i for i, block in enumerate(self.blocks) if block >= nodes]
        number = fitting[-1] if fitting and len(self.revisers) > 1 else 0
        chosen_reviser: PathAttention = self.revisers[number]  # type: ignore[assignment]
        return chosen_reviser

    def encode(self, coords: Tensor) -> Tensor:
        """coords (batch, nodes, 2), where the path starts first -> rows (batch, nodes, 4 width)."""
        prepared: Prepared = self.reviser(coords.shape[1]).prepare(fit_to_square(coords))
        return prepared.rows()

    def decide(self, rows: Tensor, attention_scale: float = 1.0) -> Tensor:
        """rows (batch, 1 + available + 1, 4 width) -> logits (batch, available); no factor depends on the size."""
        return self.reviser(0).decide(rows)  # rows hold all that is learnt: any will do

    def build(self, rows: Tensor) -> Tensor:
        """rows (batch, m, 4 width) on the CPU -> the greedy orders (2 batch, m) of their places, from either end.

        Each goes from place 0 to place m - 1; the second half was built backwards.
        """
        from neuroute_systems.glop.paths import paths_from_either_end  # numba takes half a second

        return paths_from_either_end(rows, self.heads)


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
    directions of its ends, twice.  A node is among its own neighbours.  With `near`, as published for CVRPLIB, they are
    ranked by the cosine and what the distance lacks of 1 together, and these two are the features; the instance's least
    cosine is added to the cosine before, and its largest divides that.
    """

    problem = "cvrp"
    own_method = "glop:partition"  # by which alone it is decoded

    def __init__(
        self, depth: int = 12, width: int = 48, neighbours: int = 100, near: bool = False, train_nodes: int = 1000
    ) -> None:
        super().__init__()
        self.width, self.depth, self.train_nodes = width, depth, train_nodes
        self.neighbours, self.near = neighbours, near
        self.graph = GatedGraph(depth, width, 3, 2)
        self.head = EdgeHead(width)

    def encode(self, coords: Tensor, demand: Tensor) -> Heat:
        """coords (batch, 1 + V, 2), demand (batch, 1 + V) in shares of the capacity, depot first.

        Weights are probabilities over a node's edges, divided by the smallest of the instance.
        """
        out = coords - coords[:, :1]
        radius, angle = out.norm(dim=-1), torch.atan2(out[..., 1], out[..., 0])
        neighbours, features = self._similar(coords, out, radius)
        edges = self.head(self.graph(torch.stack([demand, radius, angle], dim=-1), features, neighbours))
        odds = edges.squeeze(-1).float().softmax(dim=-1)
        return Heat(neighbours, odds / (odds.flatten(1).amin(dim=1)[:, None, None] + FLOOR) + FLOOR)

    def count_flops(self, count: Count, coords: Tensor, demand: Tensor) -> tuple[int, int]:
        """See `base.Count`.  Decisions are none: a walk reads what is there."""
        return count(lambda: self.encode(coords, demand))[1], 0

    def decide(self, heat: Heat, context: Tensor, current: Tensor, mask: Tensor) -> Tensor:
        """Log-weights (batch, tours, n) of where tours may go next, -inf where the mask is; the context is idle.

        current (batch, tours) int64: where they are; mask (batch, tours, n): -inf where they may not go, 0 elsewhere.
        """
        instance = torch.arange(len(current), device=current.device)[:, None]
        every = heat.weights.new_full(mask.shape, FLOOR)
        weights = every.scatter(2, heat.neighbours[instance, current], heat.weights[instance, current])
        return weights.log() + mask

    def _similar(self, coords: Tensor, out: Tensor, radius: Tensor) -> tuple[Tensor, Tensor]:
        """The k nodes (batch, n, k) most similar to each, mostly with itself, and two features (batch, n, k, 2)."""
        n = coords.shape[1]
        k, rows = min(self.neighbours, n), max(1, NEIGHBOURS_AT_ONCE // (len(coords) * n))
        direction = out / radius.clamp(min=1e-10)[..., None]
        parts = torch.arange(n, device=coords.device).split(rows)

        def cosines(part: Tensor) -> Tensor:
            return direction[:, part] @ direction.transpose(1, 2)

        if self.near:
            ranges = torch.stack([torch.stack(cosines(part).flatten(1).aminmax(dim=1)) for part in parts])
            least, most = ranges[:, 0].amin(dim=0)[:, None, None], ranges[:, 1].amax(dim=0)[:, None, None]
        neighbours, features = [], []
        for part in parts:
            cosine = closeness = cosines(part)
            if self.near:
                cosine = (cosine + least) / most.clamp(min=1e-10)  # published so: the least is added
                closeness = 1 - torch.cdist(coords[:, part], coords, compute_mode="donot_use_mm_for_euclid_dist")
            nearest = (cosine + closeness).topk(k, dim=2).indices
            neighbours.append(nearest)
            features.append(torch.stack([closeness.gather(2, nearest), cosine.gather(2, nearest)], dim=-1))
        return torch.cat(neighbours, dim=1), torch.cat(features, dim=1)
