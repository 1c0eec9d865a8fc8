"""A network of many starts shown as one that reads what is left of a path, so that searches over paths take it.

What such a network computes of visited nodes is left out of every sum, so the open rows alone decide, and fewer of them
with every decision.  A path ends where it closes its tour: its destination is the first stop that queries know.
"""

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn


class AsPath:
    """What `decide` and `encode` of a path network are, from `path_rows` and `decide_path` of one of many starts."""

    def __init__(self, net: Any) -> None:
        self.net, self.width, self.train_nodes = net, net.width, net.train_nodes
        self.pair_channels = getattr(net, "pair_channels", 0)

    def parameters(self) -> Iterator[nn.Parameter]:
        return iter(self.net.parameters())

    def attention_scale(self, nodes: int) -> float:
        """No factor that depends on the size: what does, ICAM's log2(N), is in the rows."""
        return 1.0

    def encode(self, coords: Tensor) -> Tensor:
        """coords (batch, nodes, 2) of an instance, or of a sub-path as one -> rows (batch, nodes, E)."""
        rows: Tensor = self.net.path_rows(coords)
        return rows

    def decide(self, rows: Tensor, attention_scale: float = 1.0) -> Tensor:
        """rows (batch, 1 + available + 1, E) of [current, available..., destination] -> logits (batch, available)."""
        logits: Tensor = self.net.decide_path(rows)
        return logits
