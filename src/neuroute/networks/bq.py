"""BQ-NCO: a transformer over the nodes that are left (Drakulic et al., 2023), for the TSP and the CVRP."""

import math
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from neuroute.networks.base import PathNetwork
from neuroute.networks.blocks.layers import ResidualLayer, alpha, score_layers
from neuroute.networks.blocks.linear_cross_attention import CrossLayer, CrossModule, score_streams, through
from neuroute.networks.blocks.precision import FullLinear, in_products


class ReZeroCrossLayer(CrossLayer):
    """h = x + a1 * MHA(x, context)        out = h + a2 * FFN(h)

    4 W^2 + 2 W F + 2 W + F + 2 parameters: a1 and a2 are learnt and start at 0.  Of the attention's projections the
    values' alone has a bias.  (BQ's keys have one too, which the softmax cancels: it adds the same to all scores of a
    query.)
    """

    def __init__(self, width: int, heads: int, feed_forward: int) -> None:
        super().__init__(width, heads, feed_forward)
        self.scale = 1.0
        self.out: ReZeroOutput = ReZeroOutput(width)  # type: ignore[assignment]  # all that is asked of it is alike
        self.alpha2 = alpha()
        bound = published_bound(width, heads)
        for weight in (self.query.weight, self.key_value.weight, self.out.matrix):
            nn.init.uniform_(weight, -bound, bound)


