"""Views of an instance: the nodes near a stop, in coordinates of their own (Fang et al., 2024, Section 4)."""

import torch
from torch import Tensor

from neuroute.networks.blocks.contexts import rows_of


def nearest(coords: Tensor, here: Tensor, allowed: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Of coords (batch, n, 2) the k nearest allowed ones of each place: (nodes, are there), (batch, tours, k) both.

    here (batch, tours, 2), allowed bool (batch, tours, n).  Nearest first; where fewer are allowed, those that are
    not come last and are not there.  Nothing is kept of pairs of nodes: n numbers of each place.
    """
    return _least(_squared(coords, here).masked_fill_(~allowed, torch.inf), k)


def nearest_beside(
    coords: Tensor, here: Tensor, first: tuple[Tensor, Tensor], allowed: Tensor, k: int
) -> tuple[Tensor, Tensor]:
    """As `nearest`, after those that `nearest` has found already: `first`, all of which are allowed."""
    nodes, there = first
    apart = _squared(coords, here).masked_fill_(~allowed, torch.inf)
    ranks = torch.arange(nodes.shape[-1], device=nodes.device, dtype=apart.dtype) - nodes.shape[-1]
    return _least(apart.scatter_(2, nodes, torch.where(there, ranks, apart.gather(2, nodes))), k)


def _squared(coords: Tensor, here: Tensor) -> Tensor:
    """Squared distances (batch, tours, n)."""
    squared: Tensor = (coords[:, None, :, 0] - here[..., 0, None]).square_()
    squared += (coords[:, None, :, 1] - here[..., 1, None]).square_()
    return squared


def _least(apart: Tensor, k: int) -> tuple[Tensor, Tensor]:
    distances, nodes = apart.topk(min(k, apart.shape[2]), dim=2, largest=False, sorted=True)
    return nodes, distances < torch.inf


def points(coords: Tensor, nodes: Tensor) -> Tensor:
    """coords (batch, n, E) of nodes (batch, tours, k) int64 -> (batch, tours, k, E)."""
    coords_of_nodes: Tensor = rows_of(coords, nodes.flatten(1)).unflatten(1, nodes.shape[1:])
    return coords_of_nodes


def to_unit_box(coords: Tensor, there: Tensor, here: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
    """Move and scale what a view sees (..., k, 2), here and others (..., 2), so that its longer side is 1.

    The view is what is there of the nodes, bool (..., k), and the current stop; both axes are divided by the
    larger range, by 1 if that is 0.  Of nodes that are not there the result is that of the current stop.
    """
    all_of_it = torch.cat([torch.where(there[..., None], coords, here[..., None, :]), here[..., None, :]], dim=-2)
    low, high = all_of_it.aminmax(dim=-2)
    side = (high - low).amax(dim=-1, keepdim=True)
    side = torch.where(side > 0, side, 1.0)
    moved = ((all_of_it - low[..., None, :]) / side[..., None]).split([coords.shape[-2], 1], dim=-2)
    return moved[0], moved[1].squeeze(-2), *((other - low) / side for other in others)
