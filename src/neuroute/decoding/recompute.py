"""Decisions that were made, once more: for the gradients of a rollout without keeping what led to each of them.

A rollout with gradients keeps several numbers of each decision, tour and node until they are taken: of 6 instances of
500 nodes from every start, each of these is 750 million.  Without gradients and recomputed by parts, it keeps a part's.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from neuroute.decoding.rollout import Choose, Rollout


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
