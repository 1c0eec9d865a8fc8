"""Greedy decisions of networks of many starts on a CPU, without gradients: `decision.c`; see `library`.

A glimpse is an attention of each tour's query to the nodes; products of what it sees with targets, one a node, say
which node fits best (`blocks.attention`).  Both halves are one call, or two where a layer stands between them.
"""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from neuroute.networks.kernels.library import call, lanes, runs, threads_for

CHANNELS = 64  # of a head, at most
_WIDEST = 16  # lanes
SHARED = ("keys", "values", "targets", "offsets", "of_current", "of_first", "of_numbers", "pairs", "distances")


class Decisions:
    """What the decisions of a batch of instances share, packed."""

    def __init__(
        self,
        keys: Tensor,
        values: Tensor,
        targets: Tensor,
        offsets: Tensor,
        of_current: Tensor,
        of_context: Tensor,
        limit: float,
    ) -> None:
        """keys and values (batch, heads, nodes, d_k), targets (batch, nodes, width), offsets (batch, 1, nodes) or ().

        Of experts, of which `point` is told the shares: targets (batch, experts, nodes, width) and offsets (batch,
        experts, nodes).

        A query is the row of_current (batch, nodes, width) of where a tour is, and that of of_context (the same) of
        where it began, or its numbers times of_context (count, width).  limit: see `blocks.attention.best_of`.
        """
        batch, heads, nodes, channels = keys.shape
        beyond, deep = -nodes % lanes(), -channels % lanes()
        attention = {
            "keys": F.pad(keys.float().transpose(2, 3), (0, beyond)),
            "values": F.pad(values.float(), (0, deep)),
            "offsets": offsets.float().expand(batch, math.prod(targets.shape[1:-2]), nodes),
        }
        self._keep(
            targets, of_current, of_context, attention, (heads, channels), (1 / math.sqrt(channels), limit, 0.0, 0.0)
        )

    def _keep(
        self,
        targets: Tensor,
        of_current: Tensor,
        of_context: Tensor,
        glimpse: dict[str, Tensor],
        heads: tuple[int, int],
        numbers: tuple[float, ...],
    ) -> None:
        """Keep what all decisions read, contiguous and in float32; `instances` of decision.c.

        heads: how many, and their channels.  numbers: of scores, where fits are cut off, and slopes of distances.
        """
        batch, *experts, nodes, self._width = targets.shape
        self._starts = of_context.dim() == 3
        count = 0 if self._starts else of_context.numel() // self._width
        targets = F.pad(targets.transpose(-2, -1), (0, -nodes % lanes()))
        context = {"of_current": of_current, "of_first" if self._starts else "of_numbers": of_context}
        arrays = {"targets": targets, **context, **glimpse}
        kept = {name: each.float().contiguous() for name, each in arrays.items()}
        sizes = batch, nodes, *heads, count, math.prod(experts)
        self._shared: tuple[Any, ...] = *map(kept.get, SHARED), *sizes, *numbers

    def best(self, context: Tensor, current: Tensor, mask: Tensor) -> Tensor:
        """The node that fits each tour best: (batch, tours); arguments as of `MultiStartNetwork.decide`."""
        return self._run(context, current, mask, None)[1]

    def glimpse(self, context: Tensor, current: Tensor, mask: Tensor) -> Tensor:
        """What each tour sees: (batch, tours, width)."""
        return self._run(context, current, mask, None, points=False)[0]

    def point(self, glimpsed: Tensor, mask: Tensor, shares: Tensor | None = None) -> Tensor:
        """As `best`, after a glimpse, of what became of it (batch, tours, width); shares (batch, tours, experts): how
        much each expert's targets count.
        """
        return self._run(None, None, mask, glimpsed.float().contiguous(), shares)[1]

    def _run(
        self,
        context: Tensor | None,
        current: Tensor | None,
        mask: Tensor,
        glimpsed: Tensor | None,
        shares: Tensor | None = None,
        *,
        points: bool = True,
    ) -> tuple[Tensor, Tensor]:
        batch, tours, nodes = mask.shape
        glimpses = glimpsed is None
        glimpsed = mask.new_empty(batch, tours, self._width) if glimpsed is None else glimpsed
        best = torch.empty(batch, tours, dtype=torch.int64)
        if mask.stride() != (tours * mask.stride(1), mask.stride(1), 1):
            mask = mask.contiguous()
        context, current, shares = (None if each is None else each.contiguous() for each in (context, current, shares))
        first, numbers = (context, None) if self._starts else (None, context)
        threads = threads_for(batch * tours * nodes * self._width)
        arrays = current, first, numbers, mask, shares, glimpsed, best
        call("decide_all", *self._shared, *arrays, tours, mask.stride(1), glimpses, points, threads)
        return glimpsed, best


class AttentionFreeDecisions(Decisions):
    """As `Decisions`, where a glimpse is that of an attention-free module (`blocks.layers`)."""

    def __init__(
        self,
        pairs: Tensor,
        distances: Tensor,
        targets: Tensor,
        of_current: Tensor,
        of_context: Tensor,
        slopes: tuple[float, float],
        limit: float,
    ) -> None:
        """pairs (batch, nodes, 2 width) of `layers.weigh`, distances (batch, nodes, nodes); the others: `Decisions`.

        slopes: what distances are multiplied with where they are added to scores, and to how well nodes fit.
        """
        width = targets.shape[2]
        glimpse = {"pairs": pairs, "distances": distances}
        numbers = 1 / math.sqrt(width), limit, *slopes
        self._keep(targets, of_current, of_context, glimpse, (1, width), numbers)


def fits_attention_free(pairs: Tensor) -> bool:
    """Whether the kernel takes decisions on such pairs, and is there."""
    return pairs.shape[2] % (2 * _WIDEST) == 0 and fits(pairs[..., :1], pairs)


def fits(keys: Tensor, targets: Tensor) -> bool:
    """Whether the kernel takes decisions on such keys and targets, and is there."""
    return (
        not torch.is_grad_enabled()
        and keys.shape[-1] <= CHANNELS
        and runs(keys, dtypes=(torch.float32, torch.bfloat16))
        and runs(targets)
    )
