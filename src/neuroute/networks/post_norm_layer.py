"""Mixing of nodes and an FFN, each on a residual that is normalised afterwards: the encoder layer of POMO and ICAM."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from neuroute.networks.attention import attend


class InstanceNorm(nn.Module):
    """Every channel of an instance has mean 0 and variance 1 over its nodes, then a learnt scale and shift.

    2 W parameters.  The variance is the biased one; nothing is remembered from training.
    """

    def __init__(self, width: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        """x (batch, nodes, width) -> same shape."""
        x = x.to(torch.promote_types(x.dtype, torch.float32))
        centred = x - x.mean(dim=1, keepdim=True)
        variance = (centred * centred).mean(dim=1, keepdim=True)  # on a CPU var_mean takes ten times as long
        return torch.addcmul(self.bias, centred, self.weight * (variance + self.eps).rsqrt())


class PostNorm(nn.Module):
    """h = norm(x + mixed)        out = norm(h + FFN(h))

    2 W F + 5 W + F parameters; the FFN (ReLU) has biases.  How nodes are mixed is up to the layer.
    """

    def __init__(self, width: int, feed_forward: int) -> None:
        super().__init__()
        self.attention_norm = InstanceNorm(width)
        self.up = nn.Linear(width, feed_forward)
        self.down = nn.Linear(feed_forward, width)
        self.feed_forward_norm = InstanceNorm(width)

    def finish(self, x: Tensor, mixed: Tensor) -> Tensor:
        """x and mixed (batch, nodes, width) -> same shape."""
        h: Tensor = self.attention_norm(x + mixed)
        return self.feed_forward_norm(h + self.down(F.relu(self.up(h))))


class PostNormLayer(PostNorm):
    """Multi-head attention mixes the nodes.

    4 W^2 + 2 W F + 6 W + F parameters: Q, K and V have no bias, the output projection does.
    """

    def __init__(self, width: int, heads: int, feed_forward: int) -> None:
        if width % heads:
            raise ValueError(f"width {width} is not divisible by {heads} heads")
        super().__init__(width, feed_forward)
        self.heads = heads
        self.scale = 1 / math.sqrt(width // heads)
        self.qkv = nn.Linear(width, 3 * width, bias=False)  # one product for all three
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """x (batch, nodes, width) -> same shape."""
        batch, nodes, width = x.shape
        qkv = self.qkv(x).view(batch, nodes, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        attended = attend(q, k, v, self.scale).transpose(1, 2).reshape(batch, nodes, width)
        return self.finish(x, self.out(attended))
