"""A move of rollouts of routing problems on a CPU, without gradients: `moves.c`; see `library`."""

import torch
from torch import Tensor

from neuroute.networks.kernels.library import call, runs

STATE = ("current", "served", "load", "deliveries", "time", "length")


class Routes:
    """What the moves of a batch share."""

    def __init__(self, demand: Tensor, capacity: Tensor, more: tuple[Tensor, ...] = (), **switches: bool) -> None:
        """demand (batch, nodes) and capacity (batch,) int64; more, float64, of the 16 VRPs: distances (batch, nodes,
        nodes), service, opens and closes (batch, nodes) and limit (batch,), the last two with their slack.
        """
        self._kept = [each.contiguous() for each in (demand, capacity, *more)]
        self._pointers = [*self._kept, *[None] * (5 - len(more))]
        names = ("open", "backhaul", "limited", "windows")
        self._switches, self._numbers = [switches.get(name, False) for name in names], 4 if more else 0

    def step(
        self, stops: Tensor, order: Tensor, via: Tensor, visited: Tensor, mask: Tensor, before: dict[str, Tensor]
    ) -> tuple[dict[str, Tensor], Tensor]:
        """What `before` becomes of STATE, and the context; order, via, visited and mask are overwritten."""
        (batch, tours), nodes = stops.shape, mask.shape[2]
        before = {name: each.contiguous() for name, each in before.items()}
        after = {name: torch.empty_like(each) for name, each in before.items() if name != "current"}
        context = mask.new_empty(batch, tours, *([self._numbers] if self._numbers else []))
        after["current"] = stops = stops.contiguous()
        states = (of.get(name) if name in of else None for of in (before, {**after, "current": None}) for name in STATE)
        arrays = stops, order, via, visited, mask, context, mask.stride(1)
        call("move", *self._pointers, batch, nodes, tours, *self._switches, *arrays, *states)
        return after, context


def fits(stops: Tensor, mask: Tensor) -> bool:
    """Whether the kernel takes such a move, and is there."""
    return (
        not torch.is_grad_enabled()
        and mask.stride(0) == mask.shape[1] * mask.stride(1)
        and runs(mask)
        and runs(stops, dtypes=(torch.int64,))
    )
