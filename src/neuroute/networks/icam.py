"""ICAM: distances and the size of the instance in encoder and decoder (icam, Section 3), for the TSP and the CVRP."""

import math
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from neuroute.networks.blocks.attention import SATURATED, ClippedNetwork, clipped, pairwise_distances
from neuroute.networks.blocks.layers import (
    AafmLayer,
    CvrpEmbedding,
    LoadContext,
    TourContext,
    TspEmbedding,
    aafm,
    one_alpha,
    rows_of,
    slope,
    weigh,
)
from neuroute.networks.blocks.precision import in_all_digits
from neuroute.networks.kernels.decision import AttentionFreeDecisions, fits_attention_free


class Encoded(NamedTuple):
    """An instance as the decoder reads it."""

    nodes: Tensor  # (batch, nodes, width)
    distances: Tensor | None  # (batch, nodes, nodes); None where nothing depends on them
    log_n: float  # log2 of the instance's size


class Prepared(NamedTuple):
    """What the decisions of an instance share."""

    nodes: Tensor  # (batch, nodes, width), as encoded; logits are products with them
    pairs: Tensor  # (batch, nodes, 2 width): keys and values, see `weigh`
    of_context: Tensor  # what a tour's query gets of where it began, or of a full vehicle; see `contexts`
    of_current: Tensor  # (batch, nodes, width): what it gets of where the tour is
    distances: Tensor | None
    log_n: float
    decisions: AttentionFreeDecisions | None = None  # all of this for a kernel, where there is one


class Icam(ClippedNetwork):
    """Scores the nodes that may come next in each of several tours of an instance, as `Pomo` does.

    D (3 W^2 + 2 W F + 5 W + F + 1) + 4 W^2 + 3 W + 2 parameters: 2,242,446 as published for the TSP.

    `adaptation=False` takes the adaptation bias from all attention-free modules (AFM: 13 parameters fewer),
    `compatibility=False` takes it from the logits (without CAB: one fewer): the rows of icam, Table 9.

    What the paper leaves open is as in the published code: alphas of their own for each layer, the decoder's module and
    the logits; the bias inside the tanh, so that what is far away is at -`clipping`; products with the encoded
    nodes over sqrt(W); no projection of an AAFM's output, nor of the nodes before these products.
    A node's distance to itself is 0, and it attends to itself.
    """

    problem: ClassVar[str] = "tsp"
    depots: ClassVar[int] = 0  # nodes that do not count for the size
    embedding: ClassVar[type[nn.Module]] = TspEmbedding
    context_of: ClassVar[type[TourContext] | type[LoadContext]] = TourContext
    pair_channels = 3  # numbers that are there of each pair of nodes at a time: distance, bias, weight

    def __init__(
        self,
        depth: int = 12,
        width: int = 128,
        feed_forward: int = 512,
        clipping: float = 50.0,
        adaptation: bool = True,
        compatibility: bool = True,
        train_nodes: int = 100,
    ) -> None:
        super().__init__()
        self.width, self.depth, self.train_nodes = width, depth, train_nodes
        self.clipping = clipping
        self.embed = self.embedding(width)
        self.layers = nn.ModuleList(AafmLayer(width, feed_forward, adaptation) for _ in range(depth))
        self.context: TourContext | LoadContext = self.context_of(width)
        self.key_value = nn.Linear(width, 2 * width, bias=False)
        self.alpha = one_alpha() if adaptation else None
        self.compatibility_alpha = one_alpha() if compatibility else None

    def encode(self, coords: Tensor, *demand: Tensor) -> Encoded:
        """coords (batch, nodes, 2), of the CVRP demand (batch, nodes) in shares of the capacity too, the depot first.

        The alphas are learnt for coordinates in the unit square.
        """
        needless = self.alpha is None and self.compatibility_alpha is None
        distances = None if needless else pairwise_distances(coords, coords)
        log_n = math.log2(coords.shape[1] - self.depots)
        h: Tensor = self.embed(coords, *demand)
        for layer in self.layers:
            h = layer(h, distances, log_n)
        return Encoded(h, distances, log_n)

    def prepare(self, encoded: Encoded) -> Prepared:
        """What is computed once for all decisions."""
        nodes, distances, log_n = encoded
        pairs = weigh(*self.key_value(nodes).chunk(2, dim=-1))
        of_context, of_current = self.context(nodes)
        decisions = None
        if distances is not None and fits_attention_free(pairs):
            alphas = self.alpha, self.compatibility_alpha
            near, far = (0.0 if alpha is None else float(slope(alpha, log_n)) for alpha in alphas)
            shared = pairs, distances, nodes, of_current, of_context
            decisions = AttentionFreeDecisions(*shared, (near, far), SATURATED[torch.float32])
        return Prepared(nodes, pairs, of_context, of_current, distances, log_n, decisions)

    def path_rows(self, coords: Tensor) -> Tensor:
        """coords (batch, nodes, 2) of the TSP -> rows (batch, nodes, 5 width + 2): all that `decide_path` reads.

        The last two are the coordinates times log2(N), so that a sub-path keeps the size that it was encoded with.
        """
        p = self.prepare(self.encode(coords))
        return torch.cat([p.nodes, p.pairs, p.of_context, p.of_current, p.log_n * coords], dim=-1)

    def decide_path(self, rows: Tensor) -> Tensor:
        """rows (batch, 1 + available + 1, 5 width + 2) -> logits (batch, available)."""
        width = self.width
        nodes, pairs, of_first, of_current, place = rows.split([width, 2 * width, width, width, 2], dim=-1)
        query = of_first[:, -1:] + of_current[:, :1]
        distances = pairwise_distances(place[:, :1], place[:, 1:-1])
        mask = torch.zeros_like(distances)
        fits = self._fits_of(query, nodes[:, 1:-1], pairs[:, 1:-1], mask, distances, 1.0)
        return clipped(fits, mask, self.clipping)[:, 0]

    def _fits(self, p: Prepared, context: Tensor, current: Tensor, mask: Tensor) -> Tensor:
        distances = None if p.distances is None else rows_of(p.distances, current)
        query = self.context.query(p.of_context, p.of_current, context, current)
        return self._fits_of(query, p.nodes, p.pairs, mask, distances, p.log_n)

    def _fits_of(
        self, query: Tensor, nodes: Tensor, pairs: Tensor, mask: Tensor, distances: Tensor | None, log_n: float
    ) -> Tensor:
        """query (batch, tours, width), nodes and pairs of the instance; distances and mask (batch, tours, nodes)."""
        query = aafm(query, pairs, _biased(mask, distances, self.alpha, log_n))
        fits = in_all_digits(torch.matmul, query * (1 / math.sqrt(self.width)), nodes.transpose(1, 2))
        return _biased(fits.to(mask.dtype), distances, self.compatibility_alpha, log_n)


def _biased(x: Tensor, distances: Tensor | None, alpha: Tensor | None, log_n: float) -> Tensor:
    """x (batch, tours, nodes) and the adaptation bias, or x alone."""
    return x if distances is None or alpha is None else torch.addcmul(x, distances, slope(alpha, log_n))


class IcamCvrp(Icam):
    """Scores the depot and the customers that may come next; loads are shares of the capacity.

    D (3 W^2 + 2 W F + 5 W + F + 1) + 3 W^2 + 8 W + 2 parameters: 2,226,702 as published.  As there, the size is the
    number of customers, distances are those of the depot too, and the query knows the current stop and what is left.
    (The paper writes of first and last node for both problems.)
    """

    problem = "cvrp"
    depots = 1
    embedding = CvrpEmbedding
    context_of = LoadContext
