"""Cross-attention modules in BQ-NCO's manner: ReZero, scores that are not scaled, a bias on the values only."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from neuroute.networks.blocks.linear_cross_attention import CrossLayer, CrossModule
from neuroute.networks.blocks.rezero import alpha


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
