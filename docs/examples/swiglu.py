"""The decoder-only network with SwiGLU in place of the ReLU FFN: a variant in one file."""

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from neuroute.networks.blocks.layers import scaled_linear
from neuroute.networks.decoder_only import DecoderOnly, GatedDecoderLayer


class SwigluLayer(GatedDecoderLayer):
    """x + a2 * (silu(x W_1) * x W_2) W_3, with a hidden width of 8 W / 3: about as many parameters as the ReLU FFN."""

    def __init__(self, width: int, heads: int, **options: Any) -> None:
        super().__init__(width, heads, **options)
        hidden = 8 * width // 3
        self.up = nn.Linear(width, 2 * hidden)
        self.down = nn.Linear(hidden, width)

    def feed_forward(self, x: Tensor) -> Tensor:
        gate, value = self.up(x).chunk(2, dim=-1)
        return x + scaled_linear(F.silu(gate) * value, self.down, self.alpha2)


class SwigluDecoderOnly(DecoderOnly):
    layer = SwigluLayer
