"""A layer on two streams, each of which adds to the other (Pointerformer, after RevNets)."""

import math

import torch.nn.functional as F
from torch import Tensor, nn

from neuroute.networks.blocks.attention import attend, split_heads
from neuroute.networks.blocks.norms import BatchNorm


class ReversibleLayer(nn.Module):
    """y1 = x1 + MHA(norm(x2))        y2 = x2 + FFN(norm(y1))

    4 W^2 + 2 W F + 5 W + F parameters: no biases in attention, GELU, batch norms.  Inputs follow from outputs, by which
    the published code saves memory.  The gradients are the same with everything kept, as it is here; running statistics
    are then updated once a batch, not twice.
    """

    def __init__(self, width: int, heads: int, feed_forward: int) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"width {width} is not divisible by {heads} heads")
        self.heads = heads
        self.attention_norm, self.feed_forward_norm = BatchNorm(width), BatchNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, feed_forward)
        self.down = nn.Linear(feed_forward, width)

    def forward(self, x1: Tensor, x2: Tensor) -> tuple[Tensor, Tensor]:
        """x1, x2 (batch, nodes, width) -> the same of both."""
        d_k = x2.shape[2] // self.heads
        q, k, v = split_heads(self.qkv(self.attention_norm(x2)), self.heads)
        attended = attend(q, k, v, 1 / math.sqrt(d_k))
        y1 = x1 + self.out(attended.transpose(1, 2).flatten(2))
        return y1, x2 + self.down(F.gelu(self.up(self.feed_forward_norm(y1))))
