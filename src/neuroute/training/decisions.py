"""The decisions along a labelled path, and their loss (LEHD's scheme, which scaling builds on)."""

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from neuroute.networks.base import PathNetwork


class PathDecision(nn.Module):
    """What is trained: a constructive network that encodes a path and decides on one of its stops.

    One module, so that DDP and torch.compile see the encoder too.
    """

    net: PathNetwork

    def __init__(self, net: PathNetwork) -> None:
        super().__init__()
        self.net = net

    def forward(self, path: Tensor, row: int, lengths: Tensor | None = None, noise: Tensor | None = None) -> Tensor:
        """path (batch, length, 2), standing on stop `row` -> logits (batch, candidates) of the stops in between.

        With lengths (batch,), instances lack the rows before the last one that they are short of; noise
        (batch, length, width) is for networks whose embeddings are random.  Both ask for a network that knows them.
        """
        if lengths is None:
            return self.net.decide(self.net.encode(path)[:, row:])
        return self.net.decide(self.net.encode(path, noise)[:, row:], lengths=lengths)


def rows(length: int, step: str) -> range:
    """First rows of the decisions that are trained: row 0 is where the path starts, the last where it ends.

    The last decision of a path has a single candidate: its loss and gradient are zero, so it is left out.
    """
    return range(1) if step == "decision" else range(length - 3)


def loss(decide: Callable[[Tensor, int], Tensor], path: Tensor, row: int) -> Tensor:
    """Mean cross-entropy of choosing stop row + 1 when standing on stop `row`; path (batch, length, 2).

    The label is always the first candidate.  That gives nothing away: the networks are equivariant to the order of
    the candidates.
    """
    logits = decide(path, row).float()
    return F.cross_entropy(logits, torch.zeros(len(path), dtype=torch.long, device=path.device))


def micro_batches(path: Tensor, limit: int) -> Iterator[tuple[Tensor, float]]:
    """Parts of at most `limit` instances, each with its share of the batch."""
    for part in path.split(limit):
        yield part, len(part) / len(path)
