"""Supervised updates on sub-paths of labelled tours (LEHD's scheme, which scaling builds on)."""

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor


def draw(generator: torch.Generator, nodes: int) -> tuple[int, int, bool]:
    """(start, length, reversed), shared by the whole batch: start in 0..n-1, length in 4..n, both inclusive."""
    start = int(torch.randint(nodes, (), generator=generator))
    length = int(torch.randint(4, nodes + 1, (), generator=generator))
    return start, length, bool(torch.randint(2, (), generator=generator))


def cut(coords: Tensor, tours: Tensor, start: int, length: int, backwards: bool) -> Tensor:
    """The coordinates of `length` consecutive stops of each cyclic tour, in visiting order.

    coords (batch, n, 2), tours (batch, n) -> (batch, length, 2)
    """
    stops = torch.arange(start, start + length, device=tours.device) % tours.shape[1]
    path = tours[:, stops.flip(0) if backwards else stops]
    return coords.gather(1, path[..., None].expand(-1, -1, coords.shape[-1]))


def decisions(length: int, step: str) -> range:
    """First rows of the decisions that are trained: row 0 is where the path starts, the last where it ends.

    The last decision of a path has a single candidate: its loss and gradient are zero, so it is left out.
    """
    return range(1) if step == "decision" else range(length - 3)


def decision_loss(decide: Callable[[Tensor], Tensor], path: Tensor, row: int) -> Tensor:
    """Mean cross-entropy of choosing stop row + 1 when standing on stop `row`; path (batch, length, E).

    The label is always the first candidate.  That gives nothing away: the networks are equivariant to the order of
    the candidates.
    """
    logits = decide(path[:, row:]).float()
    return F.cross_entropy(logits, torch.zeros(len(path), dtype=torch.long, device=path.device))


def micro_batches(path: Tensor, limit: int) -> Iterator[tuple[Tensor, float]]:
    """Parts of at most `limit` instances, each with its share of the batch."""
    for part in path.split(limit):
        yield part, len(part) / len(path)
