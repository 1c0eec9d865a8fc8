"""Solutions of the 16 vehicle routing problems from many starts of an instance at once, and from its eight images.

One step serves all of them, as the published environments of MVMoE do (Zhou et al., 2024): a constraint closes the
customers that would break it, and constraints add up.  Loads are whole numbers; times and lengths are kept in double
precision, so that what may be driven here may be driven by `problems.vrp.valid`, whatever the network says.
"""

from typing import Any

import torch
from torch import Tensor

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
from neuroute.decoding.vrp_batch import VrpBatch, start_customers
from neuroute.networks.blocks.routing import Routing
from neuroute.problems.vrp import EPS, Vrp

LOAD, TIME, LENGTH, OPEN = range(4)  # of `known`
TOGETHER = 100  # instances of a batch where that matters, as published
ACTIVATIONS = 4 * 16  # bytes of a token and a channel, as in `batches.batch_size`


class RoutesUnderConstraints(RoutesUnderWay):
    """Solutions of one of the 16 problems.

    `known` (batch, tours, 4): the load as a share of the capacity, the time at which service ends at the current stop
    (0 without windows), the length of the route so far, and 1 where routes are open.
    """

    def __init__(self, starts: Tensor, instances: VrpBatch, dtype: torch.dtype, ways: Tensor | None = None) -> None:
        """starts (batch, tours): the first customers, which no constraint is asked about; 0 where the network is to
        choose.  ways: the instances' `distances`, where they are known already.
        """
        nodes = instances.demand.shape[1]
        super().__init__(starts, nodes)
        self._on, self._demand, self._capacity = instances.switches, instances.demand, instances.capacity[:, None]
        self._limit = instances.limit[:, None, None] + EPS
        self._service = instances.service.double()
        self._opens, self._closes = instances.windows.double().unbind(-1)
        self._ways = instances.distances() if ways is None else ways
        self._row = torch.arange(len(starts), device=starts.device)[:, None]
        self._visited = torch.zeros(*starts.shape, nodes, dtype=torch.bool, device=starts.device)
        self._deliveries = (instances.demand > 0).sum(dim=1, keepdim=True).expand_as(starts)  # that are left
        self._load = self._filled()
        self._time = self._length = torch.zeros(starts.shape, dtype=torch.float64, device=starts.device)
        self._dtype = dtype
        self.go(starts)

    def go(self, stops: Tensor) -> None:
        customer = stops > 0
        demand, way = self._demand.gather(1, stops), self._ways[self._row, self.current, stops]
        self._move(stops)
        self._visited.scatter_(2, stops[..., None], True)
        self._deliveries = self._deliveries - (demand > 0).long()
        self._load = torch.where(customer, self._load - demand, self._filled())
        self._length = torch.where(customer, self._length + way, 0.0)
        if self._on.windows:
            begins = torch.maximum(self._time + way, self._opens.gather(1, stops))
            self._time = torch.where(customer, begins + self._service.gather(1, stops), 0.0)
        self._close()
        known = (self._load / self._capacity, self._time, self._length, torch.full_like(self._time, self._on.open))
        self.known = torch.stack([each.to(self._dtype) for each in known], dim=-1)

    def _filled(self) -> Tensor:
        """Load of a vehicle that leaves the depot: full, or empty when it can only pick up."""
        if not self._on.backhaul:
            return self._capacity.expand_as(self._deliveries)
        return torch.where(self._deliveries > 0, self._capacity, 0)

    def _close(self) -> None:
        """What may not come next.  Built anew each time: gradients may still need what was there."""
        demand, load = self._demand[:, None], self._load[..., None]
        shut = self._visited | (demand > load)
        if self._on.backhaul:
            shut |= load - demand > self._capacity[..., None]
        if self._on.limit or self._on.windows:
            way = self._ways[self._row, self.current]
            home = 0.0 if self._on.open else self._ways[:, None, :, 0]
            if self._on.limit:
                shut |= self._length[..., None] + way + home > self._limit
            if self._on.windows:
                begins = torch.maximum(self._time[..., None] + way, self._opens[:, None])
                shut |= begins > self._closes[:, None] + EPS
                if not self._on.open:
                    shut |= begins + self._service[:, None] + home > self._closes[:, None, :1] + EPS
        # The way home is never too long nor too late: no stop is driven to that it does not lead home from.
        shut[..., 0] = self._depot_closed()
        self.closed = nothing_closed(self.current, self._demand.shape[1], self._dtype).masked_fill_(shut, -torch.inf)


