"""SIT for the CVRP: linear cross-attention that knows what is left in the vehicle (sit, Appendix B.2)."""

import torch
from torch import Tensor, nn

from neuroute.networks.base import PathNetwork
from neuroute.networks.sit_decoder import Attention, SitDecoder


class SitCvrp(PathNetwork):
    """Scores the customers that may come next, each twice: straight from the current stop, and through the depot.

    2 D (4 W^2 + 2 W F + 2 W + F) + (r + 1) (W^2 + 2 W) + 6 W + 2 parameters, r `representatives` (repetitions of the
    current stop): 2,635,522 as published.  With `attention="self"` D layers instead of 2 D.

    Loads are shares of the capacity.  What is left in the vehicle is an input of the representatives (Eq. 8), the
    depot's among them.  Nothing is masked: a customer that does not fit is reached through the depot, which is for
    the decoding to see to.

    `detach_customers` is the published code, not the paper: customers enter without a gradient, so that the embedding
    learns through the depot alone and its demand column, which multiplies the depot's 0, never.
    The floor of 1e-7 under the smallest probabilities is left out, as in `Sit`.
    """

    problem = "cvrp"

    def __init__(
        self,
        depth: int = 6,
        width: int = 128,
        heads: int = 8,
        feed_forward: int = 512,
        representatives: int = 15,
        attention: Attention = "cross",
        detach_customers: bool = False,
        train_nodes: int = 1000,
    ) -> None:
        super().__init__()
        self.width, self.depth, self.detach_customers, self.train_nodes = width, depth, detach_customers, train_nodes
        self.embed = nn.Linear(3, width)  # one for depot and customers
        self.decoder = SitDecoder(width + 1, depth, width, heads, feed_forward, representatives, attention)
        self.head = nn.Linear(width, 2)

    def encode(self, coords: Tensor, demand: Tensor) -> Tensor:
        """coords (rows, 1 + customers, 2), demand (rows, 1 + customers), depot first -> both (..., 3), unchanged."""
        return torch.cat([coords, demand[..., None]], dim=-1)

    def hidden(self, rows: Tensor, remaining: Tensor, attention_scale: float = 1.0) -> Tensor:
        """Last-layer states (batch, 1 + available + 1, width) of [current, available..., depot]."""
        return self._states(rows, remaining, attention_scale)[:, self.decoder.repetitions - 1 :]

    def decide(self, rows: Tensor, remaining: Tensor, attention_scale: float = 1.0) -> Tensor:
        """Logits (batch, available, 2): straight, through the depot.

        rows (batch, 1 + available + 1, 3) from `encode`, in the order [current, available..., depot];
        remaining (batch,): what is left in the vehicle.
        """
        logits: Tensor = self.head(self._states(rows, remaining, attention_scale))
        return logits[:, self.decoder.repetitions : -1]

    def _states(self, rows: Tensor, remaining: Tensor, attention_scale: float) -> Tensor:
        """(batch, r + available + 1, width)."""
        h = self.embed(rows)
        current, available, depot = h[:, :1], h[:, 1:-1], h[:, -1:]
        if self.detach_customers:
            current, available = current.detach(), available.detach()
        left = remaining[:, None, None].to(h)
        current, depot = torch.cat([current, left], dim=-1), torch.cat([depot, left], dim=-1)
        states: Tensor = self.decoder(current, available, depot, attention_scale)
        return states
