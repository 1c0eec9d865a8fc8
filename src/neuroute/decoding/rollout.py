"""Rollouts: several solutions of each instance, built in step by one decision after the other."""

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.networks.base import MultiStartNetwork

Choose = Callable[[Tensor], Tensor]  # logits (batch, tours, nodes) -> nodes (batch, tours)


class Rollout(Protocol):
    """Solutions of several instances that are being built: as many of each, in step."""

    context: Tensor  # (batch, tours, ...): what a decision knows besides the stop, see `MultiStartNetwork`
    current: Tensor  # (batch, tours) int64: the stop
    mask: Tensor  # (batch, tours, nodes): -inf at what may not come next, 0 elsewhere

    def is_complete(self) -> bool:
        """Whether nothing is left to be decided."""

    def go(self, stops: Tensor) -> None:
        """Move on to stops (batch, tours)."""

    def pick(self, parents: Tensor) -> None:
        """Go on with the solutions `parents` (batch, new) int64, each as often as it is among them, and no others."""

    def solutions(self) -> Tensor:
        """What was built, int64 (batch, tours, ...).  Raises NeurouteError if scores were no numbers."""


def choose_best(logits: Tensor) -> Tensor:
    """The most probable next stop."""
    return logits.max(dim=-1).indices  # `argmax` takes four times as long on a CPU


def complete(net: MultiStartNetwork, prepared: Any, rollout: Rollout, choose: Choose | None = None) -> Tensor:
    """The solutions of a rollout, each decision made by `choose`, or the most probable one.

    prepared: what `net.prepare` returns.  Sampling, and the probabilities that training needs, are a matter of
    `choose`, which sees the logits of each decision.
    """
    while not rollout.is_complete():
        state = prepared, rollout.context, rollout.current, rollout.mask
        rollout.go(net.decide_best(*state) if choose is None else choose(net.decide(*state)))
    return rollout.solutions()


def no_numbers() -> NeurouteError:
    """The error for decisions that went where they may not."""
    return NeurouteError(
        "solutions are not complete when they must be: the network's scores are no numbers; its training has "
        "diverged, train it with a lower learning rate (or `decide` does not add the mask to them)"
    )


def precision_of(prepared: Any) -> torch.dtype:
    """Of masks and of what decisions know besides: at least float32, whatever networks compute in."""
    return torch.promote_types(prepared.nodes.dtype, torch.float32)


def empty_mask(starts: Tensor, nodes: int, dtype: torch.dtype) -> Tensor:
    """Zeros (batch, tours, nodes); rows begin at multiples of 8, as a GPU's fused attention loads them."""
    batch, tours = starts.shape
    return torch.zeros(batch, tours, nodes + -nodes % 8, dtype=dtype, device=starts.device)[..., :nodes]


def pick_tours(values: Tensor, parents: Tensor) -> Tensor:
    """values (batch, tours, ...), parents (batch, new) int64 -> (batch, new, ...)."""
    return values[torch.arange(len(parents), device=parents.device)[:, None], parents]


def pick_masks(mask: Tensor, parents: Tensor) -> Tensor:
    """mask (batch, tours, nodes), parents (batch, new) int64 -> (batch, new, nodes), with rows as in `empty_mask`."""
    return empty_mask(parents, mask.shape[2], mask.dtype).copy_(pick_tours(mask, parents))


def mask_stops(mask: Tensor, stops: Tensor) -> Tensor:
    """-inf at stops (batch, tours).  In place, unless gradients still need what was there."""
    if torch.is_grad_enabled():
        return mask.scatter(2, stops[..., None], -torch.inf)
    return mask.scatter_(2, stops[..., None], -torch.inf)
