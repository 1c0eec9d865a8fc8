"""Greedy construction and random re-construct of CVRP solutions, batched over instances (LEHD).

Every solution is feasible, whatever the network says: a customer that does not fit is reached through the depot.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from neuroute.decoding.decode import autocast, batch_size, last, timed_milestones
from neuroute.errors import NeurouteError
from neuroute.plan.objects import Decoding
from neuroute.problems.cvrp import Cvrp
from neuroute.problems.cvrp_sub_paths import arranged, draw, loads, path_lengths

# rows (batch, 1 + available + 1, E), share of the capacity that is left (batch,) -> logits (batch, available, 2)
Decide = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Batch:
    """Instances on the network's device."""

    coords: Tensor  # (batch, V + 1, 2)
    demand: Tensor  # (batch, V + 1) int64
    capacity: Tensor  # (batch,) int64

    @classmethod
    def of(cls, instances: Cvrp, device: torch.device) -> "Batch":
        coords, demand, capacity = instances.coords, instances.demand, instances.capacity
        return cls(*(torch.from_numpy(array).to(device) for array in (coords, demand, capacity)))

    @property
    def share(self) -> Tensor:
        """Demands as shares of the capacity, as networks take them."""
        return (self.demand / self.capacity[:, None]).to(self.coords.dtype)


@torch.inference_mode()
def complete(decide: Decide, rows: Tensor, demand: Tensor, capacity: Tensor, left: Tensor) -> tuple[Tensor, Tensor]:
    """Visit the rows between the current stop and the depot, always by the most probable of all ways on.

    rows (batch, m, E), demand (batch, m), both in the order [current, available..., depot]; capacity (batch,);
    left (batch,): what is in the vehicle at the current stop.
    Returns positions in `rows` and flags, both int64 (batch, m - 2), of the stops in visiting order.

    As in TSP's `complete_paths` the chosen row is swapped to the front, so rows and demand are overwritten.
    """
    batch, m = rows.shape[:2]
    via = torch.zeros_like(demand)
    order = torch.arange(m, device=rows.device).repeat(batch, 1)
    instance = torch.arange(batch, device=rows.device)
    for step in range(m - 2):  # the last customer is certain, the way to it is not
        best = decide(rows[:, step:], (left / capacity).to(rows.dtype)).flatten(1).argmax(1)
        chosen, flag = best // 2 + (step + 1), best % 2
        for array in (rows, demand, order):
            moved = array[:, step + 1].clone()
            array[:, step + 1] = array[instance, chosen]
            array[instance, chosen] = moved
        flag = torch.where(demand[:, step + 1] > left, 1, flag)
        left = torch.where(flag == 1, capacity, left) - demand[:, step + 1]
        via[:, step + 1] = flag
    return order[:, 1:-1], via[:, 1:-1]


def greedy(decide: Decide, nodes: Tensor, instances: Batch) -> Tensor:
    """nodes (batch, V + 1, E) of the whole instances -> solutions (batch, 2, V), from the depot on."""
    rows, demand = (torch.cat([a, a[:, :1]], dim=1) for a in (nodes, instances.demand))
    order, via = complete(decide, rows, demand, instances.capacity, instances.capacity)
    via[:, 0] = 1  # whichever way the network called it, the first customer is reached from the depot
    return torch.stack([order, via], dim=1)


