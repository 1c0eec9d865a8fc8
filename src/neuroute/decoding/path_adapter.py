"""A network of many starts as one that reads what is left of a path, so that searches over paths take it.

What such a network computes of visited nodes is left out of every sum, so the open rows alone decide, and fewer of them
with every decision.  A path ends where it closes its tour: its destination is the first stop that queries know.
"""

from torch import Tensor

from neuroute.networks.base import MultiStartNetwork, PathNetwork


class PathAdapter(PathNetwork):
    """`decide` and `encode` of a path network, from `path_rows` and `decide_path` of one of many starts.

    No factor depends on the size: what does, ICAM's log2(N), is in the rows.
    """

    def __init__(self, net: MultiStartNetwork) -> None:
        super().__init__()
        self.net, self.width, self.train_nodes, self.pair_channels = net, net.width, net.train_nodes, net.pair_channels

    def encode(self, coords: Tensor) -> Tensor:
        """coords (batch, nodes, 2) of an instance, or of a sub-path as one -> rows (batch, nodes, E)."""
        return self.net.path_rows(coords)

    def decide(self, rows: Tensor, attention_scale: float = 1.0) -> Tensor:
        """rows (batch, 1 + available + 1, E) of [current, available..., destination] -> logits (batch, available)."""
        return self.net.decide_path(rows)
