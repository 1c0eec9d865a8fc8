"""ELG: POMO with a distance penalty and a local policy over the nearest nodes (Gao et al., 2024), for TSP and CVRP."""

import math
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from neuroute.networks.blocks.attention import fits, pairwise_distances
from neuroute.networks.blocks.layers import CvrpEmbedding, LoadContext, rows_of
from neuroute.networks.blocks.precision import in_all_digits
from neuroute.networks.pomo import Pomo

FAR = -1.0  # the score of what is not near
SLACK = 1e-6  # so that no distance or load is divided by 0


class Encoded(NamedTuple):
    """An instance as the decoder reads it."""

    nodes: Tensor  # (batch, nodes, width)
    coords: Tensor  # (batch, nodes, 2)
    demand: Tensor | None  # (batch, nodes) in shares of the capacity; None of the TSP


class Prepared(NamedTuple):
    """What the decisions of an instance share."""

    nodes: Tensor  # (batch, nodes, width): logits are products with them
    offsets: Tensor  # (batch, 1, nodes): which are added to these
    keys: Tensor  # (batch, heads, nodes, d_k)
    values: Tensor
    of_context: Tensor  # what a tour's query gets of where it began, or of a full vehicle; see `contexts`
    of_current: Tensor  # (batch, nodes, width): what it gets of where the tour is
    coords: Tensor  # (batch, nodes, 2)
    distances: Tensor  # (batch, nodes, nodes)
    demand: Tensor | None  # (batch, nodes)


class Near(NamedTuple):
    """The neighbours of where each tour is, nearest first; of the CVRP the depot before them."""

    nodes: Tensor  # (batch, tours, k) int64
    share: Tensor  # (batch, tours, k): distances over the largest one; of what is closed 0
    open: Tensor  # (batch, tours, k) bool


def rank_codes(ranks: int, width: int) -> Tensor:
    """Sinusoidal codes (ranks, width) of the ranks 0, 1, ...: the sines of all frequencies, then the cosines.

    Frequencies are 10000^(-i / (width / 2 - 1)) for i = 0..width/2-1, as in the published code.
    """
    half = width // 2
    frequencies = 10_000 ** (-torch.arange(half, dtype=torch.float64) / (half - 1))
    angles = torch.arange(ranks, dtype=torch.float64)[:, None] * frequencies
    return torch.cat([angles.sin(), angles.cos()], dim=-1).to(torch.get_default_dtype())


