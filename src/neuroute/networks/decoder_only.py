"""The decoder-only model of the scaling study (scaling, Appendix B)."""

import math
from typing import ClassVar

import torch
from torch import Tensor, nn

from neuroute.networks.base import PathNetwork
from neuroute.networks.blocks.attention import attend, split_heads
from neuroute.networks.blocks.layers import alpha, feed_forward, scaled_linear
from neuroute.networks.blocks.precision import FullLinear, in_products


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


class DecoderOnly(PathNetwork):
    """Scores the nodes that may follow the current one on the way to the destination.

    D (13 W^2 + 7 W + 2) + 2 W^2 + 6 W + 1 parameters with gate and ReZero.  There is no encoder: rows are coordinates.
    """

    layer: ClassVar[type[GatedDecoderLayer]] = GatedDecoderLayer  # variants have another

    def __init__(
        self,
        depth: int,
        width: int,
        heads: int,
        *,
        gate: bool = True,
        rezero: bool = True,
        train_nodes: int = 100,
    ) -> None:
        super().__init__()
        self.width, self.depth, self.train_nodes = width, depth, train_nodes
        self.embed = FullLinear(2, width)
        self.start = nn.Linear(width, width)  # the node where the tour has to end: its start
        self.current = nn.Linear(width, width)
        self.layers = nn.ModuleList(self.layer(width, heads, gate=gate, rezero=rezero) for _ in range(depth))
        self.head = FullLinear(width, 1)

    def encode(self, coords: Tensor) -> Tensor:
        """coords (rows, nodes, 2) -> the coordinates."""
        return coords

    def attention_scale(self, nodes: int) -> float:
        """The log(n) factor for instances of `nodes` nodes: log base n_train of n_test (scaling, Eq. 16)."""
        return math.log(nodes) / math.log(self.train_nodes)

    def hidden(self, rows: Tensor, attention_scale: float = 1.0) -> Tensor:
        """Last-layer states (batch, 1 + available + 1, width) of [current, available..., destination]."""
        h = in_products(self.embed(rows))
        h = torch.cat([self.current(h[:, :1]), h[:, 1:-1], self.start(h[:, -1:])], dim=1)
        for layer in self.layers:
            h = layer(h, attention_scale)
        return h

    def decide(self, rows: Tensor, attention_scale: float = 1.0) -> Tensor:
        """rows (batch, 1 + available + 1, 2) -> logits (batch, available); start and current are left out."""
        logits: Tensor = self.head(self.hidden(rows, attention_scale)[:, 1:-1]).squeeze(-1)
        return logits
