"""Which next nodes tours choose: how far away, and as which of the nearest nodes that are left (icam, Figure 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from neuroute.core.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

LEVELS = np.linspace(0, 1, 201)  # of the quantiles that are kept
SHARE = 0.95  # of the choices, that lie in the region of preferred nodes
RANKS = 20  # the last one counts all ranks from there on
PAIRS = 1 << 24  # distances that are held at the same time


@dataclass(frozen=True)
class Selections:
    """What all decisions of some tours have in common; the last stop and the way back are chosen by no one."""

    quantiles: np.ndarray  # (levels,) of the distance to the chosen node
    ranks: np.ndarray  # (RANKS,) int64: decisions by the chosen node's rank among the nodes that are left, from 1
    radius: float  # within which `SHARE` of the chosen nodes lie
    within: float  # mean number of other nodes that lie so near, visited or not

    def arrays(self, name: str) -> dict[str, np.ndarray]:
        """Named for an .npz."""
        values = {"quantiles": self.quantiles, "ranks": self.ranks, "radius": self.radius, "within": self.within}
        return {f"{key}_{name}": np.asarray(value) for key, value in values.items()}


def selections(coords: Tensor, tours: Tensor) -> Selections:
    """coords (count, n, 2) and tours (count, n) int64 on the CPU, n >= 3.

    Nodes as far away as the chosen one share its rank.
    """
    count, n = tours.shape
    most = max(n, RANKS) + 1
    ranks, distances = torch.zeros(most, dtype=torch.int64), torch.empty(count, n - 2, dtype=torch.float64)
    at_once = max(1, PAIRS // n**2)
    later = torch.ones(n - 2, n).triu(2).bool()  # what is left at each decision, but for the chosen node
    paths = coords.double().gather(1, tours[..., None].expand(-1, -1, 2))
    for first in range(0, count, at_once):
        apart = _apart(paths[first : first + at_once])
        steps = apart[:, : n - 2].diagonal(1, 1, 2)
        distances[first : first + at_once] = steps
        nearer = (apart[:, : n - 2] < steps[..., None]) & later
        ranks += torch.bincount(nearer.sum(-1).flatten() + 1, minlength=most)
    radius = float(np.quantile(distances.numpy(), SHARE))
    inside = sum(int((_apart(part) <= radius).sum()) - part.shape[0] * n for part in paths.split(at_once))
    quantiles = np.quantile(distances.numpy(), LEVELS).astype(np.float64)
    by_rank = np.append(ranks[1:RANKS].numpy(), ranks[RANKS:].sum().item())
    return Selections(quantiles, by_rank, radius, inside / (count * n))


def _apart(paths: Tensor) -> Tensor:
    """paths (count, n, 2) -> distances (count, n, n), exact on the diagonal."""
    return torch.cdist(paths, paths, compute_mode="donot_use_mm_for_euclid_dist")
