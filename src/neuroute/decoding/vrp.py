"""The 16 vehicle routing problems for decoding: batches, and solutions from many starts.

One step serves all of them, as the published environments of MVMoE do (Zhou et al., 2024): a constraint masks the
customers that would break it, and constraints add up.  Loads are whole numbers; times and lengths are kept in double
precision, so that what may be driven here may be driven by `problems.vrp.valid`, whatever the network says.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.decoding.cvrp import CvrpBatch, RouteEnvironment, RouteRollout
from neuroute.decoding.decode import Search
from neuroute.decoding.environment import Rollout
from neuroute.decoding.multi_start import check_starts
from neuroute.networks.base import MultiStartNetwork, PathNetwork, RoutingNetwork
from neuroute.networks.blocks.routing import Routing
from neuroute.networks.kernels.moves import Routes
from neuroute.problems.vrp import EPS, Switches, Vrp, number_of_starts
from neuroute.specs.objects import Decoding

INSTANCES_PER_BATCH = 100  # of networks that are batch-dependent, as published
ACTIVATIONS = 4 * 16  # bytes of a token and a channel, as in `memory.batch_size_for`


@dataclass(frozen=True)
class VrpBatch(CvrpBatch):
    """Demands are signed.  What a problem lacks is there, but changes nothing: no limit is infinite, no window and no
    service are 0.
    """

    limit: Tensor  # (batch,) float64
    windows: Tensor  # (batch, 1 + V, 2)
    service: Tensor  # (batch, 1 + V)
    switches: Switches

    @classmethod
    def of(cls, instances: Vrp, device: torch.device) -> Self:
        cvrp = CvrpBatch.of(instances, device)

        def to_tensor(array: np.ndarray | None, absent: Tensor) -> Tensor:
            return absent if array is None else torch.from_numpy(array).to(device)

        limit = to_tensor(instances.limit, torch.full_like(cvrp.capacity, torch.inf, dtype=torch.float64))
        windows = to_tensor(instances.windows, torch.zeros_like(cvrp.coords))
        service = to_tensor(instances.service, torch.zeros_like(cvrp.coords[..., 0]))
        return cls(cvrp.coords, cvrp.demand, cvrp.capacity, limit, windows, service, instances.switches)

    @property
    def features(self) -> tuple[Tensor, ...]:
        return self.coords, self.share, self.windows

    def to(self, dtype: torch.dtype) -> Self:
        windows, service = self.windows.to(dtype), self.service.to(dtype)
        return replace(self, coords=self.coords.to(dtype), windows=windows, service=service)

    @cached_property
    def distance_matrix(self) -> Tensor:
        """Between all nodes: float64 (batch, 1 + V, 1 + V)."""
        points = self.coords.double()
        return torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist")  # by products it is inexact

    def start_nodes(self, number: int) -> Tensor:
        """The first customers that do not only have goods to be picked up, or the first of all where there are none
        others: the published environments never serve a pick-up first.  Where they are fewer, they come again.
        """
        fits = self.demand[:, 1:] > 0
        fits = fits | ~fits.any(dim=1, keepdim=True)
        first = (~fits).to(torch.int8).argsort(dim=1, stable=True) + 1
        count = fits.sum(dim=1, keepdim=True)
        return first.gather(1, torch.arange(number, device=self.demand.device).expand(len(self), -1) % count)

    def rollout(self, starts: Tensor, dtype: torch.dtype) -> Rollout:
        return VrpRollout(self, starts, dtype)

    def lengths(self, solutions: Tensor) -> Tensor:
        distances = self.distance_matrix
        row = torch.arange(len(distances), device=distances.device)[:, None]
        order, via = solutions.unbind(2)
        before = torch.zeros_like(order[..., 0])
        total = torch.zeros(order.shape[:2], dtype=torch.float64, device=distances.device)
        for stop in range(order.shape[2]):
            now, starts = order[..., stop], via[..., stop] == 1
            total += distances[row, torch.where(starts, 0, before), now]
            if not self.switches.open:
                total += torch.where(starts, distances[row, before, 0], 0.0)
            before = now
        return total if self.switches.open else total + distances[row, before, 0]


class VrpRollout(RouteRollout):
    """`context` (batch, tours, 4): the load as a share of the capacity, the time at which service ends at the current
    stop (0 without windows), the length of the route so far, and 1 where routes are open.
    """

    of_tours = (*RouteRollout.of_tours, "_deliveries", "_time", "_length")

    def __init__(self, batch: VrpBatch, starts: Tensor, dtype: torch.dtype) -> None:
        self._on, self._distances = batch.switches, batch.distance_matrix
        self._limit = batch.limit[:, None, None] + EPS
        self._service = batch.service.double()
        self._opens, self._closes = batch.windows.double().unbind(-1)
        self._row = torch.arange(len(starts), device=starts.device)[:, None]
        self._deliveries = (batch.demand > 0).sum(dim=1, keepdim=True).expand_as(starts)  # that are left
        self._time = self._length = torch.zeros(starts.shape, dtype=torch.float64, device=starts.device)
        super().__init__(batch, starts, dtype)

    def _shared(self, batch: CvrpBatch) -> Routes:
        limit, closes = self._limit.flatten(), self._closes + EPS
        more = (self._distances, self._service, self._opens, closes, limit)
        on = self._on
        switches = {"open": on.open, "backhaul": on.backhaul, "limited": on.limit, "windows": on.windows}
        return Routes(batch.demand, batch.capacity, more, **switches)

    def _drive(self, stops: Tensor, demand: Tensor) -> None:
        customer, way = stops > 0, self._distances[self._row, self.current, stops]
        self._deliveries = self._deliveries - (demand > 0).long()
        self._length = torch.where(customer, self._length + way, 0.0)
        if self._on.windows:
            begins = torch.maximum(self._time + way, self._opens.gather(1, stops))
            self._time = torch.where(customer, begins + self._service.gather(1, stops), 0.0)

    def _full_load(self) -> Tensor:
        """The capacity, or nothing when the vehicle can only pick up."""
        return torch.where(self._deliveries > 0, self._capacity, 0) if self._on.backhaul else self._capacity

    def _misfits(self) -> Tensor:
        misfits = super()._misfits()
        if self._on.backhaul:
            misfits |= self._load[..., None] - self._demand[:, None] > self._capacity[..., None]
        if self._on.limit or self._on.windows:
            way = self._distances[self._row, self.current]
            home = 0.0 if self._on.open else self._distances[:, None, :, 0]
            if self._on.limit:
                misfits |= self._length[..., None] + way + home > self._limit
            if self._on.windows:
                begins = torch.maximum(self._time[..., None] + way, self._opens[:, None])
                misfits |= begins > self._closes[:, None] + EPS
                if not self._on.open:
                    misfits |= begins + self._service[:, None] + home > self._closes[:, None, :1] + EPS
        # The way home is never too long nor too late: no stop is driven to that it does not lead home from.
        return misfits

    def _make_context(self) -> Tensor:
        share, is_open = self._load / self._capacity, torch.full_like(self._time, self._on.open)
        return torch.stack([a.to(self._dtype) for a in (share, self._time, self._length, is_open)], dim=-1)


class VrpEnvironment(RouteEnvironment[VrpBatch]):
    def batch(self, instances: Vrp, device: torch.device) -> VrpBatch:
        return VrpBatch.of(instances, device)

    def build_greedily(
        self, net: PathNetwork, batch: VrpBatch, decoding: Decoding, memory_gb: float, first: int
    ) -> Tensor:
        raise _not_for_vrps(net)

    def count_starts(self, instances: Vrp, starts: int | None) -> int:
        """As of other problems, of those that are more than a pick-up: with backhauls fewer than asked for."""
        return max(1, min(number_of_starts(instances), super().count_starts(instances, starts)))

    def batch_sizes(
        self, net: RoutingNetwork, nodes: int, tours: int, images: int, memory_gb: float, instances: int | None = None
    ) -> tuple[int, int]:
        """As of other problems, but for networks that are batch-dependent.

        Their batches are of `INSTANCES_PER_BATCH`, with all their tours, as long as the memory holds them: only where
        it does not, solutions depend on it.
        """
        # Distances and times of all nodes in double precision are about as much again as what other problems keep.
        memory_gb /= 2
        most, fit = super().batch_sizes(net, nodes, tours, images, memory_gb, instances)
        if instances or not net.is_batch_dependent:
            return most, fit
        encoded = int(memory_gb * 1e9 / (ACTIVATIONS * net.width * (nodes + 1) * images))
        return most, max(1, min(INSTANCES_PER_BATCH, most // tours, encoded))

    def prepare(self, net: MultiStartNetwork, batch: VrpBatch, seed: int) -> Any:
        if not net.is_batch_dependent:
            return super().prepare(net, batch, seed)
        routing = Routing(torch.Generator(batch.coords.device).manual_seed(seed))
        return net.prepare(net.encode(*batch.features, routing), routing)

    def reset(self, prepared: Any) -> None:
        prepared.routing.first = None  # tours that are built together are an episode


def _not_for_vrps(net: RoutingNetwork) -> NeurouteError:
    return NeurouteError(f"{type(net).__name__} is not for the 16 vehicle routing problems; networks as MvMoe are")


VRP = VrpEnvironment()


class VrpSearch(Search[VrpBatch]):
    environment = VRP

    def improves(self, net: RoutingNetwork) -> bool:
        return False

    def check(self, net: RoutingNetwork, decoding: Decoding, *, improves: bool = False) -> None:
        if improves:
            raise self._refusal(net)
        if not net.multi_start or net.problem != "vrp":
            raise _not_for_vrps(net)
        check_starts(net, decoding)
        if decoding.method != "greedy" or decoding.milestones:
            raise self._refusal(net)

    def reconstruct(self, net: RoutingNetwork, *args: Any, **settings: Any) -> Iterator[Tensor]:
        raise self._refusal(net)

    def search_beams(self, net: RoutingNetwork, *args: Any, **settings: Any) -> Tensor:
        raise self._refusal(net)

    def _refusal(self, net: RoutingNetwork) -> NeurouteError:
        return NeurouteError(
            f"{type(net).__name__}: beam search and re-construction are for the TSP and the CVRP; decode the 16 VRPs "
            "greedily or by multistart"
        )


SEARCH = VrpSearch()
