"""The cut between an encoder and the decisions that are learnt from in parts."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from neuroute.decoding.rollout import Choose, Rollout
from neuroute.networks.blocks.all_digits import at_least_float32


class SplitBackward:
    """Every part of the decisions has a graph of its own that ends at leaves, one for each field of what is prepared
    that the encoder's graph leads to; what these have gathered goes through the encoder once.
    """

    def __init__(self, prepared: Any) -> None:
        """prepared: a NamedTuple.  Leaves gather gradients in at least float32."""
        self.prepared = prepared
        self._leaves = [
            at_least_float32(field.detach()).requires_grad_()
            if isinstance(field, Tensor) and field.requires_grad
            else None
            for field in prepared
        ]

    def detached(self) -> Any:
        """What is prepared, on the leaves: anew for each part."""
        pairs = zip(self.prepared, self._leaves, strict=True)
        return type(self.prepared)(*(field if leaf is None else leaf.to(field.dtype) for field, leaf in pairs))

    def backward(self, loss: Tensor | None = None) -> None:
        """Carry the leaves' gradients through the encoder, and those of a loss of its own."""
        pairs = zip(self.prepared, self._leaves, strict=True)
        roots: list[tuple[Tensor, Tensor | None]] = [
            (field, leaf.grad.to(field.dtype)) for field, leaf in pairs if leaf is not None and leaf.grad is not None
        ]
        if loss is not None and loss.requires_grad:
            roots.append((loss, None))
        if roots:  # of several processes one may have learnt from nothing
            torch.autograd.backward([root for root, _ in roots], [gradient for _, gradient in roots])


# -- Decisions that were made, once more: for the gradients of a rollout without keeping what led to each of them
# A rollout with gradients keeps several numbers of each decision, tour and node until they are taken: of 6
# instances of 500 nodes from every start, each of these is 750 million. Without gradients and recomputed by parts,
# it keeps a part's.


class Decisions(NamedTuple):
    """Of several moves, side by side in the second axis: `decide` takes them as so many tours."""

    context: Tensor  # (batch, moves * tours, ...)
    current: Tensor  # (batch, moves * tours) int64
    mask: Tensor  # (batch, moves * tours, nodes)
    chosen: Tensor  # (batch, moves * tours) int64


class RecordedChoices:
    """A way to choose that keeps what was chosen."""

    def __init__(self, choose: Choose) -> None:
        self._choose = choose
        self.stops: list[Tensor] = []  # of each move (batch, tours)

    def __call__(self, logits: Tensor) -> Tensor:
        self.stops.append(self._choose(logits))
        return self.stops[-1]


def recompute(rollout: Rollout, stops: list[Tensor], moves: int) -> Iterator[Decisions]:
    """A rollout as it was before the first of the stops -> its decisions, `moves` of them at a time.

    The order of the second axis: all tours of a move, then those of the next.
    """
    for first in range(0, len(stops), moves):
        decisions = []
        for stop in stops[first : first + moves]:
            decisions.append((rollout.context, rollout.current, rollout.mask.clone(), stop))
            with torch.no_grad():
                rollout.go(stop)
        yield Decisions(*(torch.cat(parts, dim=1) for parts in zip(*decisions, strict=True)))
