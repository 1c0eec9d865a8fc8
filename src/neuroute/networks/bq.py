"""BQ-NCO for the TSP: a transformer over the nodes that are left (Drakulic et al., 2023; scaling, Tables 5 and 6)."""

import math

import torch
from torch import Tensor, nn

from neuroute.networks.base import PathNetwork
from neuroute.networks.residual_layer import ResidualLayer


class Bq(PathNetwork):
    """Scores the nodes that may follow the current one; all layers run on the coordinates of what is left.

    3,107,539 parameters as published: D (4 W^2 + 2 W F + 3 W + F + 2) + 6 W + 1.

    ReZero layers whose attention scores are not divided by sqrt(d_k), with a bias on keys and values only.  What
    tells the first and the last row apart is a learnt vector that is added to each.
    """

    def __init__(
        self, depth: int = 9, width: int = 192, heads: int = 12, feed_forward: int = 512, train_nodes: int = 100
    ) -> None:
        super().__init__()
        self.width, self.depth, self.train_nodes = width, depth, train_nodes
        self.embed = nn.Linear(2, width)
        self.ends = nn.Embedding(2, width)  # added to the current node, and to the destination
        layers = [
            ResidualLayer(width, heads, feed_forward, rezero=True, bias="key-value", scaled=False) for _ in range(depth)
        ]
        self.layers = nn.ModuleList(layers)
        self.head = nn.Linear(width, 1)
        # Published are Q, K, V and output as (heads, width, d_k) tensors, on which Xavier's rule takes width * d_k for
        # the fan in and heads * d_k for the fan out: 0.0429 for the published shape.
        bound = math.sqrt(6 / (width * (width // heads) + width))
        for layer in layers:
            nn.init.uniform_(layer.qkv.weight, -bound, bound)
            nn.init.uniform_(layer.out.weight, -bound, bound)

    def encode(self, coords: Tensor) -> Tensor:
        """coords (rows, nodes, 2) -> the coordinates: there is no encoder."""
        return coords

    def hidden(self, rows: Tensor, attention_scale: float = 1.0) -> Tensor:
        """Last-layer states (batch, 1 + available + 1, width) of [current, available..., destination]."""
        h = self.embed(rows)
        first, last = self.ends.weight
        h = torch.cat([h[:, :1] + first, h[:, 1:-1], h[:, -1:] + last], dim=1)
        for layer in self.layers:
            h = layer(h, attention_scale)
        return h

    def decide(self, rows: Tensor, attention_scale: float = 1.0) -> Tensor:
        """rows (batch, 1 + available + 1, 2) -> logits (batch, available)."""
        return self.head(self.hidden(rows, attention_scale)).squeeze(-1)[:, 1:-1]
