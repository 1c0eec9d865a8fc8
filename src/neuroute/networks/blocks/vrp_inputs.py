"""What a network of many starts sees of the instances of 16 VRPs, and of a route under way (MVMoE, Section 4.1).

Either all of it, whatever the variant ("all": what a variant lacks is 0), or what one variant needs, by its name.
"""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from neuroute.networks.blocks.all_digits import in_all_digits
from neuroute.networks.blocks.contexts import rows_of
from neuroute.networks.blocks.experts.mixture import Mixture
from neuroute.networks.blocks.experts.routing import Routing


class VrpEmbedding(nn.Module):
    """9 W parameters, 7 W without windows: of the depot its coordinates, of customers their demands and windows too.

    Times are those of the unit square at speed 1, and not scaled.  The paper writes of one projection of all nodes; the
    depot has one of its own as in the published code, and as the printed sizes demand.
    """

    def __init__(self, width: int, windows: bool, layer: Callable[[int, int], nn.Module] = nn.Linear) -> None:
        super().__init__()
        self.windows = windows
        self.depot = layer(2, width)
        self.customers = layer(5 if windows else 3, width)

    def forward(self, coords: Tensor, demand: Tensor, windows: Tensor | None, routing: Routing) -> Tensor:
        """coords (batch, 1 + V, 2), demand (batch, 1 + V) in shares of the capacity, windows (batch, 1 + V, 2) or None
        -> (batch, 1 + V, width).
        """
        features = [coords[:, 1:], demand[:, 1:, None]]
        if self.windows:
            features.append(torch.zeros_like(coords[:, 1:]) if windows is None else windows[:, 1:])
        parts = (self.depot, coords[:, :1]), (self.customers, torch.cat(features, dim=-1))
        return torch.cat([in_all_digits(partial(through, layer, routing=routing), x) for layer, x in parts], dim=1)


class VrpContext(nn.Module):
    """W [h_current, d], d what is known of the route (Equation 12): W^2 + W parameters for each number in d."""

    def __init__(self, width: int, columns: list[int]) -> None:
        super().__init__()
        self.columns = columns
        self.project = nn.Linear(width + len(columns), width, bias=False)

    def forward(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """nodes (batch, n, width) -> what ones in d add (len(d), width), and each node where a tour is there."""
        width = nodes.shape[2]
        weight = self.project.weight
        return weight[:, width:].T.contiguous(), F.linear(nodes, weight[:, :width])

    def query(self, of_context: Tensor, of_current: Tensor, context: Tensor, current: Tensor) -> Tensor:
        """context (batch, tours, 4): load, time, length, open; current (batch, tours) -> (batch, tours, width)."""
        from_context = in_all_digits(torch.matmul, self.read(context), of_context.to(context))
        return rows_of(of_current, current).to(context) + from_context

    def read(self, context: Tensor) -> Tensor:
        """What is known of the route, of all that may be."""
        # Not `context[..., columns]`: a list would be carried to a GPU at each decision.
        return torch.cat([context[..., column : column + 1] for column in self.columns], dim=-1)


def through(layer: nn.Module, x: Tensor, routing: Routing) -> Tensor:
    """x through a layer that may be a mixture of experts."""
    out: Tensor = layer(x, routing) if isinstance(layer, Mixture) else layer(x)
    return out
