"""What a network of many starts sees of an instance, and of a tour that is under way: of the TSP, and of the CVRP.

A decision asks about where each tour is, and about one thing besides: of the TSP, where it began; of the
CVRP, what is left in the vehicle.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from neuroute.networks.blocks.all_digits import FullLinear


class TspEmbedding(FullLinear):
    """3 W parameters: coords (batch, n, 2) -> (batch, n, width)."""

    def __init__(self, width: int) -> None:
        super().__init__(2, width)


class CvrpEmbedding(nn.Module):
    """7 W parameters: of the depot its coordinates, of customers their demands too."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.depot = FullLinear(2, width)
        self.customers = FullLinear(3, width)

    def forward(self, coords: Tensor, demand: Tensor) -> Tensor:
        """coords (batch, 1 + V, 2), demand (batch, 1 + V) in shares of the capacity -> (batch, 1 + V, width)."""
        customers = self.customers(torch.cat([coords[:, 1:], demand[:, 1:, None]], dim=-1))
        return torch.cat([self.depot(coords[:, :1]), customers], dim=1)


class TourContext(nn.Module):
    """W_first h_first + W_current h_current (icam, Eq. 15): 2 W^2 parameters."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.ends = nn.Linear(width, 2 * width, bias=False)  # one product for both

    def forward(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """nodes (batch, n, width) -> what each adds to the query of tours that began there, and that are there."""
        of_first, of_current = self.ends(nodes).chunk(2, dim=-1)
        return of_first.contiguous(), of_current.contiguous()

    @staticmethod
    def query(of_first: Tensor, of_current: Tensor, first: Tensor, current: Tensor) -> Tensor:
        """first and current (batch, tours) int64 -> (batch, tours, width)."""
        return rows_of(of_first, first) + rows_of(of_current, current)


class LoadContext(nn.Module):
    """W [h_current, left], left the share of the capacity that is left: W^2 + W parameters.

    As in the published codes of POMO and ICAM: nothing of the depot, of a route's first customer or of the mean.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.project = nn.Linear(width + 1, width, bias=False)

    def forward(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """nodes (batch, n, width) -> what a full vehicle adds (width,), and each node where a tour is there."""
        weight = self.project.weight
        return weight[:, -1].contiguous(), F.linear(nodes, weight[:, :-1])

    @staticmethod
    def query(of_full: Tensor, of_current: Tensor, load: Tensor, current: Tensor) -> Tensor:
        """left (batch, tours) shares, current (batch, tours) int64 -> (batch, tours, width)."""
        return torch.addcmul(rows_of(of_current, current).to(load), load[..., None], of_full)


def rows_of(rows: Tensor, nodes: Tensor) -> Tensor:
    """rows (batch, n, width) of nodes (batch, tours) int64 -> (batch, tours, width).

    As one long list of rows: copying them whole takes a sixth to a sixteenth of the time of `gather`.
    """
    batch, n, _ = rows.shape
    every = nodes + n * torch.arange(batch, device=nodes.device)[:, None]
    return rows.flatten(0, 1).index_select(0, every.flatten()).view(*nodes.shape, -1)