def roll_out(net: Any, prepared: Any, instances: VrpBatch, starts: Tensor, choose: Choose = greedy) -> Tensor:
    """Solutions (batch, tours, 2, V) int64, each decision made by `choose`; see `multi_start.complete`.

    instances: what `prepared` is of.  starts (batch, tours) int64: the first customers, 0 where the network is to
    choose.
    """
    return complete(net, prepared, RoutesUnderConstraints(starts, instances, prepared.nodes.dtype), choose)


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

    Of each instance, those that start at its first `starts` customers (None: at every one) that are more than a
    pick-up; of one start, the first customer is the network's choice.  With `augment` those of its eight images too,
    which only the network sees: ways are measured in the instance itself.  Otherwise as for the TSP, but that a network
    whose gates look at whole batches has as many instances in one whatever the memory, see `in_hand`; what such gates
    draw follows from the number of the batch's first instance.
    """
    device, customers = next(net.parameters()).device, instances.customers
    number = max(1, min(number_of_starts(instances), how_many(starts, customers, "customers")))
    images = 8 if augment else 1
    tours, size = in_hand(net, customers + 1, number * images, images, memory_gb, batch_size)
    together = net.is_batch_dependent

    def solved(first: int) -> Tensor:
        part = VrpBatch.of(instances[first : first + size], device)
        same = part.repeated(images)
        seen = same.at(augment8(part.coords).flatten(0, 1)) if augment else same
        drawing = Routing(torch.Generator(device).manual_seed(first)) if together else None
        also = () if drawing is None else (drawing,)
        prepared = net.prepare(net.encode(seen.coords, seen.share, seen.windows, *also), *also)
        chosen = same.demand.new_zeros(len(same.demand), 1) if starts == 1 else start_customers(same.demand, number)
        ways = same.distances()

        def built(starts: Tensor) -> tuple[Tensor, Tensor]:
            if drawing is not None:
                drawing.first = None  # tours that are built together are an episode
            solutions = complete(net, prepared, RoutesUnderConstraints(starts, same, prepared.nodes.dtype, ways))
            return solutions, route_lengths(ways, solutions, same.switches.open)

        return shortest(built, chosen, tours, images)

    return in_parts(net, solved, len(instances), size, precision, 2, customers)


def in_hand(
    net: Any, nodes: int, tours: int, images: int, memory_gb: float, batch_size: int | None = None
) -> tuple[int, int]:
    """As `multi_start.at_once`: tours that are built at a time, and instances that are encoded at a time.

    With backhauls an instance has fewer tours than customers, so there may be more instances than for other problems.
    Instances of a network that mixes what is in a batch are `TOGETHER`, and all their tours too, as long as the memory
    holds them: only where it does not, solutions depend on it.
    """
    # Ways and times of all nodes in double precision are about as much again as what other problems keep.
    memory_gb /= 2
    most, fit = at_once(net, nodes, tours, images, memory_gb, batch_size)
    if batch_size or not net.is_batch_dependent:
        return most, fit
    encoded = int(memory_gb * 1e9 / (ACTIVATIONS * net.width * (nodes + 1) * images))
    return most, max(1, min(TOGETHER, most // tours, encoded))


def number_of_starts(instances: Vrp) -> int:
    """Customers that solutions of these instances may start at, the most that one of them has."""
    deliveries = (instances.demand[:, 1:] > 0).sum(1)
    return int(max(deliveries.max(initial=0), (deliveries == 0).any() * instances.customers))


def route_lengths(ways: Tensor, solutions: Tensor, open: bool) -> Tensor:
    """Lengths (batch, tours), float64, of solutions (batch, tours, 2, V); ways (batch, 1 + V, 1 + V)."""
    row = torch.arange(len(ways), device=ways.device)[:, None]
    order, via = solutions.unbind(2)
    before = torch.zeros_like(order[..., 0])
    total = torch.zeros(order.shape[:2], dtype=torch.float64, device=ways.device)
    for stop in range(order.shape[2]):
        now, starts = order[..., stop], via[..., stop] == 1
        total += ways[row, torch.where(starts, 0, before), now]
        if not open:
            total += torch.where(starts, ways[row, before, 0], 0.0)
        before = now
    return total if open else total + ways[row, before, 0]
