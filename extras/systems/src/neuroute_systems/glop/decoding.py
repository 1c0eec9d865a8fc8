"""GLOP-G: customers are parted into routes by a walk over heated edges, and every route is a TSP (Ye et al., 2024)."""

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.decoding.cvrp import CvrpBatch, RouteRollout
from neuroute.decoding.environment import Choose, choose_best
from neuroute.decoding.memory import autocast, device_of
from neuroute.problems.vrp import from_routes, to_routes
from neuroute.solvers.registry import get
from neuroute.specs.objects import Decoding
from neuroute_systems.glop.network import GlopPartition, Heat

SOLVER = "lkh"  # of the routes, as in the published rows
ROUTE_SEED = 1234  # LKH's, as published


class PartitionRollout(RouteRollout):
    """Solutions under construction by at most one vehicle more than capacities need, as far as that can be.

    The depot is open where no customer fits, or where the vehicles that are left can carry what is left.
    """

    of_tours = (*RouteRollout.of_tours, "_left", "_vehicles")

    def __init__(self, batch: CvrpBatch, tours: int, dtype: torch.dtype) -> None:
        total = batch.demand.sum(dim=1, keepdim=True)
        self._most = -(-total // batch.capacity[:, None]) + 1
        starts = batch.demand.new_zeros(len(batch), tours)
        self._left, self._vehicles = total.expand_as(starts), torch.zeros_like(starts)
        super().__init__(batch, starts, dtype)

    def step(self, stops: Tensor) -> None:
        self._vehicles = self._vehicles + ((self.current == 0) & (stops > 0))
        self._left = self._left - self._demand.gather(1, stops)
        super().step(stops)
        too_much = self._left > self._capacity * (self._most - self._vehicles)
        closed = too_much & (self.action_mask[..., 1:] == 0).any(dim=-1)
        self.action_mask[..., 0] = self.action_mask[..., 0].masked_fill(closed, -torch.inf)


def walk(net: GlopPartition, heat: Heat, batch: CvrpBatch, tours: int, choose: Choose = choose_best) -> Tensor:
    """Solutions (batch, tours, 2, V), their customers in the order of the walk."""
    rollout = PartitionRollout(batch, tours, heat.weights.dtype)
    while not rollout.done():
        rollout.step(choose(net.decide(heat, rollout.context, rollout.current, rollout.action_mask)))
    return rollout.solutions()


def partition(net: GlopPartition, batch: CvrpBatch, decoding: Decoding, memory_gb: float, first: int) -> Tensor:
    """Solutions (batch, 2, V): the likeliest partition, whose routes LKH solves.

    Instances are heated one at a time: an instance of 10,000 customers and 200 neighbours has two million edges.
    Raises NeurouteError for networks that make no partitions, and without LKH.
    """
    if not isinstance(net, GlopPartition):
        raise NeurouteError(f"method 'partition' is for GlopPartition, not for {type(net).__name__}")
    solver = get(SOLVER)
    solver.version()  # raises if it is missing
    solutions = []
    with autocast(device_of(net), "fp32"):  # features are angles
        for i in range(len(batch)):
            one = batch[i : i + 1]
            solution = walk(net, net.encode(one.coords, one.share), one, 1)[0, 0].cpu().numpy()
            solutions.append(solve_routes(one.coords[0].cpu().numpy(), to_routes(solution)))
    return torch.from_numpy(np.stack(solutions)).to(batch.coords.device)


def solve_routes(coords: np.ndarray, routes: Iterable[list[int]]) -> np.ndarray:
    """One solution (2, V) with each of the routes as short as the solver finds it; none gets longer.

    coords (1 + V, 2), depot first.  Routes of one or two customers have one length only.
    """
    solve, out = get(SOLVER).solve, []
    for route in routes:
        nodes = np.array([0, *route])
        if len(nodes) > 3:
            tour = nodes[solve(coords[nodes], ROUTE_SEED)]
            turned = np.roll(tour, -int(np.flatnonzero(tour == 0)[0]))
            nodes = min(nodes, turned, key=lambda stops: _length(coords[stops]))
        out.append(nodes[1:].tolist())
    return from_routes(out)


def _length(points: np.ndarray) -> float:
    """Of the closed tour over points (n, 2), float64."""
    legs = points.astype(np.float64) - np.roll(points.astype(np.float64), 1, axis=0)
    return float(np.sqrt((legs**2).sum(-1)).sum())
