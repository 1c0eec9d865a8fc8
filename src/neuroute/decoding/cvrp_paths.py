"""CVRP instances on a device, and how a network completes one path: what every way of decoding them builds on.

Every path is feasible, whatever the network says: a customer that does not fit is reached through the depot.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from neuroute.problems.vrp import Vrp

# rows (batch, 1 + available + 1, E), share of the capacity that is left (batch,) -> logits (batch, available, 2)
Decide = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Batch:
    """Instances on the network's device."""

    coords: Tensor  # (batch, V + 1, 2)
    demand: Tensor  # (batch, V + 1) int64
    capacity: Tensor  # (batch,) int64

    @classmethod
    def of(cls, instances: Vrp, device: torch.device) -> "Batch":
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
