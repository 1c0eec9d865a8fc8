"""Reinforcement learning for the CVRP: solutions whose first routes start at every customer (POMO; icam)."""

from typing import Any

import torch
from torch import Tensor

from neuroute.datasets.streams import cvrp_dataset
from neuroute.decoding.cvrp_paths import Batch
from neuroute.decoding.multi_start_cvrp import Routes, route_lengths
from neuroute.plan.objects import Dataset
from neuroute.training.reinforce import Instances, Reinforcement, many_starts
from neuroute.training.supervised import Scheme


class RouteRollouts:
    """Instances are coordinates (batch, 1 + V, 2), demands (batch, 1 + V) and capacities (batch,), int64 both."""

    def __init__(self, net: Any) -> None:
        self.net = net

    def instances(self, n: int, capacity: int | None, first: int, count: int) -> Instances:
        parameter = next(self.net.parameters())
        stream = Dataset(problem="cvrp", split="train", n=n, capacity=capacity, first=first, count=count)
        batch = Batch.of(cvrp_dataset(stream), parameter.device)
        return batch.coords.to(parameter.dtype), batch.demand, batch.capacity

    def nodes(self, n: int) -> int:
        return n + 1

    def moves(self, n: int) -> int:
        """The first customer is given, and the last way back goes without saying: at most a way back before each."""
        return 2 * (n - 1)

    def prepare(self, instances: Instances) -> Any:
        batch = Batch(*instances)
        return self.net.prepare(self.net.encode(batch.coords, batch.share))

    def begin(self, instances: Instances, starts: int, dtype: torch.dtype) -> Routes:
        batch = Batch(*instances)
        customers = torch.arange(1, starts + 1, device=batch.coords.device).expand(len(batch.coords), -1)
        return Routes(customers, batch.demand, batch.capacity, dtype)

    def lengths(self, instances: Instances, solutions: Tensor) -> Tensor:
        return route_lengths(instances[0], solutions)


def reinforce(scheme: Scheme) -> Reinforcement:
    """Raises NeurouteError for a network that builds one solution at a time."""
    return Reinforcement(scheme, RouteRollouts(many_starts(scheme)), scheme.start)
