"""LEHD for the TSP: a light encoder, a heavy decoder (Luo et al., 2023; a baseline of scaling, Tables 5, 6 and 20)."""

import torch
from torch import Tensor, nn

from neuroute.networks.base import PathNetwork
from neuroute.networks.residual_layer import ResidualLayer


class Lehd(PathNetwork):
    """Scores the nodes that may follow the current one, on embeddings that see the whole instance.

    1,431,681 parameters as published: (D + 1) (4 W^2 + 2 W F + 2 W + F) + 3 W^2 + 7 W + 1, where `unused` is counted.

    `encode` is one layer over all nodes; at a test it runs once per instance, in training at every decision (with
    gradient) on the nodes of the sub-path.

    Left out: the published code adds 1e-7 to probabilities up to 1e-5 before it takes their logarithm.  The choice is
    the same; the gradient differs where the label has less than 1e-5 (by p / (p + 1e-7)), and only there.
    """

    def __init__(
        self, depth: int = 6, width: int = 128, heads: int = 8, feed_forward: int = 512, train_nodes: int = 100
    ) -> None:
        super().__init__()

        def layer() -> ResidualLayer:
            return ResidualLayer(width, heads, feed_forward, rezero=False, bias="output", scaled=True)

        self.width, self.depth, self.train_nodes = width, depth, train_nodes
        self.embed = nn.Linear(2, width)
        self.encoder = layer()
        self.start = nn.Linear(width, width)  # the node where the path has to end
        self.current = nn.Linear(width, width)
        # In the published checkpoints and size, but in no computation: it never has a gradient.
        self.unused = nn.Linear(width, width).requires_grad_(False)
        self.layers = nn.ModuleList(layer() for _ in range(depth))
        self.head = nn.Linear(width, 1)

    def encode(self, coords: Tensor) -> Tensor:
        """coords (rows, nodes, 2) -> embeddings (rows, nodes, width); each depends on all nodes that are given."""
        return self.encoder(self.embed(coords))

    def hidden(self, rows: Tensor, attention_scale: float = 1.0) -> Tensor:
        """Last-layer states (batch, 1 + available + 1, width) of [current, available..., destination]."""
        h = torch.cat([self.current(rows[:, :1]), rows[:, 1:-1], self.start(rows[:, -1:])], dim=1)
        for layer in self.layers:
            h = layer(h, attention_scale)
        return h

    def decide(self, rows: Tensor, attention_scale: float = 1.0) -> Tensor:
        """rows (batch, 1 + available + 1, width) from `encode` -> logits (batch, available)."""
        return self.head(self.hidden(rows, attention_scale)).squeeze(-1)[:, 1:-1]
