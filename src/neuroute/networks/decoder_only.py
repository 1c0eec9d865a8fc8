"""The decoder-only model of the scaling study (scaling, Appendix B)."""

import math
from typing import ClassVar

import torch
from torch import Tensor, nn

from neuroute.networks.base import PathNetwork
from neuroute.networks.blocks.all_digits import FullLinear, in_products
from neuroute.networks.blocks.gated_decoder import GatedDecoderLayer


class DecoderOnly(PathNetwork):
    """Scores the nodes that may follow the current one on the way to the destination.

    D (13 W^2 + 7 W + 2) + 2 W^2 + 6 W + 1 parameters with gate and ReZero.

    A constructive model has two parts: `encode`, once per instance, and `decide`, once per decision on the rows
    that are still open, in the order [current, available..., destination].  Here there is no encoder: the rows are
    the coordinates.
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
        """coords (rows, nodes, 2) -> the per-node rows that `decide` reads, here the coordinates themselves."""
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
