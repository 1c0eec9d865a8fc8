"""The adaptation attention-free module: nodes count by their keys, distances and number (icam, Section 3.2).

Between each pair of nodes stands one number alone, the adaptation bias; memory is O(n d + n n).
"""

import math

import torch
from torch import Tensor, nn

from neuroute.networks.blocks.all_digits import at_least_float32
from neuroute.networks.blocks.layers import PostNorm, scaled_linear

MARGIN = 0.9  # of the exponents that a number's format holds


def slope(alpha: Tensor, log_n: float) -> Tensor:
    """The adaptation function is f(N, d) = slope * d = -alpha log2(N) d (icam, Eq. 12)."""
    return -log_n * alpha


def one_alpha() -> nn.Parameter:
    """alpha starts at 1 and may take either sign (icam, Table 5).

    The paper writes of one alpha; the published code has one for each encoder layer, for the decoder's module and for
    the compatibility, 14 in all.
    """
    return nn.Parameter(torch.ones(()))


def weigh(keys: Tensor, values: Tensor) -> Tensor:
    """keys and values (batch, nodes, W) -> (batch, nodes, 2 W): exp(K) V and exp(K), what all queries share.

    Each channel's largest key is subtracted: that cancels in `aafm`.  A key that is further below it than 78 (637 in
    float64) counts as that far below, so that no sum is ever 0.
    """
    keys, values = (at_least_float32(part) for part in (keys, values))
    lowest = MARGIN * math.log(torch.finfo(keys.dtype).tiny)
    weights = (keys - keys.amax(dim=1, keepdim=True).detach()).clamp(min=lowest).exp()
    return torch.cat([weights * values, weights], dim=-1)


def aafm(query: Tensor, pairs: Tensor, bias: Tensor | None = None) -> Tensor:
    """sigmoid(Q) * (exp(A) (exp(K) V)) / (exp(A) exp(K)) (icam, Eq. 3): query (batch, queries, W) -> same shape.

    pairs: of `weigh`.  bias: A (batch, queries, nodes), -inf at what is hidden, of which no query may hide all; None
    for no bias (AFM, icam, Table 9), where all queries see the same mean.

    exp(A) is divided by its sum over each row, which cancels: a softmax, that overflows at no distance and at no size.
    What underflows then is of no account, as long as no channel's keys differ by more than about 70 (600).
    """
    mixed = pairs.mean(dim=1, keepdim=True) if bias is None else torch.softmax(bias, dim=-1) @ pairs
    above, below = mixed.chunk(2, dim=-1)
    return torch.sigmoid(query) * (above / below)


class AafmLayer(PostNorm):
    """h = norm(x + AAFM(x))        out = norm(h + FFN(h))

    3 W^2 + 2 W F + 5 W + F + 1 parameters: as published Q, K and V have no bias, there are no heads, and nothing is
    projected afterwards.  Without `adaptation` (AFM) there is no alpha, so one fewer.
    """

    def __init__(self, width: int, feed_forward: int, adaptation: bool = True) -> None:
        super().__init__(width, feed_forward)
        self.qkv = nn.Linear(width, 3 * width, bias=False)  # one product for all three
        self.alpha = one_alpha() if adaptation else None

    def forward(self, x: Tensor, distances: Tensor | None, log_n: float) -> Tensor:
        """x (batch, nodes, width) -> same shape; distances (batch, nodes, nodes), not read by AFM."""
        query, keys, values = scaled_linear(x, self.qkv).chunk(3, dim=-1)
        bias = None if self.alpha is None or distances is None else slope(self.alpha, log_n) * distances
        return self.finish(x, aafm(query, weigh(keys, values), bias))
