"""LEHD for the CVRP: a light encoder, a heavy decoder that knows what is left in the vehicle (Luo et al., 2023)."""

from typing import Any

import torch
from torch import Tensor, nn

from neuroute.networks.base import PathNetwork
from neuroute.networks.residual_layer import ResidualLayer


class LehdCvrp(PathNetwork):
    """Scores the customers that may come next, each twice: straight from the current stop, and through the depot.

    (D + 1) (4 W^2 + 2 W F + 2 W + F) + 2 W^2 + 10 W + 2 parameters.  Loads are shares of the capacity.  Nothing
    is masked: a customer that does not fit is reached through the depot, which is for the decoding to see to.

    As published, customers enter the decoder without a gradient, so the encoder learns through the depot alone.
    The floor of 1e-7 under the smallest probabilities is left out, as in `Lehd`.
    """

    problem = "cvrp"

    def __init__(
        self, depth: int = 6, width: int = 128, heads: int = 8, feed_forward: int = 512, train_nodes: int = 100
    ) -> None:
        super().__init__()

        def layer() -> ResidualLayer:
            return ResidualLayer(width, heads, feed_forward, rezero=False, bias="output", scaled=True)

        self.width, self.depth, self.train_nodes = width, depth, train_nodes
        self.embed = nn.Linear(3, width)
        self.encoder = layer()
        self.start = nn.Linear(width + 1, width)  # the depot, where every route has to end
        self.current = nn.Linear(width + 1, width)
        self.layers = nn.ModuleList(layer() for _ in range(depth))
        self.head = nn.Linear(width, 2)

    def encode(self, coords: Tensor, demand: Tensor) -> Tensor:
        """coords (rows, 1 + customers, 2), demand (rows, 1 + customers), depot first -> embeddings (..., width)."""
        return self.encoder(self.embed(torch.cat([coords, demand[..., None]], dim=-1)))

    def decide(self, rows: Tensor, remaining: Tensor, attention_scale: float = 1.0, *given: Any) -> Tensor:
        """Logits (batch, available, 2): straight, through the depot.

        rows (batch, 1 + available + 1, width) from `encode`, in the order [current, available..., depot];
        remaining (batch,): what is left in the vehicle.  given: to layers that ask for more.
        """
        left = remaining[:, None, None]
        current = self.current(torch.cat([rows[:, :1].detach(), left], dim=-1))
        depot = self.start(torch.cat([rows[:, -1:], left], dim=-1))
        h = torch.cat([current, rows[:, 1:-1].detach(), depot], dim=1)
        for layer in self.layers:
            h = layer(h, attention_scale, *given)
        return self.head(h[:, 1:-1])