class LocalPolicy(nn.Module):
    """Scores neighbours by one attention to them, whose query is learnt and the same everywhere.

    w F + 4 w^2 + 3 w parameters, w its width and F the numbers of a neighbour: e = W x + b + code(rank); one
    query attends to all e; the score of a neighbour is out(attended) . e / sqrt(w).

    As the query is the same everywhere, products with its keys are those with one vector a head, and as e is linear in
    x, no e is ever made: what a neighbour costs is a few products of F numbers.  The results are the same.
    """

    codes: Tensor

    def __init__(self, features: int, ranks: int, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.width, self.heads = width, heads
        self.embed = nn.Linear(features, width)
        self.state = nn.Parameter(torch.empty(width).uniform_(-1, 1))
        self.query = nn.Linear(width, width, bias=False)
        self.key_value = nn.Linear(width, 2 * width, bias=False)
        self.out = nn.Linear(width, width)
        self.register_buffer("codes", rank_codes(ranks, width), persistent=False)

    def forward(self, x: Tensor, is_open: Tensor) -> Tensor:
        """x (batch, tours, k, F), nearest first; is_open (batch, tours, k) bool -> scores (batch, tours, k).

        Those of what is closed mean nothing, nor do any where nothing is open.
        """
        return in_all_digits(self._scores, x.to(self.embed.weight.dtype), is_open)

    def _scores(self, x: Tensor, is_open: Tensor) -> Tensor:
        constant = self.embed.bias + self.codes[: x.shape[2]]  # (k, w)
        keys, values = (part.unflatten(0, (self.heads, -1)) for part in self.key_value.weight.chunk(2))  # (h, d, w)
        query = self.query(self.state).view(self.heads, -1, 1)
        probe = (query * keys).sum(dim=1) / math.sqrt(self.width // self.heads)  # (h, w)
        fits = x @ (probe @ self.embed.weight).T + constant @ probe.T  # (batch, tours, k, h)
        fits = fits.masked_fill(~is_open[..., None], torch.finfo(fits.dtype).min)
        share = fits.softmax(dim=2).transpose(2, 3)  # (batch, tours, h, k)
        context = (share @ x) @ self.embed.weight.T + share @ constant  # (batch, tours, h, w)
        context = torch.einsum("bthw,hdw->bthd", context, values).flatten(2)
        attended = self.out(context) / math.sqrt(self.width)  # (batch, tours, w)
        scores: Tensor = (x @ (attended @ self.embed.weight)[..., None]).squeeze(-1) + attended @ constant.T
        return scores


class Elg(Pomo):
    """`Pomo` whose scores are changed before the tanh: what is far costs, and a local policy adds its own.

    As Pomo, and 32 F + 4,192 parameters of the local policy, F numbers of a neighbour: 1,274,016 as published for the
    TSP.  `local=False` leaves the local policy out: the network of the first steps of training, and an ablation of ELG.

    The `neighbours` nearest open nodes get minus their distance over the largest of them, all others -1.  As in the
    published code, a direction is an angle in radians, and what is not near gets no local score.  As many neighbours as
    there are take part; nodes that are closed are hidden from the others.
    """

    features: ClassVar[int] = 2  # that the local policy has of a neighbour: distance and direction
    joins: ClassVar[tuple[str, ...]] = ("local",)
    depots: ClassVar[int] = 0
    pair_channels = 1

    def __init__(
        self,
        depth: int = 6,
        width: int = 128,
        heads: int = 8,
        feed_forward: int = 512,
        clipping: float = 50.0,
        neighbours: int = 30,
        local: bool = True,
        train_nodes: int = 100,
    ) -> None:
        super().__init__(depth, width, heads, feed_forward, clipping, train_nodes)
        if neighbours < 1:
            raise ValueError(f"neighbours is {neighbours}, the least is 1")
        self.neighbours = neighbours
        self.local = LocalPolicy(self.features, neighbours + self.depots) if local else None

    def encode(self, coords: Tensor, *demand: Tensor) -> Encoded:  # type: ignore[override]
        """coords (batch, nodes, 2), of the CVRP demand (batch, nodes) in shares of the capacity too, depot first."""
        return Encoded(super().encode(coords, *demand), coords, demand[0] if demand else None)

    def prepare(self, encoded: Encoded) -> Prepared:  # type: ignore[override]
        """What is computed once for all decisions."""
        nodes, coords, demand = encoded
        shared = super().prepare(nodes)[:-1]  # decisions by the kernel would be without the local policy
        return Prepared(*shared, coords, pairwise_distances(coords, coords), demand)

    def _fits(self, p: Prepared, context: Tensor, current: Tensor, mask: Tensor) -> Tensor:  # type: ignore[override]
        """How well each node fits each tour, with its scores: (batch, tours, nodes)."""
        distances = rows_of(p.distances, current)
        near = self._near(distances, mask)
        offsets = _of(p.coords, near.nodes) - rows_of(p.coords, current)[:, :, None]
        features = self._local_features(near, offsets, p.demand, context)
        return super()._fits(p, context, current, mask) + self._scores(near, features, distances)  # type: ignore[arg-type]

    def path_rows(self, coords: Tensor) -> Tensor:
        """coords (batch, nodes, 2) of the TSP -> rows (batch, nodes, 5 width + 3): all that `decide_path` reads."""
        p = self.prepare(self.encode(coords))
        keys, values = (part.transpose(1, 2).flatten(2) for part in (p.keys, p.values))
        return torch.cat([p.nodes, keys, values, p.of_context, p.of_current, p.offsets.transpose(1, 2), coords], dim=-1)

    def decide_path(self, rows: Tensor) -> Tensor:
        """rows (batch, 1 + available + 1, 5 width + 3) of [current, available..., where the tour closes] -> logits.

        These (batch, available) are those of `decide` of a tour that began at the last row.
        """
        nodes, keys, values, of_first, of_current, offsets, place = rows.split([*[self.width] * 5, 1, 2], dim=-1)
        here, there = place[:, :1], place[:, 1:-1]
        distances = pairwise_distances(here, there)
        near = self._near(distances, torch.zeros_like(distances))
        features = self._local_features(near, _of(there, near.nodes) - here[:, :, None], None, distances)
        query = of_first[:, -1:] + of_current[:, :1]
        keys, values = (self._heads(part[:, 1:-1]) for part in (keys, values))
        scores = fits(self._attended(query, keys, values, None), nodes[:, 1:-1], offsets[:, 1:-1].transpose(1, 2))
        return self.clipping * (scores + self._scores(near, features, distances))[:, 0].tanh_()

    def _near(self, distances: Tensor, mask: Tensor) -> Near:
        """distances, mask (batch, tours, nodes) -> the neighbours of where each tour is."""
        nodes, apart, is_open = _nearest(distances, mask, self.neighbours)
        return Near(nodes, apart / (apart.amax(dim=-1, keepdim=True) + SLACK), is_open)

    def _local_features(self, near: Near, offsets: Tensor, demand: Tensor | None, context: Tensor) -> Tensor:
        """What the local policy sees (batch, tours, k, F) of neighbours that are `offsets` (..., 2) away."""
        return torch.stack([near.share, torch.atan2(offsets[..., 1], offsets[..., 0])], dim=-1)

    def _scores(self, near: Near, features: Tensor, like: Tensor) -> Tensor:
        """Penalty and local score of each node (batch, tours, nodes)."""
        score = -near.share
        if self.local is not None:
            score = score + self.local(features, near.open)
        return torch.full_like(like, FAR).scatter(2, near.nodes, score.to(like))


class ElgCvrp(Elg):
    """ELG for the CVRP: 1,258,304 parameters as published.

    The depot is a neighbour of every stop, and the first one: it counts for no place among the nearest.  As in the
    published code its distance, direction and demand are 0, for the penalty and for the local policy, wherever the
    vehicle is.  Demands are shares of what is left in the vehicle.
    """

    problem = "cvrp"
    embedding = CvrpEmbedding
    context_of = LoadContext
    features = 3
    depots = 1

    def __init__(
        self,
        depth: int = 6,
        width: int = 128,
        heads: int = 8,
        feed_forward: int = 512,
        clipping: float = 50.0,
        neighbours: int = 40,
        local: bool = True,
        train_nodes: int = 100,
    ) -> None:
        super().__init__(depth, width, heads, feed_forward, clipping, neighbours, local, train_nodes)

    def _near(self, distances: Tensor, mask: Tensor) -> Near:
        customers, apart, is_open = _nearest(distances[..., 1:], mask[..., 1:], self.neighbours)
        share = apart / apart.amax(dim=-1, keepdim=True).clamp(min=SLACK)
        is_open = torch.cat([mask[..., :1] == 0, is_open], dim=-1)
        return Near(F.pad(customers + 1, (1, 0)), F.pad(share, (1, 0)), is_open)

    def _local_features(self, near: Near, offsets: Tensor, demand: Tensor | None, context: Tensor) -> Tensor:
        assert demand is not None
        load = _of(demand[..., None], near.nodes) / context.clamp(min=SLACK)[..., None, None]
        features = torch.cat([super()._local_features(near, offsets, None, context), load.to(near.share)], dim=-1)
        features[..., 0, :] = 0  # of the depot
        return features


def _nearest(distances: Tensor, mask: Tensor, most: int) -> tuple[Tensor, Tensor, Tensor]:
    """At most so many of the nearest open nodes, nearest first, and their distances (batch, tours, k).

    Where fewer are open, closed ones fill the places, with a distance of 0; the third tensor says which are open.
    """
    apart, nodes = (distances - mask).topk(min(most, distances.shape[-1]), dim=-1, largest=False)
    is_open = apart.isfinite()
    return nodes, apart.masked_fill(~is_open, 0), is_open


def _of(rows: Tensor, nodes: Tensor) -> Tensor:
    """rows (batch, n, width) of nodes (batch, tours, k) -> (batch, tours, k, width)."""
    out: Tensor = rows_of(rows, nodes.flatten(1)).unflatten(1, nodes.shape[1:])
    return out
