"""Solutions of the CVRP from many starts of an instance at once, and from its eight symmetric images.

Whatever the network says, every solution is feasible: what does not fit is closed, and loads are whole numbers.
"""

from typing import Any

import torch
from torch import Tensor

from neuroute.decoding.cvrp_paths import Batch
from neuroute.decoding.multi_start import (
    Choose,
    at_once,
    augment8,
    complete,
    greedy,
    how_many,
    in_parts,
    nothing_closed,
    shortest,
)
from neuroute.decoding.multi_start_routes import RoutesUnderWay
from neuroute.problems.vrp import Vrp


class Routes(RoutesUnderWay):
    """Solutions of the CVRP: the vehicle is filled again at the depot."""

    def __init__(self, starts: Tensor, demand: Tensor, capacity: Tensor, dtype: torch.dtype) -> None:
        """starts (batch, tours): the first customers, 0 where the network is to choose; demand (batch, 1 + V) and
        capacity (batch,) int64.
        """
        nodes = demand.shape[1]
        super().__init__(starts, nodes)
        self._demand, self._capacity = demand, capacity[:, None]
        self._visited, self.closed = (nothing_closed(starts, nodes, dtype) for _ in range(2))
        self._left = self._capacity.expand_as(starts)
        self.go(starts)

    def go(self, stops: Tensor) -> None:
        self._move(stops)
        self._left = torch.where(stops > 0, self._left - self._demand.gather(1, stops), self._capacity)
        self._visited.scatter_(2, stops[..., None], -torch.inf)
        if torch.is_grad_enabled():  # which may still need what was there
            self.closed = nothing_closed(stops, self._demand.shape[1], self.closed.dtype)
        self.closed.copy_(self._visited).masked_fill_(self._demand[:, None] > self._left[..., None], -torch.inf)
        self.closed[..., 0] = torch.where(self._depot_closed(), -torch.inf, 0.0)
        self.known = self._left.to(self.closed.dtype) / self._capacity


def roll_out(net: Any, prepared: Any, instances: Batch, starts: Tensor, choose: Choose = greedy) -> Tensor:
    """Solutions (batch, tours, 2, V) int64, each decision made by `choose`; see `multi_start.complete`.

    instances: whose demands and capacities `prepared` is of.  starts (batch, tours) int64: the first customers, 0 where
    the network is to choose.
    """
    routes = Routes(starts, instances.demand, instances.capacity, prepared.nodes.dtype)
    return complete(net, prepared, routes, choose)


def multi_start(
    net: Any,
    instances: Vrp,
    starts: int | None = None,
    *,
    augment: bool = False,
    memory_gb: float = 4.0,
    precision: str = "fp32",
    batch_size: int | None = None,
) -> Tensor:
    """The shortest greedy solutions (count, 2, V) int64 on the CPU.

    Of each instance, those that start at its first `starts` customers (None: at every customer); of one start, the
    first customer is the network's choice, as published.  With `augment` those of its eight images too.  Otherwise as
    for the TSP.
    """
    device, customers = next(net.parameters()).device, instances.customers
    number = how_many(starts, customers, "customers")
    chosen = torch.zeros(1, dtype=torch.int64) if starts == 1 else torch.arange(1, number + 1)
    chosen, images = chosen.to(device), 8 if augment else 1
    tours, size = at_once(net, customers + 1, number * images, images, memory_gb, batch_size)

    def solved(first: int) -> Tensor:
        part = Batch.of(instances[first : first + size], device)
        coords, demand, share = (a.repeat(images, *[1] * (a.dim() - 1)) for a in (part.coords, part.demand, part.share))
        same = Batch(coords, demand, part.capacity.repeat(images))
        prepared = net.prepare(net.encode(augment8(part.coords).flatten(0, 1) if augment else coords, share))

        def built(starts: Tensor) -> tuple[Tensor, Tensor]:
            solutions = roll_out(net, prepared, same, starts)
            return solutions, route_lengths(same.coords, solutions)

        return shortest(built, chosen.expand(len(coords), -1), tours, images)

    return in_parts(net, solved, len(instances), size, precision, 2, customers)


def route_lengths(coords: Tensor, solutions: Tensor) -> Tensor:
    """Lengths (batch, tours), float64, of solutions (batch, tours, 2, V) over coords (batch, 1 + V, 2)."""
    points = coords.double()
    out = (points - points[:, :1]).norm(dim=-1)
    instance = torch.arange(len(coords), device=coords.device)[:, None]
    order, via = solutions.unbind(2)
    before = torch.zeros_like(order[..., 0])
    total = torch.zeros(order.shape[:2], dtype=torch.float64, device=coords.device)
    for stop in range(order.shape[2]):
        now = order[..., stop]
        straight = (points[instance, now] - points[instance, before]).norm(dim=-1)
        total += torch.where(via[..., stop] == 1, out[instance, before] + out[instance, now], straight)
        before = now
    return total + out[instance, before]
