"""A pre-norm transformer layer with RMSNorm, whose attention may know where its tokens are (pens, Appendix A.3)."""

import math
from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from neuroute.networks.blocks.attention import split_heads
from neuroute.networks.blocks.positions import rotate

Attend = Callable[[Tensor, Tensor, Tensor, float], Tensor]  # q, k, v (batch, heads, tokens, d_k), scale -> like q


class PreNormLayer(nn.Module):
    """h = x + MHA(RMSNorm(x))        out = h + FFN(RMSNorm(h))

    No biases.  Without `output_projection` the heads' outputs are added as they are.
    """

    def __init__(self, width: int, heads: int, feed_forward: int, *, output_projection: bool) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"width {width} is not divisible by {heads} heads")
        self.heads = heads
        self.scale = 1 / math.sqrt(width // heads)
        self.attention_norm = nn.RMSNorm(width, eps=1e-6)
        self.qkv = nn.Linear(width, 3 * width, bias=False)  # one product for all three
        self.out = nn.Linear(width, width, bias=False) if output_projection else None
        self.feed_forward_norm = nn.RMSNorm(width, eps=1e-6)
        self.up = nn.Linear(width, feed_forward, bias=False)
        self.down = nn.Linear(feed_forward, width, bias=False)

    def queries_keys_values(self, x: Tensor, sharpness: Tensor | None, rotation: Tensor | None) -> tuple[Tensor, ...]:
        """Three (batch, heads, tokens, d_k) tensors of x (batch, tokens, width): turned where there is a rotation.

        sharpness (batch,) multiplies the scores of an instance.
        """
        q, k, v = split_heads(self.qkv(self.attention_norm(x)), self.heads)
        if sharpness is not None:
            q = q * sharpness.view(-1, 1, 1, 1).to(q)
        if rotation is not None:
            q, k = rotate(q, rotation), rotate(k, rotation)
        return q, k, v

    def forward(
        self, x: Tensor, attend: Attend, scale: float, sharpness: Tensor | None = None, rotation: Tensor | None = None
    ) -> Tensor:
        """x (batch, tokens, width) -> same shape.  Scores are multiplied by `scale` besides 1 / sqrt(d_k)."""
        q, k, v = self.queries_keys_values(x, sharpness, rotation)
        attended = attend(q, k, v, scale * self.scale).transpose(1, 2).reshape(x.shape)
        x = x + (attended if self.out is None else self.out(attended))
        out: Tensor = x + self.down(F.relu(self.up(self.feed_forward_norm(x))))
        return out
