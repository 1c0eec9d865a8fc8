"""CVRP instances around centres (published code of Gao et al., 2024); other clusters than those of `streams`.

`centred`: depot and customers around three centres, as many around each, the last one's the rest; one of them,
any, is the depot.  `half-centred`: all uniform, then a random half of the customers drawn anew around one centre.
Centres are uniform in [0.2, 0.8]^2, offsets normal with a deviation of 0.07 on each axis; what leaves the unit square
is moved to its edge.  Demands are those of uniform instances.

Draws of the fields of `streams`: CUSTOMERS and DEPOT the points, NODES which half, INSTANCE centres and depot.
"""

from typing import Protocol

import numpy as np
from scipy.special import ndtri

CENTRES, RANGE, DEVIATION = 3, (0.2, 0.8), 0.07


class Unit(Protocol):
    """Numbers in (0, 1) of some instances: (instances, width)."""

    def __call__(self, field: str, width: int) -> np.ndarray: ...


def points(kind: str, unit: Unit, n: int) -> np.ndarray:
    """Return depot and n customers: float32 (rows, n + 1, 2), the depot first."""
    every = np.concatenate([unit("DEPOT", 2), unit("CUSTOMERS", 2 * n)], axis=1).reshape(-1, n + 1, 2)
    numbers = unit("INSTANCE", 2 * CENTRES + 1)
    low, high = RANGE
    centres = low + (high - low) * numbers[:, :-1].reshape(-1, CENTRES, 2)
    if kind == "centred":
        part = np.minimum(np.arange(n + 1) // max(1, (n + 1) // CENTRES), CENTRES - 1)
        placed = _around(centres[:, part], every)
        depot = (numbers[:, -1] * (n + 1)).astype(np.int64)
        order = np.arange(n + 1) + np.zeros_like(depot)[:, None]
        rows = np.arange(len(depot))
        order[:, 0], order[rows, depot] = depot, 0
        placed = np.take_along_axis(placed, order[..., None], axis=1)
    else:
        ranks = unit("NODES", n).argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
        moved = np.pad(ranks < n // 2, ((0, 0), (1, 0)))[..., None]
        placed = np.where(moved, _around(centres[:, :1], every), every)
    return placed.astype(np.float32)


def _around(centres: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    return np.clip(centres + DEVIATION * ndtri(numbers), 0.0, 1.0)
