"""Attention and an FFN on residuals, without normalisation: the layer of LEHD and of BQ-NCO."""

import math
from collections.abc import Iterable
from typing import Any, Literal

import torch.nn.functional as F
from torch import Tensor, nn

from neuroute.networks.blocks.attention import attend, split_heads
from neuroute.networks.blocks.norms import alpha, feed_forward, scaled_linear, scored_feed_forward
from neuroute.networks.kernels.linear import linear


class ResidualLayer(nn.Module):
    """h = x + a1 * MHA(x)        out = h + a2 * FFN(h)

    The two networks differ in what the options say:
    `rezero`  a1 and a2 are learnt and start at 0; without it they are 1.
    `bias`    of the attention's projections: on the `output` side, or on the `key-value` side.  (The softmax cancels
              the key's: it adds the same to all scores of a query.)
    `scaled`  scores are divided by sqrt(d_k).

    With feed_forward 0 there is no FFN: whoever builds on this brings another `add_feed`.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        feed_forward: int,
        *,
        rezero: bool,
        bias: Literal["output", "key-value"],
        scaled: bool,
    ) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"width {width} is not divisible by {heads} heads")
        self.heads = heads
        self.scale = 1 / math.sqrt(width // heads) if scaled else 1.0
        self.qkv = nn.Linear(width, 3 * width, bias=False)  # one product for all three
        self.key_value_bias = nn.Parameter(self.qkv.weight.new_zeros(2 * width)) if bias == "key-value" else None
        self.out = nn.Linear(width, width, bias=bias == "output")
        if feed_forward:
            self.up = nn.Linear(width, feed_forward)
            self.down = nn.Linear(feed_forward, width)
        self.alpha1 = alpha() if rezero else None
        self.alpha2 = alpha() if rezero else None

    def add_feed(self, h: Tensor, *more: Any) -> Tensor:
        """h (rows, tokens, width) -> same shape."""
        return feed_forward(h, self.up, self.down, self.alpha2, h)

    def forward(self, x: Tensor, attention_scale: float = 1.0, *more: Any) -> Tensor:
        """x (rows, tokens, width) -> same shape.  Scores are multiplied by attention_scale besides their own scale.

        more: to `add_feed`, which may ask for more than tokens.
        """
        return self.add_feed(self._add_attended(x, attention_scale), *more)

    def score(self, x: Tensor, head: nn.Linear, nodes: slice, attention_scale: float = 1.0, *more: Any) -> Tensor:
        """head(self(x, ...)[:, nodes]) of x (rows, tokens, width): (rows, some tokens, outputs), in fewer products."""
        h = self._add_attended(x, attention_scale)
        return scored_feed_forward(h, self.up, self.down, self.alpha2, head, nodes)

    def _add_attended(self, x: Tensor, attention_scale: float) -> Tensor:
        rows, tokens, width = x.shape
        bias = None if self.key_value_bias is None else F.pad(self.key_value_bias, (width, 0))  # none for the query
        q, k, v = split_heads(linear(x, (self.qkv.weight, bias)), self.heads)
        attended = attend(q, k, v, attention_scale * self.scale).transpose(1, 2).reshape(rows, tokens, width)
        return scaled_linear(attended, self.out, self.alpha1, x)


def score_layers(layers: Iterable[nn.Module], x: Tensor, head: nn.Linear, nodes: slice, *more: Any) -> Tensor:
    """head of the nodes of x (rows, tokens, width) after these layers, the last of which scores; more: to all."""
    *before, last = layers
    for layer in before:
        x = layer(x, *more)
    assert isinstance(last, ResidualLayer)
    return last.score(x, head, nodes, *more)
