"""Cross-attention through a few representative nodes: what a decision costs is linear in the nodes (sit, Section 4.1).

There are two streams, a few representatives Z and all nodes H, and no product of nodes with nodes.
"""

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from neuroute.networks.blocks.attention import attend
from neuroute.networks.blocks.layers import feed_forward, scaled_linear, score_layers, scored_feed_forward
from neuroute.networks.kernels.linear import look_up

SHARE = 15 / 16  # of the multiply-adds: folding takes more and smaller calls (SIT on a CPU: it pays from 300 nodes)


def folds(width: int, heads: int, few: int, many: int) -> bool:
    """Whether (8 W + 4 heads many) few W FLOPs are clearly fewer than those of projecting both sides."""
    return few * (width + heads * many) < SHARE * many * (width + few)


class CrossLayer(nn.Module):
    """h = x + MHA(x, context)        out = h + FFN(h)

    4 W^2 + 2 W F + 2 W + F parameters: Q, K and V have no bias, the output projection and the FFN do; no norms.

    Where the stream S is much longer than the other side, it need not be projected: q (S W_K)^T = (q W_K^T) S^T, and
    P (S W_V) = (P S) W_V.  Heads times the short side's length take the place of the width in the two products with S;
    `folds` says when that is less work.  The products with S are then all that touches it.
    """

    def __init__(self, width: int, heads: int, feed_forward: int) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"width {width} is not divisible by {heads} heads")
        self.width, self.heads = width, heads
        self.scale = 1 / math.sqrt(width // heads)
        self.query = nn.Linear(width, width, bias=False)
        self.key_value = nn.Linear(width, 2 * width, bias=False)  # one product for both
        self.out = nn.Linear(width, width)
        self.up = nn.Linear(width, feed_forward)
        self.down = nn.Linear(feed_forward, width)
        self.alpha2: Tensor | None = None  # what the FFN is multiplied by, if anything

    def forward(self, x: Tensor, context: Tensor, attention_scale: float = 1.0) -> Tensor:
        """x (batch, p, width), context (batch, q, width) -> like x."""
        h = self.add_attended(x, context, attention_scale)
        return feed_forward(h, self.up, self.down, self.alpha2, h)

    def add_attended(self, x: Tensor, context: Tensor, attention_scale: float) -> Tensor:
        """x + MHA(x, context), folded where no gradients are asked for and that is less work."""
        few, many = sorted((x.shape[1], context.shape[1]))
        if torch.is_grad_enabled() or not folds(self.width, self.heads, few, many):
            return x + self.attended(x, context, attention_scale)
        if x.shape[1] == few:
            return x + self.gathered(x, context, attention_scale)
        return look_up(x, *self.folded(context, attention_scale), self.out.bias)

    def attended(self, x: Tensor, context: Tensor, attention_scale: float) -> Tensor:
        """MHA(x, context), every side projected."""
        q, k, v = self.projected(x, context)
        return scaled_linear(attend(q, k, v, attention_scale * self.scale).transpose(1, 2).flatten(2), self.out)

    def weights(self, x: Tensor, context: Tensor, attention_scale: float) -> Tensor:
        """What `attended` weighs the context with: (batch, heads, p, q), every p sums to 1.  To be looked at."""
        q, k, _ = self.projected(x, context)
        return torch.softmax(q @ k.transpose(-1, -2) * (attention_scale * self.scale), dim=-1)

    def projected(self, x: Tensor, context: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries of x, keys and values of the context: (batch, heads, tokens, width / heads)."""
        q = self._heads(scaled_linear(x, self.query)).transpose(1, 2)
        k, v = (self._heads(part).transpose(1, 2) for part in scaled_linear(context, self.key_value).chunk(2, dim=-1))
        return q, k, v

    def gathered(self, x: Tensor, stream: Tensor, attention_scale: float) -> Tensor:
        """MHA(x, stream) of a few x, by folding."""
        key, value = self.key_value.weight.view(2, self.heads, -1, self.width)
        q = self._heads(scaled_linear(x, self.query)) * (attention_scale * self.scale)
        queries = torch.einsum("bphd,hdw->bhpw", q, key)
        queries = queries.flatten(1, 2)  # (batch, heads * p, width)
        # A GPU's fused kernels share work out by queries: for these few most of its processors would be idle.
        context = seen_by(queries, stream, fused=stream.device.type == "cpu").unflatten(1, (self.heads, -1))
        return scaled_linear(torch.einsum("bhpw,hdw->bphd", context, value).flatten(2), self.out)

    def folded(self, context: Tensor, attention_scale: float) -> tuple[Tensor, Tensor]:
        """What a stream needs of a few others: keys and values (batch, heads, q, width), for `look_up`."""
        query = self.query.weight.unflatten(0, (self.heads, -1))
        out = self.out.weight.unflatten(1, (self.heads, -1))
        k, v = (self._heads(part) for part in scaled_linear(context, self.key_value).chunk(2, dim=-1))
        keys = torch.einsum("bqhd,hdw->bhqw", k * (attention_scale * self.scale), query)
        return keys, torch.einsum("bqhd,whd->bhqw", v, out)

    def _heads(self, x: Tensor) -> Tensor:
        out: Tensor = x.unflatten(2, (self.heads, -1))
        return out


def seen_by(queries: Tensor, stream: Tensor, *, fused: bool) -> Tensor:
    """softmax(queries stream^T) stream: queries (batch, p, width), stream (batch, tokens, width) -> like queries."""
    if fused:
        return attend(queries[:, None], stream[:, None], stream[:, None], 1.0)[:, 0]
    return torch.softmax(queries @ stream.transpose(1, 2), dim=-1) @ stream


class CrossModule(nn.Module):
    """One cross-attention module: representatives look at all nodes, then all nodes at them (sit, Eq. 3 and 4).

    8 W^2 + 4 W F + 4 W + 2 F parameters: the two directions share nothing.
    """

    def __init__(self, width: int, heads: int, feed_forward: int) -> None:
        super().__init__()
        self.gather = CrossLayer(width, heads, feed_forward)
        self.spread = CrossLayer(width, heads, feed_forward)

    def forward(self, z: Tensor, h: Tensor, attention_scale: float = 1.0) -> tuple[Tensor, Tensor]:
        """z (batch, m, width) and h (batch, tokens, width), both anew."""
        z = self.gather(z, h, attention_scale)
        return z, self.spread(h, z, attention_scale)

    def score(self, z: Tensor, h: Tensor, head: nn.Linear, nodes: slice, attention_scale: float = 1.0) -> Tensor:
        """head(self(z, h)[1][:, nodes]): (batch, some tokens, outputs)."""
        layer = self.spread
        h = layer.add_attended(h, self.gather(z, h, attention_scale), attention_scale)
        return scored_feed_forward(h, layer.up, layer.down, layer.alpha2, head, nodes)


def score_streams(
    layers: Iterable[nn.Module], z: Tensor, h: Tensor, head: nn.Linear, nodes: slice, attention_scale: float
) -> Tensor:
    """head of what h[:, nodes] becomes `through` these layers."""
    *before, last = layers
    z, h = through(before, z, h, attention_scale)
    if isinstance(last, CrossModule):
        return last.score(z, h, head, nodes, attention_scale)
    return score_layers([last], h, head, nodes, attention_scale)


def through(layers: Iterable[nn.Module], z: Tensor, h: Tensor, attention_scale: float) -> tuple[Tensor, Tensor]:
    """z (batch, m, width) and h (batch, tokens, width) after modules, or after layers in which h attends to itself."""
    for layer in layers:
        if isinstance(layer, CrossModule):
            z, h = layer(z, h, attention_scale)
        else:
            h = layer(h, attention_scale)
    return z, h
