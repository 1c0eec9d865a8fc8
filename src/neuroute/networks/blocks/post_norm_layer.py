"""Mixing of nodes and an FFN, each on a residual that is normalised afterwards: the layer of POMO and ICAM."""

import math
from typing import Any

from torch import Tensor, nn

from neuroute.networks.blocks.attention import attend, split_heads
from neuroute.networks.blocks.norms import InstanceNorm, Norm, feed_forward, scaled_linear


class PostNorm(nn.Module):
    """h = norm(x + mixed)        out = norm(h + FFN(h))

    2 W F + 5 W + F parameters; the FFN (ReLU) has biases.  How nodes are mixed is up to the layer.  With feed_forward 0
    there is none: whoever builds on this brings another `feed`.
    """

    def __init__(self, width: int, feed_forward: int, norm: type[Norm] = InstanceNorm) -> None:
        super().__init__()
        self.attention_norm = norm(width)
        if feed_forward:
            self.up = nn.Linear(width, feed_forward)
            self.down = nn.Linear(feed_forward, width)
        self.feed_forward_norm = norm(width)

    def feed(self, h: Tensor, *more: Any) -> Tensor:
        """h (batch, nodes, width) -> same shape."""
        return feed_forward(h, self.up, self.down)

    def finish(self, x: Tensor, mixed: Tensor, *more: Any) -> Tensor:
        """x and mixed (batch, nodes, width) -> same shape; more: to `feed`, which may ask for more than nodes."""
        h = self.attention_norm.join(x, mixed)
        return self.feed_forward_norm.join(h, self.feed(h, *more))


class PostNormLayer(PostNorm):
    """Multi-head attention mixes the nodes.

    4 W^2 + 2 W F + 6 W + F parameters: Q, K and V have no bias, the output projection does.
    """

    def __init__(self, width: int, heads: int, feed_forward: int, norm: type[Norm] = InstanceNorm) -> None:
        if width % heads:
            raise ValueError(f"width {width} is not divisible by {heads} heads")
        super().__init__(width, feed_forward, norm)
        self.heads = heads
        self.scale = 1 / math.sqrt(width // heads)
        self.qkv = nn.Linear(width, 3 * width, bias=False)  # one product for all three
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor, *more: Any) -> Tensor:
        """x (batch, nodes, width) -> same shape; more: see `finish`."""
        batch, nodes, width = x.shape
        q, k, v = split_heads(scaled_linear(x, self.qkv), self.heads)
        attended = attend(q, k, v, self.scale).transpose(1, 2).reshape(batch, nodes, width)
        return self.finish(x, scaled_linear(attended, self.out), *more)
