"""Instances of the 16 vehicle routing problems on a device, in the form that one step serves for all of them."""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from torch import Tensor

from neuroute.problems.vrp import Vrp
from neuroute.problems.vrp_variants import Switches


@dataclass(frozen=True)
class VrpBatch:
    """What a problem lacks is there, but changes nothing: no limit is infinite, no window and no service are 0."""

    coords: Tensor  # (batch, 1 + V, 2)
    demand: Tensor  # (batch, 1 + V) int64, signed
    capacity: Tensor  # (batch,) int64
    limit: Tensor  # (batch,) float64
    windows: Tensor  # (batch, 1 + V, 2)
    service: Tensor  # (batch, 1 + V)
    switches: Switches

    @classmethod
    def of(cls, instances: Vrp, device: torch.device) -> "VrpBatch":
        coords, demand, capacity = (
            torch.from_numpy(a).to(device) for a in (instances.coords, instances.demand, instances.capacity)
        )

        def given(array: np.ndarray | None, absent: Tensor) -> Tensor:
            return absent if array is None else torch.from_numpy(array).to(device)

        limit = given(instances.limit, torch.full(capacity.shape, torch.inf, dtype=torch.float64, device=device))
        windows = given(instances.windows, torch.zeros_like(coords))
        service = given(instances.service, torch.zeros_like(coords[..., 0]))
        return cls(coords, demand, capacity, limit, windows, service, instances.switches)

    @classmethod
    def of_tensors(cls, tensors: Iterable[Tensor], switches: Switches) -> "VrpBatch":
        """The inverse of `tensors`."""
        coords, demand, capacity, limit, windows, service = tensors
        return cls(coords, demand, capacity, limit, windows, service, switches)

    @property
    def share(self) -> Tensor:
        """Signed demands as shares of the capacity, as networks take them."""
        return (self.demand / self.capacity[:, None]).to(self.coords.dtype)

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """All but the switches, in the order of the fields."""
        return tuple(getattr(self, field.name) for field in fields(self)[:-1])

    def repeated(self, times: int) -> "VrpBatch":
        """The batch so many times, one after the other."""
        if times == 1:
            return self
        return self.of_tensors((a.repeat(times, *[1] * (a.dim() - 1)) for a in self.tensors), self.switches)

    def at(self, coords: Tensor) -> "VrpBatch":
        """The same with other coordinates."""
        return replace(self, coords=coords)

    def distances(self) -> Tensor:
        """Between all nodes: float64 (batch, 1 + V, 1 + V)."""
        points = self.coords.double()
        return torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist")  # by products it is inexact


def start_customers(demand: Tensor, starts: int) -> Tensor:
    """The customers at which solutions start: demand (batch, 1 + V) -> int64 (batch, starts).

    The first in the order of the instance that do not only have goods to be picked up, which the published environments
    never serve first; all where there are none others.  Instances with fewer than `starts` have them again.
    """
    fits = demand[:, 1:] > 0
    fits = fits | ~fits.any(dim=1, keepdim=True)
    first = (~fits).to(torch.int8).argsort(dim=1, stable=True) + 1
    number = fits.sum(dim=1, keepdim=True)
    return first.gather(1, torch.arange(starts, device=demand.device).expand(len(demand), -1) % number)
