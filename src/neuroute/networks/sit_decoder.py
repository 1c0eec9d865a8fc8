"""SIT's decoder, for both problems: representative nodes and cross-attention modules (sit, Section 4.2)."""

from typing import Literal

import torch
from torch import Tensor, nn

from neuroute.networks.linear_cross_attention import CrossModule
from neuroute.networks.residual_layer import ResidualLayer

Attention = Literal["cross", "self"]


class SitDecoder(nn.Module):
    """Last-layer states of the representatives and of what is available.

    Representatives are the destination and the current node, this one several times (sit, Appendix C), each with a
    linear of its own: (r + 1) (I W + W) parameters for I inputs and r repetitions.  The paper writes W_1 and W_2
    (Eq. 2), without a bias for the TSP; the published sizes need a bias, and as many linears as there are
    representatives.

    With `attention="self"` (sit, Table 3) all tokens attend to all, the representatives as tokens among them: `depth`
    layers of LEHD's form.  The paper does not say how many; one for each module fits its times and memory.
    """

    def __init__(
        self,
        inputs: int,
        depth: int,
        width: int,
        heads: int,
        feed_forward: int,
        repetitions: int,
        attention: Attention,
    ) -> None:
        super().__init__()
        if repetitions < 1:
            raise ValueError(f"{repetitions} repetitions of the current node: at least one is needed")
        if attention not in ("cross", "self"):
            raise ValueError(f"attention '{attention}' is neither 'cross' nor 'self'")
        self.width, self.repetitions = width, repetitions
        self.start = nn.Linear(inputs, width)  # where the path has to end
        self.current = nn.Linear(inputs, repetitions * width)  # one linear for each repetition, in one product
        if attention == "cross":
            layers: list[nn.Module] = [CrossModule(width, heads, feed_forward) for _ in range(depth)]
        else:
            layers = [
                ResidualLayer(width, heads, feed_forward, rezero=False, bias="output", scaled=True)
                for _ in range(depth)
            ]
        self.layers = nn.ModuleList(layers)

    def forward(self, current: Tensor, available: Tensor, destination: Tensor, attention_scale: float) -> Tensor:
        """current and destination (batch, 1, inputs), available (batch, a, width) -> (batch, r + a + 1, width).

        In this order: the repetitions of the current node, what is available, the destination.
        """
        start = self.start(destination)
        repeated = self.current(current).view(-1, self.repetitions, self.width)
        h = torch.cat([repeated, available, start], dim=1)
        z = torch.cat([repeated, start], dim=1)
        for layer in self.layers:
            if isinstance(layer, CrossModule):
                z, h = layer(z, h, attention_scale)
            else:
                h = layer(h, attention_scale)
        return h
