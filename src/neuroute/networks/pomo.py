"""POMO: an encoder of all nodes, and a light decoder for many tours at once (Kwon et al., 2020), for TSP and CVRP."""

import math
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from neuroute.networks.blocks.attention import ClippedNetwork, attend, fits, fold, packed
from neuroute.networks.blocks.layers import CvrpEmbedding, LoadContext, PostNormLayer, TourContext, TspEmbedding
from neuroute.networks.kernels.decision import Decisions


class Prepared(NamedTuple):
    """What the decisions of an instance share."""

    nodes: Tensor  # (batch, nodes, width): logits are products with them
    offsets: Tensor  # (batch, 1, nodes): which are added to these
    keys: Tensor  # (batch, heads, nodes, d_k)
    values: Tensor
    of_context: Tensor  # what a tour's query gets of where it began, or of a full vehicle; see `contexts`
    of_current: Tensor  # (batch, nodes, width): what it gets of where the tour is
    decisions: Decisions | None = None  # all of this for a kernel, where there is one


class Pomo(ClippedNetwork):
    """Scores the nodes that may come next in each of several tours of an instance, which differ in where they start.

    D (4 W^2 + 2 W F + 6 W + F) + 5 W^2 + 4 W parameters: 1,269,760 as published for the TSP.

    As in the published code (the NEW_py_ver of POMO, TSP): instance norm; the query is made of the first and the
    current stop, without the mean of the graph; products with the encoded nodes themselves over sqrt(W), not sqrt(d_k),
    and `clipping` * tanh of them before what is visited is left out.

    A decision is about tours that have begun, not about rows that are left: `multi_start` tells that apart.
    """

    problem: ClassVar[str] = "tsp"
    embedding: ClassVar[type[nn.Module]] = TspEmbedding
    context_of: ClassVar[type[TourContext] | type[LoadContext]] = TourContext

    def __init__(
        self,
        depth: int = 6,
        width: int = 128,
        heads: int = 8,
        feed_forward: int = 512,
        clipping: float = 10.0,
        train_nodes: int = 100,
    ) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"width {width} is not divisible by {heads} heads")
        self.width, self.depth, self.train_nodes = width, depth, train_nodes
        self.heads, self.clipping = heads, clipping
        self.embed = self.embedding(width)
        self.layers = nn.ModuleList(PostNormLayer(width, heads, feed_forward) for _ in range(depth))
        self.context: TourContext | LoadContext = self.context_of(width)
        self.key_value = nn.Linear(width, 2 * width, bias=False)
        self.combine = nn.Linear(width, width)

    def encode(self, coords: Tensor, *demand: Tensor) -> Tensor:
        """coords (batch, nodes, 2), of the CVRP demand (batch, nodes) too, the depot first -> (batch, nodes, width)."""
        h: Tensor = self.embed(coords, *demand)
        for layer in self.layers:
            h = layer(h)
        return h

    def prepare(self, encoded: Tensor) -> Prepared:
        """encoded (batch, nodes, width) -> what is computed once for all decisions."""
        keys, values = (self._heads(part) for part in self.key_value(encoded).chunk(2, dim=-1))
        nodes, offsets = fold(encoded, self.combine.weight, self.combine.bias, 1 / math.sqrt(self.width))
        of_context, of_current = self.context(encoded)
        decisions = packed(keys, values, nodes, offsets, of_current, of_context)
        return Prepared(nodes, offsets, keys, values, of_context, of_current, decisions)

    def _fits(self, p: Prepared, context: Tensor, current: Tensor, mask: Tensor) -> Tensor:
        query: Tensor = self.context.query(p.of_context, p.of_current, context, current)
        return fits(self._attended(query, p.keys, p.values, mask[:, None]), p.nodes, p.offsets)

    def path_rows(self, coords: Tensor) -> Tensor:
        """coords (batch, nodes, 2) of the TSP -> rows (batch, nodes, 5 width + 1): all that `decide_path` reads."""
        p = self.prepare(self.encode(coords))
        keys, values = (part.transpose(1, 2).flatten(2) for part in (p.keys, p.values))
        nodes, offsets = p.nodes.to(keys), p.offsets.transpose(1, 2).to(keys)
        return torch.cat([nodes, keys, values, p.of_context, p.of_current, offsets], dim=-1)

    def decide_path(self, rows: Tensor) -> Tensor:
        """rows (batch, 1 + available + 1, 5 width + 1) -> logits (batch, available)."""
        nodes, keys, values, of_first, of_current, offsets = rows.split([*[self.width] * 5, 1], dim=-1)
        query = of_first[:, -1:] + of_current[:, :1]
        keys, values = (self._heads(part[:, 1:-1]) for part in (keys, values))
        scores = fits(self._attended(query, keys, values, None), nodes[:, 1:-1], offsets[:, 1:-1].transpose(1, 2))
        return self.clipping * scores[:, 0].tanh_()

    def _attended(self, query: Tensor, keys: Tensor, values: Tensor, bias: Tensor | None) -> Tensor:
        """What the attention of each query (batch, tours, width) brings together: same shape."""
        attended = attend(self._heads(query), keys, values, 1 / math.sqrt(self.width // self.heads), bias)
        return attended.transpose(1, 2).flatten(2)

    def _heads(self, x: Tensor) -> Tensor:
        out: Tensor = x.unflatten(2, (self.heads, -1)).transpose(1, 2)
        return out


class PomoCvrp(Pomo):
    """Scores the depot and the customers that may come next; loads are shares of the capacity.

    D (4 W^2 + 2 W F + 6 W + F) + 4 W^2 + 9 W parameters: 1,254,016 as published.  Depot and customers share all layers.
    """

    problem = "cvrp"
    embedding = CvrpEmbedding
    context_of = LoadContext