def reconstruct(
    decide_for: Callable[[int], Decide],
    encode: Callable[[Tensor, Tensor], Tensor],
    instances: Batch,
    solutions: Tensor,
    iterations: int,
    seed: int = 0,
    first: int = 0,
) -> Iterator[Tensor]:
    """Yields the solutions (batch, 2, V) after each iteration, nowhere longer than before it.

    Each iteration draws a length (4..V) for the whole batch and a sub-path of it for each instance, keeps the first
    stop and how it is reached, rebuilds the rest greedily, and accepts what is strictly shorter.  The network sees the
    depot and the customers of the sub-path.  Draws depend on the seed and on an instance's number, of which the
    batch's first is `first`, so splitting a test set changes nothing.
    """
    batch, _, customers = solutions.shape
    instance = torch.arange(batch, device=solutions.device)[:, None]
    points, share = instances.coords.double(), instances.share
    for index in range(iterations):
        drawn = draw(seed, index, customers, first, batch)
        solutions = arranged(solutions, drawn)
        cut = customers - drawn.length
        old = solutions[:, :, cut:]
        nodes = torch.cat([torch.zeros_like(old[:, 0, :1]), old[:, 0]], dim=1)  # the depot and the customers
        rows = encode(instances.coords[instance, nodes], share[instance, nodes]).roll(-1, dims=1)
        demand = instances.demand[instance, nodes].roll(-1, dims=1)
        left = instances.capacity - loads(instances.demand, solutions)[:, cut]
        order, via = complete(decide_for(drawn.length), rows, demand, instances.capacity, left)
        new = old.clone()
        new[:, 0, 1:], new[:, 1, 1:] = old[:, 0].gather(1, order), via
        before, after = (path_lengths(points[:, 0], points[instance, s[:, 0]], s[:, 1]) for s in (old, new))
        better = torch.where((after < before)[:, None, None], new, old)
        solutions = torch.cat([solutions[:, :, :cut], better], dim=2)
        yield solutions


def decode(net: Any, instances: Cvrp, decoding: Decoding, memory_gb: float = 4.0, precision: str = "fp32") -> Tensor:
    """Solutions (count, 2, V) int64 on the CPU: in the last axis the order of the customers, and their flags."""
    device = next(net.parameters()).device
    with torch.inference_mode(), autocast(device, precision):
        return torch.cat([last(part).cpu() for part in _parts(net, instances, decoding, memory_gb, device)])


def construct(net: Any, instances: Cvrp, memory_gb: float = 4.0, precision: str = "fp32") -> Tensor:
    """The greedy solutions (count, 2, V) int64 on the CPU."""
    return decode(net, instances, Decoding(), memory_gb, precision)


def improve(
    net: Any, instances: Cvrp, decoding: Decoding, memory_gb: float = 4.0, precision: str = "fp32"
) -> list[tuple[int, Tensor, float]]:
    """(iterations, solutions (count, 2, V) on the CPU, seconds until then) at each of the decoding's milestones."""
    device = next(net.parameters()).device
    with torch.inference_mode(), autocast(device, precision):
        return timed_milestones(_parts(net, instances, decoding, memory_gb, device), decoding.milestones)


def _parts(
    net: Any, instances: Cvrp, decoding: Decoding, memory_gb: float, device: torch.device
) -> Iterator[Iterator[Tensor]]:
    """For each part of the instances that fits: its greedy solutions, then those after each iteration."""
    if decoding.method == "beam":
        raise NeurouteError("beam search is for the TSP; decode CVRP instances by greedy or random re-construct")
    size = batch_size(net, instances.customers + 1, decoding, memory_gb)
    for first in range(0, len(instances), size):
        yield _improving(net, Batch.of(instances[first : first + size], device), decoding, first)


def _improving(net: Any, instances: Batch, decoding: Decoding, first: int) -> Iterator[Tensor]:
    def decide_for(customers: int) -> Decide:
        scale = net.attention_scale(max(customers, net.train_nodes)) if decoding.log_n else 1.0
        return lambda rows, left: net.decide(rows, left, scale)

    scale = net.attention_scale(instances.coords.shape[1] - 1) if decoding.log_n else 1.0
    nodes = net.encode(instances.coords, instances.share)
    solutions = greedy(lambda rows, left: net.decide(rows, left, scale), nodes, instances)
    yield solutions
    if decoding.method == "rrc":
        yield from reconstruct(decide_for, net.encode, instances, solutions, decoding.iterations, first=first)
