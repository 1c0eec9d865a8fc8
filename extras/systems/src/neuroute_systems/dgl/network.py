"""DGL: the nearest open nodes, with statistics of where the others are (Xiao et al., 2025), for the TSP."""

import math

import torch
from torch import Tensor, nn

from neuroute.networks.base import PathNetwork
from neuroute.networks.blocks.attention import pairwise_distances
from neuroute.networks.blocks.layers import ResidualLayer
from neuroute.networks.blocks.precision import FullLinear, in_products

FEATURES = 7  # x, y, how far the current stop is, mean and deviation of the distances, sine and cosine to the first
TINY = 1e-7  # added to a distance that is divided by, as published
PART = 1 << 22  # distances that are there at a time


class Dgl(PathNetwork):
    """Scores the `nearest` open nodes of the current stop; the others' logits are -inf.

    (D + 1) (4 W^2 + 2 W F + 2 W + F) + W^2 + 10 W + 1 parameters: 807,169 as published.  (The published files hold
    33,024 more, of two projections that nothing computes with.)

    A row is (x, y, mean, variance, count): of the node's distances to the `count` nodes that are still open, itself
    included.  The variance is the published recursion, which is above the exact one, the more the fewer are left.
    Both are float64 whatever the coordinates are: what is taken out one by one otherwise leaves its rounding behind.

    A decision reads the nearest open nodes and the current stop alone.  Each feature is moved and scaled to 0..1 over
    them (0 where all are equal), so x and y are by factors of their own.
    """

    remembers = True

    def __init__(
        self,
        depth: int = 3,
        width: int = 128,
        heads: int = 8,
        feed_forward: int = 512,
        nearest: int = 30,
        train_nodes: int = 100,
    ) -> None:
        super().__init__()
        if nearest < 1:
            raise ValueError(f"the {nearest} nearest nodes: at least one is needed")

        def layer() -> ResidualLayer:
            return ResidualLayer(width, heads, feed_forward, rezero=False, bias="output", scaled=True)

        self.width, self.depth, self.train_nodes, self.nearest = width, depth, train_nodes, nearest
        self.embed = FullLinear(FEATURES, width)
        self.encoder = layer()
        self.current = nn.Linear(width, width)
        self.layers = nn.ModuleList(layer() for _ in range(depth))
        self.head = FullLinear(width, 1)

    def encode(self, coords: Tensor) -> Tensor:
        """coords (batch, nodes, 2) -> rows (batch, nodes, 5) float64, of which all nodes are open.

        Distances are there of some nodes at a time, never of all pairs.
        """
        places, (batch, nodes, _) = coords.double(), coords.shape
        parts = places.split(max(1, PART // (batch * nodes)), dim=1)
        moments = [torch.var_mean(pairwise_distances(part, places), dim=-1, correction=0) for part in parts]
        variance, mean = (torch.cat(each, dim=1) for each in zip(*moments, strict=True))
        count = torch.full_like(mean, nodes)
        return torch.cat([places, torch.stack([mean, variance, count], dim=-1)], dim=-1)

    def arrive(self, rows: Tensor) -> None:
        """Take the current stop, rows[:, 0], out of the statistics of rows (batch, 1 + available + 1, 5), in place."""
        apart = (rows[..., :2] - rows[:, :1, :2]).norm(dim=-1)
        mean, variance, count = rows[..., 2:].unbind(-1)
        off, remaining = apart - mean, (count - 1).clamp(min=1)
        torch.div(count * variance - off**2, remaining, out=variance)
        mean -= off / remaining
        count -= 1

    def decide(self, rows: Tensor, attention_scale: float = 1.0) -> Tensor:
        """rows (batch, 1 + available + 1, 5) of [current, available..., first] at which it has arrived -> logits."""
        features, near = self._features(rows)
        h = self.encoder(in_products(self.embed(features.to(self.embed.weight.dtype))), attention_scale)
        h = torch.cat([self.current(h[:, :1]), h[:, 1:]], dim=1)
        for layer in self.layers:
            h = layer(h, attention_scale)
        logits: Tensor = self.head(h[:, 1:]).squeeze(-1)
        if near is None:
            return logits
        return logits.new_full((len(rows), rows.shape[1] - 2), -math.inf).scatter(1, near, logits)

    def _features(self, rows: Tensor) -> tuple[Tensor, Tensor | None]:
        """Of the current stop and the nearest open ones, (batch, 1 + k, 7), and which these are: all, if None."""
        nodes, near = rows[:, :-1], None
        apart = (nodes[..., :2] - rows[:, :1, :2]).norm(dim=-1)
        if self.nearest < rows.shape[1] - 2:
            near = apart[:, 1:].topk(self.nearest, dim=1, largest=False, sorted=False).indices
            places = torch.cat([torch.zeros_like(near[:, :1]), near + 1], dim=1)
            nodes = nodes.gather(1, places[..., None].expand(-1, -1, nodes.shape[2]))
            apart = apart.gather(1, places)
        ahead = rows[:, -1:, :2] - nodes[..., :2]
        cosine, sine = (ahead / (ahead.norm(dim=-1, keepdim=True) + TINY)).unbind(-1)
        x, y, mean, variance, _ = nodes.unbind(-1)
        features = torch.stack([x, y, apart, mean, variance.clamp(min=0).sqrt(), sine, cosine], dim=-1)
        least, most = features.aminmax(dim=1, keepdim=True)
        return ((features - least) / (most - least)).nan_to_num_(0.0), near
