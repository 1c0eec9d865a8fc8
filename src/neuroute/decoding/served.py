"""Routes for networks that read which customers have been served, and not only which ones may come next."""

import torch
from torch import Tensor

from neuroute.decoding.environment import Batch
from neuroute.decoding.rollout import Rollout, pick_masks
from neuroute.networks.base import MultiStartNetwork


def begin(net: MultiStartNetwork, batch: Batch, starts: Tensor, dtype: torch.dtype) -> Rollout:
    """Solutions from starts (batch, tours), with the context that the network reads; dtype: of its nodes."""
    rollout = batch.rollout(starts, dtype)
    return WithServed(rollout, starts) if net.sees_served else rollout


class WithServed:
    """A rollout of the CVRP whose context is, besides what is left, -inf at what has been served and 0 elsewhere."""

    def __init__(self, rollout: Rollout, starts: Tensor) -> None:
        self._rollout, self._served = rollout, torch.zeros_like(rollout.mask)
        self._show(starts)

    def is_complete(self) -> bool:
        return self._rollout.is_complete()

    def go(self, stops: Tensor) -> None:
        self._rollout.go(stops)
        self._show(stops)

    def _show(self, stops: Tensor) -> None:
        self._served.scatter_(2, stops[..., None], -torch.inf)
        self._take_state()

    def _take_state(self) -> None:
        self.current, self.mask = self._rollout.current, self._rollout.mask
        self.context = torch.cat([self._rollout.context[..., None], self._served], dim=-1)

    def pick(self, parents: Tensor) -> None:
        self._rollout.pick(parents)
        self._served = pick_masks(self._served, parents)
        self._take_state()

    def solutions(self) -> Tensor:
        return self._rollout.solutions()