class ReZeroOutput(nn.Module):
    """y = a1 * matrix (x + value_bias): what follows the heads, with the same `weight` and `bias` as a linear layer.

    An average of values that are all shifted by b is shifted by b: a bias of the values is one of what they make.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.matrix = nn.Parameter(torch.empty(width, width))
        self.value_bias = nn.Parameter(torch.zeros(width))
        self.alpha1 = alpha()

    @property
    def weight(self) -> Tensor:
        return self.alpha1 * self.matrix

    @property
    def bias(self) -> Tensor:
        return self.weight @ self.value_bias

    def forward(self, x: Tensor) -> Tensor:
        weight = self.weight
        return F.linear(x, weight, weight @ self.value_bias)


class ReZeroCrossModule(CrossModule):
    """Representatives look at all nodes, then all nodes at them (sit, Eq. 3 and 4), as BQ-NCO's layers look.

    Both directions begin as the identity.
    """

    def __init__(self, width: int, heads: int, feed_forward: int) -> None:
        super().__init__(width, heads, feed_forward)
        self.gather = ReZeroCrossLayer(width, heads, feed_forward)
        self.spread = ReZeroCrossLayer(width, heads, feed_forward)


def published_bound(width: int, heads: int) -> float:
    """Initial values of BQ's attention lie within this.

    Published are Q, K, V and output as (heads, width, d_k) tensors, on which Xavier's rule takes width * d_k for the
    fan in and heads * d_k for the fan out: 0.0429 for the published shape.
    """
    return math.sqrt(6 / (width * (width // heads) + width))


class Bq(PathNetwork):
    """Scores the nodes that may follow the current one; all layers run on the coordinates of what is left.

    3,107,539 parameters as published: D (4 W^2 + 2 W F + 3 W + F + 2) + 6 W + 1.

    ReZero layers whose attention scores are not divided by sqrt(d_k), with a bias on keys and values only.  What
    tells the first and the last row apart is a learnt vector that is added to each.
    """

    def __init__(
        self, depth: int = 9, width: int = 192, heads: int = 12, feed_forward: int = 512, train_nodes: int = 100
    ) -> None:
        super().__init__()
        self.width, self.depth, self.train_nodes = width, depth, train_nodes
        self.embed = FullLinear(2, width)
        self.ends = nn.Embedding(2, width)  # added to the current node, and to the destination
        layers = [
            ResidualLayer(width, heads, feed_forward, rezero=True, bias="key-value", scaled=False) for _ in range(depth)
        ]
        self.layers = nn.ModuleList(layers)
        self.head = FullLinear(width, 1)
        bound = published_bound(width, heads)
        for layer in layers:
            nn.init.uniform_(layer.qkv.weight, -bound, bound)
            nn.init.uniform_(layer.out.weight, -bound, bound)

    def encode(self, coords: Tensor) -> Tensor:
        """coords (rows, nodes, 2) -> the coordinates: there is no encoder."""
        return coords

    def hidden(self, rows: Tensor, attention_scale: float = 1.0) -> Tensor:
        """Last-layer states (batch, 1 + available + 1, width) of [current, available..., destination]."""
        h = self._tokens(rows)
        for layer in self.layers:
            h = layer(h, attention_scale)
        return h

    def decide(self, rows: Tensor, attention_scale: float = 1.0) -> Tensor:
        """rows (batch, 1 + available + 1, 2) -> logits (batch, available)."""
        scores = score_layers(self.layers, self._tokens(rows), self.head, slice(None), attention_scale)
        return scores.squeeze(-1)[:, 1:-1]

    def _tokens(self, rows: Tensor) -> Tensor:
        h = in_products(self.embed(rows))
        first, last = self.ends.weight.to(h)
        return torch.cat([h[:, :1] + first, h[:, 1:-1], h[:, -1:] + last], dim=1)


SLACK = 1e-5  # share of the capacity below which loads are taken for equal


class BqCvrp(PathNetwork):
    """Scores the customers that may come next, each twice: straight from the current stop, and through the depot.

    D (4 W^2 + 2 W F + 3 W + F + 2) + 9 W + 2 parameters.  Every row holds coordinates, demand and what is left in the
    vehicle, as shares of the capacity; layers and the vectors that tell the first and the last row apart are those of
    `Bq`.  As published, a customer that does not fit cannot be reached straight: that logit is -inf.

    `attention="cross"` (sit, Table 10: "BQ+Cross-Attention") makes each of the D layers a cross-attention module:
    2 D (4 W^2 + 2 W F + 2 W + F + 2) + (r + 8) W + 2 parameters, r `representatives`.  The paper says no more than
    that self-attention is replaced.  Settled here, as near to BQ as it goes:
    * representatives are SIT's: the destination (the depot) and the current stop, this one r times.  What tells them
      apart is BQ's: a learnt vector that is added to each, where SIT has a linear layer for each.
    * both halves of a module have BQ's ReZero factors on attention and FFN, scores that are not divided by sqrt(d_k)
      and a bias on the values; as many modules as there were layers.

    With `nearest`, a decision sees of the customers only so many that are nearest to the current stop; the others'
    logits are -inf (SIGD's published code: 250).
    """

    problem = "cvrp"

    def __init__(
        self,
        depth: int = 9,
        width: int = 192,
        heads: int = 12,
        feed_forward: int = 512,
        attention: Literal["self", "cross"] = "self",
        representatives: int = 15,
        nearest: int | None = None,
        train_nodes: int = 100,
    ) -> None:
        super().__init__()
        if nearest is not None and nearest < 1:
            raise ValueError(f"the {nearest} nearest customers: at least one is needed")
        if attention not in ("self", "cross"):
            raise ValueError(f"attention '{attention}' is neither 'self' nor 'cross'")
        if representatives < 1:
            raise ValueError(f"{representatives} representatives of the current stop: at least one is needed")
        self.width, self.depth, self.train_nodes, self.nearest = width, depth, train_nodes, nearest
        self.repetitions = representatives if attention == "cross" else 1
        self.embed = FullLinear(4, width)
        self.ends = nn.Embedding(self.repetitions + 1, width)  # added to the current stop, and to the destination
        layers = [_layer(width, heads, feed_forward, attention) for _ in range(depth)]
        self.layers = nn.ModuleList(layers)
        self.head = FullLinear(width, 2)

    def encode(self, coords: Tensor, demand: Tensor) -> Tensor:
        """coords (rows, 1 + customers, 2), demand (rows, 1 + customers), depot first -> both (..., 3), unchanged."""
        return torch.cat([coords, demand[..., None]], dim=-1)

    def hidden(self, rows: Tensor, remaining: Tensor, attention_scale: float = 1.0) -> Tensor:
        """Last-layer states (batch, 1 + available + 1, width), of the current stop's repetitions the last one's."""
        h = through(self.layers, *self._streams(rows, remaining), attention_scale)[1]
        return h[:, self.repetitions - 1 :]

    def _streams(self, rows: Tensor, remaining: Tensor) -> tuple[Tensor, Tensor]:
        """Representatives, and all tokens: (batch, tokens, width)."""
        load = remaining[:, None, None].to(rows).expand(-1, rows.shape[1], 1)
        h = in_products(self.embed(torch.cat([rows, load], dim=-1)))
        ends = self.ends.weight.to(h)
        current, depot = h[:, :1] + ends[:-1], h[:, -1:] + ends[-1]
        return torch.cat([current, depot], dim=1), torch.cat([current, h[:, 1:-1], depot], dim=1)

    def decide(self, rows: Tensor, remaining: Tensor, attention_scale: float = 1.0) -> Tensor:
        """rows (batch, 1 + available + 1, 3), remaining (batch,) -> (batch, available, 2): straight, by the depot."""
        available = rows.shape[1] - 2
        if self.nearest is not None and self.nearest < available:
            away = (rows[:, 1:-1, :2] - rows[:, :1, :2]).norm(dim=-1)
            near = away.topk(self.nearest, dim=1, largest=False).indices[..., None]
            nearest = rows[:, 1:-1].gather(1, near.expand(-1, -1, rows.shape[2]))
            of_near = self._score(torch.cat([rows[:, :1], nearest, rows[:, -1:]], dim=1), remaining, attention_scale)
            none = of_near.new_full((len(rows), available, 2), -math.inf)
            return none.scatter(1, near.expand(-1, -1, 2), of_near)
        return self._score(rows, remaining, attention_scale)

    def _score(self, rows: Tensor, remaining: Tensor, attention_scale: float) -> Tensor:
        z, h = self._streams(rows, remaining)
        logits = score_streams(self.layers, z, h, self.head, slice(self.repetitions, -1), attention_scale)
        too_much = rows[:, 1:-1, 2] > remaining[:, None].to(rows) + SLACK
        closed = torch.stack([too_much, torch.zeros_like(too_much)], dim=-1)
        return logits.masked_fill(closed, -math.inf)


def _layer(width: int, heads: int, feed_forward: int, attention: str) -> nn.Module:
    """One layer with BQ's initial values."""
    if attention == "cross":
        return ReZeroCrossModule(width, heads, feed_forward)
    layer = ResidualLayer(width, heads, feed_forward, rezero=True, bias="key-value", scaled=False)
    bound = published_bound(width, heads)
    for weight in (layer.qkv.weight, layer.out.weight):
        nn.init.uniform_(weight, -bound, bound)
    return layer
