"""A batch of instances of one of the 16 vehicle routing problems."""

from dataclasses import dataclass

import numpy as np

from neuroute.problems.vrp_variants import Switches, Variant, variant_of


@dataclass(frozen=True)
class Vrp:
    """Instances of V customers; row 0 of every array over nodes is the depot.

    Vehicles are as many as it takes.  They drive at speed 1, so that a way takes as long as it is, and leave the depot
    at time 0.  `limit`, `windows` and `service` are in the unit of the coordinates; None where the problem has none.
    """

    coords: np.ndarray  # (count, 1 + V, 2) float32
    demand: np.ndarray  # (count, 1 + V) int64, 0 at the depot; below 0: as much is picked up (a backhaul)
    capacity: np.ndarray  # (count,) int64
    open: bool = False  # the way home is neither paid for nor part of the limits
    limit: np.ndarray | None = None  # (count,) float64, of the length of a route
    windows: np.ndarray | None = None  # (count, 1 + V, 2) float32: earliest and latest beginning of service
    service: np.ndarray | None = None  # (count, 1 + V) float32, 0 at the depot; there if windows are

    def __len__(self) -> int:
        return len(self.coords)

    def __getitem__(self, rows: slice | np.ndarray) -> "Vrp":
        limit, windows, service = (None if a is None else a[rows] for a in (self.limit, self.windows, self.service))
        coords, demand, capacity = self.coords[rows], self.demand[rows], self.capacity[rows]
        return Vrp(coords, demand, capacity, self.open, limit, windows, service)

    @property
    def customers(self) -> int:
        return self.coords.shape[1] - 1

    @property
    def switches(self) -> Switches:
        """Of this batch: without a customer that has goods to be picked up, `backhaul` is off."""
        backhaul = bool((self.demand < 0).any())
        return Switches(self.open, backhaul, self.limit is not None, self.windows is not None)

    @property
    def variant(self) -> Variant:
        return variant_of(self.switches)
