"""The network of paper `toy`: a Transformer over the nodes that are left, which scores the next one."""

import torch
from torch import Tensor, nn

from neuroute.networks.base import PathNetwork


class Net(PathNetwork):
    def __init__(self, depth: int = 2, width: int = 32, heads: int = 4, train_nodes: int = 20) -> None:
        super().__init__()
        self.depth, self.width, self.train_nodes = depth, width, train_nodes
        self.embed = nn.Linear(2, width)
        self.ends = nn.Parameter(0.1 * torch.randn(2, width))  # marks the current node and the destination
        options = {"dropout": 0.0, "batch_first": True, "norm_first": True}
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, heads, 4 * width, **options) for _ in range(depth)
        )
        self.head = nn.Linear(width, 1)

    def encode(self, coords: Tensor) -> Tensor:
        """Coordinates (batch, n, 2) -> rows (batch, n, width)."""
        rows: Tensor = self.embed(coords)
        return rows

    def decide(self, rows: Tensor, attention_scale: float = 1.0) -> Tensor:
        """Rows (batch, 1 + k + 1, width) of the current node, the k left and the destination -> logits (batch, k)."""
        first, left, last = rows[:, :1] + self.ends[0], rows[:, 1:-1], rows[:, -1:] + self.ends[1]
        hidden = torch.cat([first, left, last], dim=1)
        for layer in self.layers:
            hidden = layer(hidden)
        logits: Tensor = self.head(hidden[:, 1:-1]).squeeze(-1)
        return logits
