"""Supervised training on path-TSPs: an origin and a destination of its own on each instance's optimal tour (pens)."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.core.seeds import stream_seed
from neuroute.networks.base import PathNetwork
from neuroute.problems.sub_paths import cut_pairs, draw_pairs
from neuroute.training.batches import Scheme
from neuroute.training.supervised import SupervisedBatches, labelled

PARTS = 8  # of a batch, at most
LEAST = 32  # instances of a part: smaller ones cost more in calls than they save in rows
LEAST_TOKENS = 1 << 16  # of a part on a GPU, which fewer do not keep busy


@dataclass(frozen=True)
class PathTsps:
    """Paths of different lengths, longest first: [origin, stops..., absent rows..., destination]."""

    stops: Tensor  # (batch, longest, 2)
    lengths: Tensor  # (batch,) int64: rows that are there; on the host, which cuts by them
    noise: Tensor | None  # (batch, longest, width)

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def shape(self) -> torch.Size:
        return self.stops.shape

    def split(self, limit: int) -> Iterator["PathTsps"]:
        """Parts of at most `limit` instances, each without the rows that all of it lacks."""
        for first in range(0, len(self), limit):
            rows = slice(first, first + limit)
            longest = int(self.lengths[first])

            def trimmed(array: Tensor, rows: slice = rows, longest: int = longest) -> Tensor:
                return torch.cat([array[rows, : longest - 1], array[rows, -1:]], dim=1)

            noise = None if self.noise is None else trimmed(self.noise)
            yield PathTsps(trimmed(self.stops), self.lengths[rows], noise)


class PathTspBatches(SupervisedBatches):
    """One update per batch, on the decision after the origin.

    Each instance has a path of 4 to n + 1 rows: shorter ones leave no choice, n + 1 rows are the tour itself, whose
    origin is its destination.  Instances of a batch are sorted by the length of their path and computed in parts, so
    that few absent rows are: the gradient is that of the whole batch.  Each of several processes draws for all of them
    and keeps what is its own.

    Raises NeurouteError when labels are missing, or the network cannot be trained on paths of different lengths.
    """

    def __init__(self, scheme: Scheme) -> None:
        if not (isinstance(scheme.net, PathNetwork) and scheme.net.variable_lengths):
            raise NeurouteError(f"{scheme.run.id}: sub_paths: pairs needs a network that hides rows: a Pens")
        super().__init__(scheme, labelled(scheme))

    def _sub_path(self, index: int, *arrays: Tensor) -> PathTsps:
        coords, tours = arrays
        generator = torch.Generator().manual_seed(stream_seed(self.run.seed, index))
        size = len(tours) if self.world.size == 1 else self._size(index)
        start, lengths, backwards = draw_pairs(generator, size, self.run.n)
        rows, longest = self.world.rows(size), int(lengths[0])
        stops = cut_pairs(coords, tours, start[rows], lengths[rows], backwards[rows], longest)
        noise = None
        if self.net.random_embeddings:
            on = torch.Generator(self.device).manual_seed(int(torch.randint(2**62, (), generator=generator)))
            noise = torch.randn(size, longest, self.net.width, generator=on, device=self.device)[rows]
        return PathTsps(stops, lengths[rows], noise)

    def _rows(self, path: Any) -> range:
        return range(1)

    def _loss(self, path: Any, row: int) -> Tensor:
        logits = self.model(path.stops, row, path.lengths.to(self.device), path.noise).float()
        return F.cross_entropy(logits, logits.new_zeros(len(path), dtype=torch.long))

    def _micro_batch(self, tokens: int) -> int:
        """Instances of one part: PARTS of a batch where memory allows, with ALiBi's bias beside the activations.

        Fewer parts have more absent rows.  A GPU has fewer where they would leave it idle.
        """
        budget, net = self.memory_gb * 1e9, cast(Any, self.net)
        activations = budget / super()._micro_batch(tokens)  # bytes of one instance
        copies = net.depth if self.training.precision == "bf16" else 1  # a layer casts the bias
        bias = 4 * net.heads * tokens**2 * copies
        least = LEAST if self.device.type == "cpu" else -(-LEAST_TOKENS // tokens)
        part: int = max(least, math.ceil(self.training.batch_size / self.world.size / PARTS))
        return max(1, min(part, int(budget / (activations + bias))))
