"""SIT for the TSP: linear cross-attention, no encoder (sit, Section 4.2)."""

from torch import Tensor, nn

from neuroute.networks.base import PathNetwork
from neuroute.networks.sit_decoder import Attention, SitDecoder


class Sit(PathNetwork):
    """Scores the nodes that may follow the current one; time and memory are linear in what is left.

    2 D (4 W^2 + 2 W F + 2 W + F) + (r + 1) (W^2 + W) + 4 W + 1 parameters, r `representatives` (repetitions of the
    current node): 2,633,217 as published.  With `attention="self"` D layers instead of 2 D.

    What the paper calls the first node is the destination: in a sub-path its end, in a whole tour the node that it
    started from.

    Left out: the published code adds 1e-7 to probabilities up to 1e-5 before it takes their logarithm, as LEHD's
    does (see `Lehd`).
    """

    def __init__(
        self,
        depth: int = 6,
        width: int = 128,
        heads: int = 8,
        feed_forward: int = 512,
        representatives: int = 15,
        attention: Attention = "cross",
        train_nodes: int = 1000,
    ) -> None:
        super().__init__()
        self.width, self.depth, self.train_nodes = width, depth, train_nodes
        self.embed = nn.Linear(2, width)
        self.decoder = SitDecoder(width, depth, width, heads, feed_forward, representatives, attention)
        self.head = nn.Linear(width, 1)

    def encode(self, coords: Tensor) -> Tensor:
        """coords (rows, nodes, 2) -> the coordinates: there is no encoder."""
        return coords

    def hidden(self, rows: Tensor, attention_scale: float = 1.0) -> Tensor:
        """Last-layer states (batch, 1 + available + 1, width) of [current, available..., destination].

        Of the current node's repetitions it is the last one's.
        """
        return self._states(rows, attention_scale)[:, self.decoder.repetitions - 1 :]

    def decide(self, rows: Tensor, attention_scale: float = 1.0) -> Tensor:
        """rows (batch, 1 + available + 1, 2) -> logits (batch, available)."""
        logits: Tensor = self.head(self._states(rows, attention_scale))
        return logits[:, self.decoder.repetitions : -1].squeeze(-1)

    def _states(self, rows: Tensor, attention_scale: float) -> Tensor:
        """(batch, r + available + 1, width)."""
        h = self.embed(rows)
        states: Tensor = self.decoder(h[:, :1], h[:, 1:-1], h[:, -1:], attention_scale)
        return states
