"""The CVRP for decoding: batches, solutions from many starts, and greedy solutions of path networks.

Whatever the network says, every solution is feasible: what does not fit is masked, and loads are whole numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.decoding.environment import (
    B,
    Batch,
    Environment,
    Rollout,
    empty_mask,
    no_numbers,
    select_masks,
    select_tours,
)
from neuroute.decoding.greedy import check_numbers
from neuroute.networks.base import PathNetwork
from neuroute.networks.kernels import moves as kernel
from neuroute.networks.kernels.moves import Routes
from neuroute.problems.vrp import Vrp
from neuroute.specs.objects import Decoding

# rows (batch, 1 + available + 1, E), share of the capacity that is left (batch,) -> logits (batch, available, 2)
Decide = Callable[[Tensor, Tensor], Tensor]


@torch.no_grad()
def complete_routes(
    decide: Decide,
    rows: Tensor,
    demand: Tensor,
    capacity: Tensor,
    remaining: Tensor,
    sizes: list[int] | None = None,
    *,
    checks: bool = False,
) -> tuple[Tensor, Tensor]:
    """Visit the rows between the current stop and the depot, always by the most probable of all ways on.

    rows (paths, m, E) and demand (paths, m), both in the order [current, available..., depot]; capacity (paths,);
    left (paths,): what is in the vehicle at the current stop.  With `sizes`, of path i only the last sizes[i] + 1
    columns are there, and the longest path, of m - 1, comes first: nothing is padded or masked, whatever the network.
    Paths of few stops wait until the longer ones have no more left, so that at each step all candidates count alike.
    Returns positions in `rows` and flags, both int64 (paths, m - 1); up to a path's first stop they are their own.

    Raises NeurouteError for logits that do not tell the two ways apart; with `checks`, for scores that are no numbers.
    As in TSP's `complete_paths` the chosen row is swapped to the front, so rows and demand are overwritten.
    """
    paths, m = demand.shape
    remaining, via = remaining.clone(), torch.zeros_like(demand)
    order = torch.arange(m, device=rows.device).repeat(paths, 1)
    index = torch.arange(paths, device=rows.device)
    started = paths if sizes is None else 0
    total = rows.new_zeros(paths)
    for step in range(m - 2):  # the last customer is certain, the way to it is not
        while sizes and started < paths and sizes[started] >= m - 1 - step:
            started += 1
        on, path = slice(started), index[:started]
        share = (remaining[on] / capacity[on]).to(rows.dtype)
        ways = decide(rows[on, step:], share)
        if ways.dim() != 3:
            raise NeurouteError(f"decide returns logits {tuple(ways.shape)}; (batch, available, 2) are needed here")
        score, best = ways.flatten(1).max(dim=1)
        total[on] += score
        place, flag = best // 2 + (step + 1), best % 2
        for array in (rows, demand, order):
            moved = array[on, step + 1].clone()
            array[on, step + 1] = array[path, place]
            array[path, place] = moved
        served = demand[on, step + 1]
        flag = torch.where(served > remaining[on], 1, flag)
        remaining[on] = torch.where(flag == 1, capacity[on], remaining[on]) - served
        via[on, step + 1] = flag
    if checks:
        check_numbers(total)
    return order[:, :-1], via[:, :-1]


@dataclass(frozen=True)
class CvrpBatch(Batch):
    demand: Tensor  # (batch, 1 + V) int64
    capacity: Tensor  # (batch,) int64

    @classmethod
    def of(cls, instances: Vrp, device: torch.device) -> Self:
        arrays = (instances.coords, instances.demand, instances.capacity)
        return cls(*(torch.from_numpy(array).to(device) for array in arrays))

    def instances(self) -> Vrp:
        """What the batch is of."""
        return Vrp(self.coords.cpu().numpy(), self.demand.cpu().numpy(), self.capacity.cpu().numpy())

    @property
    def share(self) -> Tensor:
        """Demands as shares of the capacity, as networks take them."""
        return (self.demand / self.capacity[:, None]).to(self.coords.dtype)

    @property
    def features(self) -> tuple[Tensor, ...]:
        return self.coords, self.share

    def start_nodes(self, number: int) -> Tensor:
        return torch.arange(1, number + 1, device=self.coords.device).expand(len(self), -1)

    def rollout(self, starts: Tensor, dtype: torch.dtype) -> Rollout:
        return RouteRollout(self, starts, dtype)

    def lengths(self, solutions: Tensor) -> Tensor:
        points = self.coords.double()
        out: Tensor = (points - points[:, :1]).norm(dim=-1)
        instance = torch.arange(len(self.coords), device=self.coords.device)[:, None]
        order, via = solutions.unbind(2)
        before = torch.zeros_like(order[..., 0])
        total = torch.zeros(order.shape[:2], dtype=torch.float64, device=self.coords.device)
        for stop in range(order.shape[2]):
            now = order[..., stop]
            straight = (points[instance, now] - points[instance, before]).norm(dim=-1)
            total += torch.where(via[..., stop] == 1, out[instance, before] + out[instance, now], straight)
            before = now
        return total + out[instance, before]


class RouteRollout:
    """Solutions under construction; `context` is the load as a share of the capacity.

    A decision may go to the depot, where the vehicle is filled again, unless it stands there.  The last way back goes
    without saying.  A solution that is complete before others of the batch goes to the depot and stays: nothing else is
    open, so that decision is certain.
    """

    context: Tensor
    of_tours: ClassVar[tuple[str, ...]] = ("current", "_served", "_order", "_via", "_load")  # besides masks and context

    def __init__(self, batch: CvrpBatch, starts: Tensor, dtype: torch.dtype) -> None:
        """starts (batch, tours): the first customers, which no constraint is asked about; 0 where the network is to
        choose.
        """
        nodes = batch.demand.shape[1]
        self._demand, self._capacity, self._dtype = batch.demand, batch.capacity[:, None], dtype
        self.current, self._served = torch.zeros_like(starts), torch.zeros_like(starts)
        self._order, self._via = (starts.new_zeros(*starts.shape, nodes, dtype=torch.int32) for _ in range(2))
        self._visited, self.action_mask = (empty_mask(starts, nodes, dtype) for _ in range(2))
        self._customers, self._moves = nodes - 1, 0
        self._load = self._full_load().expand_as(starts)
        self._routes = self._shared(batch)
        self.step(starts)

    def done(self) -> bool:
        """Whether all are complete.  Raises NeurouteError if they never will be: scores that are no numbers."""
        # Asking waits for a GPU, so not before the first moment when it may be so.
        complete = self._moves >= self._customers and bool((self._served == self._customers).all())
        if not complete and self._moves > 2 * self._customers + 1:  # every customer, the depot before each
            raise no_numbers()
        return complete

    def select(self, parents: Tensor) -> None:
        for name in self.of_tours:
            setattr(self, name, select_tours(getattr(self, name), parents))
        self._visited, self.action_mask = (select_masks(mask, parents) for mask in (self._visited, self.action_mask))
        self.context = self._make_context()

    def solutions(self) -> Tensor:
        """(batch, tours, 2, V): order and flags, as in `problems.vrp`."""
        return torch.stack([self._order[..., :-1], self._via[..., :-1]], dim=2).long()

    def _shared(self, batch: CvrpBatch) -> Routes:
        """For the kernel."""
        return Routes(batch.demand, batch.capacity)

    def step(self, stops: Tensor) -> None:
        if kernel.fits(stops, self.action_mask):
            names = {name.lstrip("_"): name for name in self.of_tours if name.lstrip("_") in kernel.STATE}
            before = {name: getattr(self, attribute) for name, attribute in names.items()}
            after, self.context = self._routes.step(
                stops, self._order, self._via, self._visited, self.action_mask, before
            )
            for name, attribute in names.items():
                setattr(self, attribute, after[name])
            self._moves += 1
            return
        demand = self._demand.gather(1, stops)
        self._drive(stops, demand)
        # A way to the depot is written where the next customer will be, or, after the last one, behind all.
        self._order.scatter_(2, self._served[..., None], stops[..., None].int())
        self._via.scatter_(2, self._served[..., None], (self.current == 0)[..., None].int())
        self._visited.scatter_(2, stops[..., None], -torch.inf)
        self._served = self._served + (stops > 0)
        self._load = torch.where(stops > 0, self._load - demand, self._full_load())
        self.current, self._moves = stops, self._moves + 1
        if torch.is_grad_enabled():  # which may still need what was there
            self.action_mask = empty_mask(stops, self._customers + 1, self._dtype)
        self.action_mask.copy_(self._visited).masked_fill_(self._misfits(), -torch.inf)
        waits = (stops == 0) & (self._served < self._customers)
        self.action_mask[..., 0] = torch.where(waits, -torch.inf, 0.0)
        self.context = self._make_context()

    def _drive(self, stops: Tensor, demand: Tensor) -> None:
        """What else changes on the way from the current stop to the next; demand (batch, tours): theirs."""

    def _full_load(self) -> Tensor:
        """The load of a vehicle that leaves the depot."""
        return self._capacity

    def _misfits(self) -> Tensor:
        """Which customers would break a constraint: bool (batch, tours, nodes)."""
        return self._demand[:, None] > self._load[..., None]

    def _make_context(self) -> Tensor:
        return self._load.to(self._dtype) / self._capacity


class RouteEnvironment(Environment[B]):
    """Instances are a `Vrp`, solutions (2, V)."""

    noun, depots = "customers", 1

    def size(self, instances: Vrp) -> int:
        return instances.customers

    def shape(self, n: int) -> tuple[int, ...]:
        return 2, n

    def max_moves(self, n: int) -> int:
        """The first customer is given, and the last way back goes without saying: at most a way back before each."""
        return 2 * (n - 1)


class CvrpEnvironment(RouteEnvironment[CvrpBatch]):
    def batch(self, instances: Vrp, device: torch.device) -> CvrpBatch:
        return CvrpBatch.of(instances, device)

    def build_greedily(
        self, net: PathNetwork, batch: CvrpBatch, decoding: Decoding, memory_gb: float, first: int
    ) -> Tensor:
        """Solutions (batch, 2, V), from the depot on."""
        decide = decide_for(net, decoding, batch.coords.shape[1] - 1)
        demand = batch.demand
        rows, demand = (torch.cat([a, a[:, :1]], dim=1) for a in (net.encode(batch.coords, batch.share), demand))
        order, via = complete_routes(decide, rows, demand, batch.capacity, batch.capacity, checks=True)
        via[:, 1] = 1  # whichever way the network called it, the first customer is reached from the depot
        return torch.stack([order[:, 1:], via[:, 1:]], dim=1)


def decide_for(net: PathNetwork, decoding: Decoding, customers: int) -> Decide:
    """The network's decisions on instances of so many customers."""
    scale = net.attention_scale(customers) if decoding.log_n else 1.0
    return lambda rows, remaining: net.decide(rows, remaining, scale)


CVRP = CvrpEnvironment()
