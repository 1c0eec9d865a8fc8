"""The decoder layer of the scaling study: gated attention and an FFN on ReZero residuals."""

import math

import torch
from torch import Tensor, nn

from neuroute.networks.blocks.attention import attend, split_heads
from neuroute.networks.blocks.rezero import alpha, feed_forward, scaled_linear


class GatedDecoderLayer(nn.Module):
    """One layer (scaling, Eq. 9-13): 13 W^2 + 7 W + 2 parameters with gate and ReZero.

        h = x + a1 * sigmoid(x W_G) * MHA(x)        out = h + a2 * FFN(h)

    Q, K, V carry no bias; the output projection, the gate and both FFN matrices do.
    """

    def __init__(self, width: int, heads: int, *, gate: bool = True, rezero: bool = True) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"width {width} is not divisible by {heads} heads")
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width)
        self.gate = nn.Linear(width, width) if gate else None
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.alpha1 = alpha() if rezero else None
        self.alpha2 = alpha() if rezero else None

    def forward(self, x: Tensor, attention_scale: float = 1.0) -> Tensor:
        """x (rows, tokens, width) -> same shape.  Scores are multiplied by attention_scale / sqrt(d_k)."""
        return self.feed_forward(self.attention(x, attention_scale))

    def attention(self, x: Tensor, attention_scale: float) -> Tensor:
        """x + a1 * sigmoid(x W_G) * MHA(x)"""
        rows, tokens, width = x.shape
        q, k, v = split_heads(scaled_linear(x, self.qkv), self.heads)
        attended = attend(q, k, v, attention_scale / math.sqrt(width // self.heads))
        attended = attended.transpose(1, 2).reshape(rows, tokens, width)
        # The ReZero scalars multiply the last weight of their branch (W^2 products) instead of its output (k W).
        if self.gate is None:
            return scaled_linear(attended, self.out, self.alpha1, x)
        return torch.addcmul(
            x, torch.sigmoid(scaled_linear(x, self.gate)), scaled_linear(attended, self.out, self.alpha1)
        )

    def feed_forward(self, x: Tensor) -> Tensor:
        """x + a2 * FFN(x)"""
        return feed_forward(x, self.up, self.down, self.alpha2, x)
