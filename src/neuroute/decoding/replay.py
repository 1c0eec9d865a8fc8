"""Decisions that were made, once more: for the gradients of a roll-out without keeping what led to each of them.

A roll-out with gradients keeps several numbers of each decision, tour and node until they are taken: of 6 instances of
500 nodes from every start, each of these is 750 million.  Without gradients and replayed by parts, it keeps a part's.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from neuroute.decoding.multi_start import Choose, UnderWay


class Decisions(NamedTuple):
    """Of several moves, side by side in the second axis: `decide` takes them as so many tours."""

    known: Tensor  # (batch, moves * tours, ...)
    current: Tensor  # (batch, moves * tours) int64
    closed: Tensor  # (batch, moves * tours, nodes)
    chosen: Tensor  # (batch, moves * tours) int64


class Recorded:
    """A way to choose that keeps what was chosen."""

    def __init__(self, choose: Choose) -> None:
        self._choose = choose
        self.stops: list[Tensor] = []  # of each move (batch, tours)

    def __call__(self, logits: Tensor) -> Tensor:
        self.stops.append(self._choose(logits))
        return self.stops[-1]


def replay(tours: UnderWay, stops: list[Tensor], moves: int) -> Iterator[Decisions]:
    """Tours as they were before the first of the stops -> their decisions, `moves` of them at a time.

    The order of the second axis: all tours of a move, then those of the next.
    """
    for first in range(0, len(stops), moves):
        kept = []
        for stop in stops[first : first + moves]:
            kept.append((tours.known, tours.current, tours.closed.clone(), stop))
            with torch.no_grad():
                tours.go(stop)
        yield Decisions(*(torch.cat(parts, dim=1) for parts in zip(*kept, strict=True)))
