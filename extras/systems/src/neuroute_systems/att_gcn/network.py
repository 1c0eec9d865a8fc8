"""Att-GCN: edges of small sub-graphs, which together are a map of an instance of any size (Fu et al., 2021)."""

import math
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn

from neuroute.core.device import stream_seed
from neuroute.networks.base import Count
from neuroute.networks.blocks.attention import pairwise_distances
from neuroute.networks.blocks.precision import FullLinear
from neuroute_systems.blocks.gated_graph import EdgeHead, GatedGraphLayer, nearest_nodes
from neuroute_systems.edge_maps.network import EdgeMapNetwork, Map, symmetric_map

FAR, NEAR, ITSELF = range(3)  # tags of an edge
PAIRS_AT_ONCE = 1 << 17  # of sub-graphs whose norms are taken together
TINY = 1e-8  # added to how often a pair occurs, as published


class AttGcn(EdgeMapNetwork):
    """Says how likely each pair of nodes of a dense graph of `train_nodes` is an edge of its tour.

    D (4 W^2 + 8 W) + 2 W^2 + 8.5 W + 2 parameters: 11,054,402 as published.  The published code has no attention.

    A sub-graph is moved and scaled to the unit square.  It is a node with its nearest ones; once each node is in one,
    a node with some that are drawn among twice as many.  There are so many that a node is in `coverage` of them on
    average; the heat of a pair is the mean over the sub-graphs that both are in.  Norms look at the sub-graphs of one
    instance, as many at a time as have `PAIRS_AT_ONCE` pairs.  In each a node has `near` nearest ones, that are tagged.
    """

    def __init__(
        self,
        depth: int = 30,
        width: int = 300,
        near: int = 20,
        coverage: int = 5,
        actions: int = 100,
        train_nodes: int = 50,
    ) -> None:
        super().__init__()
        if width % 2:
            raise ValueError(f"width {width} must be even: half of an edge is its length, half its tag")
        self.width, self.depth, self.train_nodes = width, depth, train_nodes
        self.near, self.coverage, self.actions = near, coverage, actions
        self.embed_nodes = FullLinear(2, width, bias=False)
        self.embed_lengths = FullLinear(1, width // 2, bias=False)
        self.embed_tags = nn.Embedding(3, width // 2)
        how = {"gate": "new", "total": "gated-mean", "norm": "batch-untracked", "activation": "relu", "shared": True}
        self.layers = nn.ModuleList(GatedGraphLayer(width, **how) for _ in range(depth))  # type: ignore[arg-type]
        self.head = EdgeHead(width, 2, activation="relu")

    def classify(self, coords: Tensor) -> Tensor:
        """coords (batch, m, 2) -> logits (batch, m, m, 2) of each pair to be no edge of the tour, or one."""
        batch, m, _ = coords.shape
        coords = fit(coords)
        tags = torch.full((batch, m, m), FAR, device=coords.device)
        tags = tags.scatter(2, nearest_nodes(coords, self.near)[0], NEAR)
        tags.diagonal(dim1=1, dim2=2).fill_(ITSELF)
        lengths = self.embed_lengths(pairwise_distances(coords, coords)[..., None])
        nodes, edges = self.embed_nodes(coords), torch.cat([lengths, self.embed_tags(tags)], dim=-1)
        everyone = torch.arange(m, device=coords.device).expand(batch, m, m)
        for layer in self.layers:
            nodes, edges = layer(nodes, edges, everyone)
        logits: Tensor = self.head(edges)
        return logits

    def encode(self, coords: Tensor, first: int = 0) -> tuple[Tensor, ...]:
        """Sub-graphs (1, graphs, m) of coords (1, n, 2), and how likely their pairs are edges, (1, graphs, m, m)."""
        graphs = torch.from_numpy(np.stack(list(self.sub_graphs(coords[0], first)))).to(coords.device)
        parts = graphs.split(max(1, PAIRS_AT_ONCE // graphs.shape[1] ** 2))
        likely = [self.classify(coords[0][part]).float().softmax(dim=-1)[..., 1] for part in parts]
        return graphs[None], torch.cat(likely)[None]

    def sub_graphs(self, coords: Tensor, first: int) -> Iterator[np.ndarray]:
        """Nodes (m,) of each sub-graph of coords (n, 2); what is drawn hangs on the instance's number."""
        n, m = len(coords), min(self.train_nodes, len(coords))
        if m == n:
            yield np.arange(n)
            return
        wide = nearest_nodes(coords[None], 2 * m - 1)[0][0].cpu().numpy()
        random = np.random.Generator(np.random.Philox(key=stream_seed(0, first)))
        covered, centre, number = np.zeros(n, np.int64), 0, 0
        while number < math.ceil(self.coverage * n / m) or not covered.all():
            others = random.permutation(wide[centre]) if covered.all() else wide[centre]
            nodes = np.array([centre, *others[: m - 1]])
            covered[nodes] += 1
            yield nodes
            least = np.flatnonzero(covered == covered.min())
            centre, number = int(random.choice(least)), number + 1

    def edges(self, points: np.ndarray, *encoded: np.ndarray, search: bool) -> Map:
        """See `EdgeMapNetwork`: one map for both."""
        graphs, likely = encoded
        n, m = len(points), graphs.shape[1]
        pairs = (graphs[:, :, None] * n + graphs[:, None]).ravel()
        each, place, often = np.unique(pairs, return_inverse=True, return_counts=True)
        heat = np.bincount(place, likely.ravel().astype(np.float64)) / (often + TINY)
        assert m > 1
        return symmetric_map(n, each // n, each % n, heat)

    def count_flops(self, count: Count, coords: Tensor) -> tuple[int, int]:
        """See `base.Count`: of as many sub-graphs as cover the nodes on average."""
        n = coords.shape[1]
        m = min(self.train_nodes, n)
        each = count(lambda: self.classify(coords[:, :m]))[1]
        return (each if m == n else self.coverage * each // m * n), 0


def fit(coords: Tensor) -> Tensor:
    """coords (batch, m, 2) moved to begin at 0, and scaled so that the longer side is 1; 0 where nodes coincide."""
    coords = coords - coords.amin(dim=1, keepdim=True)
    largest = coords.amax(dim=(1, 2), keepdim=True)
    return coords / torch.where(largest > 0, largest, 1.0)
