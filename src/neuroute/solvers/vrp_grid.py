"""A routing instance in whole numbers, for solvers that take no others.

Distances, services and opening times are rounded up, closing times and limits down, so that what holds on the grid
holds in the plane.  The published references truncate on a grid of 1e-5 and are up to 5e-5 late.
"""

from dataclasses import dataclass

import numpy as np

from neuroute.problems.vrp import EPS, Vrp
from neuroute.solvers.base import GRID

# A limit that the way there and back just meets must not be missed by rounding; the checker allows more than this.
SLACK = int(0.8 * EPS * GRID)


@dataclass(frozen=True)
class GridVrp:
    """One instance of V customers, depot first, in grid units.  `closing` of an open problem bounds no way home."""

    ways: np.ndarray  # (1 + V, 1 + V) int64
    demand: np.ndarray  # (1 + V,) int64, in goods
    capacity: int
    open: bool
    limit: int | None
    windows: np.ndarray | None  # (1 + V, 2) int64
    service: np.ndarray  # (1 + V,) int64, 0 without windows

    @property
    def customers(self) -> int:
        return len(self.ways) - 1

    @property
    def closing(self) -> int:
        """Return when the last window closes: nothing that counts happens later, as closed routes are home by then."""
        assert self.windows is not None
        return int(self.windows[:, 1].max())

    def with_end(self, ways: np.ndarray) -> np.ndarray:
        """Return distances (1 + V, 1 + V); for open routes with one more node, the end, which costs nothing."""
        return np.pad(ways, (0, 1)) if self.open else ways


def on_vrp_grid(instance: Vrp) -> GridVrp:
    """Return the instance of a batch of one on the grid."""
    points = instance.coords[0].astype(np.float64)
    step = points[:, None] - points
    windows, service = None, np.zeros(len(points), dtype=np.int64)
    if instance.windows is not None and instance.service is not None:
        opens, closes = instance.windows[0].T
        windows = np.stack([_up(opens), _down(closes)], axis=1)
        service = _up(instance.service[0])
    return GridVrp(
        ways=_up(np.sqrt((step * step).sum(-1))),
        demand=instance.demand[0].astype(np.int64),
        capacity=int(instance.capacity[0]),
        open=instance.open,
        limit=None if instance.limit is None else int(_down(instance.limit[0])),
        windows=windows,
        service=service,
    )


def ways_grid(ways: np.ndarray, demand: np.ndarray | None = None, capacity: int = 0) -> GridVrp:
    """Return whole distances (n, n) as an instance; without demands of one tour."""
    loads = np.zeros(len(ways)) if demand is None else demand
    return GridVrp(ways, loads.astype(np.int64), capacity, False, None, None, np.zeros(len(ways), dtype=np.int64))


def plane_grid(coords: np.ndarray) -> GridVrp:
    """Return coordinates (n, 2) as an instance of one tour."""
    return on_vrp_grid(Vrp(coords[None], np.zeros((1, len(coords)), dtype=np.int64), np.array([0])))


def _up(lengths: np.ndarray) -> np.ndarray:
    return np.ceil(np.asarray(lengths, dtype=np.float64) * GRID).astype(np.int64)


def _down(lengths: np.ndarray) -> np.ndarray:
    return np.floor(np.asarray(lengths, dtype=np.float64) * GRID).astype(np.int64) + SLACK
