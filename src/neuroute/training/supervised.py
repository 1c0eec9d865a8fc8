"""Supervised training: a batch under each reading of the paper's "step", and on path-TSPs."""

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from neuroute.core.device import stream_seed
from neuroute.core.errors import NeurouteError
from neuroute.datasets.problem_spec import spec_of
from neuroute.datasets.store import load_tours
from neuroute.decoding.memory import autocast
from neuroute.networks.base import PathNetwork
from neuroute.problems import sub_paths
from neuroute.problems.sub_paths import cut_pairs, draw_pairs
from neuroute.specs.objects import SHARD, Labels, Supervised
from neuroute.training.batches import Batches, Scheme

# -- the decisions along a labelled path, and their loss (LEHD's scheme, which scaling builds on) --------------------


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


class TrainingSet:
    """The concatenation of label blocks, shuffled anew each epoch when there is more than one.

    The shuffle permutes the shards and the instances inside each, so memory stays O(shard).  Every draw is a
    function of (seed, epoch): any batch can be produced without those before it, which makes resuming exact.
    With `ahead`, a thread loads the shard that comes next, so that a GPU does not wait for it.
    """

    def __init__(
        self, blocks: Sequence[Labels], directories: Sequence[Path], seed: int, shuffle: bool, ahead: bool = False
    ) -> None:
        self._directories = list(directories)
        self._seed, self._shuffle = seed, shuffle
        self._jobs, self._shards = list[Labels](), list[Labels]()  # each shard, and the block that it is of
        for block in blocks:
            for shard, low, high in block.dataset.shards():
                part = block.dataset.model_copy(update={"first": shard * SHARD + low, "count": high - low})
                self._jobs.append(block)
                self._shards.append(block.model_copy(update={"dataset": part}))
        self.count = sum(s.dataset.count for s in self._shards)
        self._ahead, self._loader = ahead, ThreadPoolExecutor(1)
        self._most = 3 if ahead else 2  # shards in memory: a batch may lie in two, and one may be on its way
        self._held: dict[int, Future[tuple[np.ndarray, ...]]] = {}  # the last used at the end
        self._checked: set[int] = set()

    def _arrays(self, index: int, following: int) -> tuple[np.ndarray, ...]:
        """The arrays of a shard, after which another is needed."""
        for each in (index, following) if self._ahead else (index,):
            shard = self._held.pop(each) if each in self._held else self._loader.submit(self._load_shard, each)
            self._held[each] = shard
        for old in list(self._held)[: -self._most]:
            del self._held[old]
        return self._held[index].result()

    def _load_shard(self, index: int) -> tuple[np.ndarray, ...]:
        shard = self._shards[index]
        kind = spec_of(shard)
        tours = load_tours(shard, self._directories, check=index not in self._checked, job=self._jobs[index])
        self._checked.add(index)
        return *kind.arrays(kind.instances(shard.dataset)), tours

    def _order(self, epoch: int) -> np.ndarray:
        """The numbers of the shards, as an epoch goes through them."""
        shards = np.arange(len(self._shards))
        return self._rng(epoch, 0).permutation(len(shards)) if self._shuffle else shards

    def _rng(self, epoch: int, what: int) -> np.random.Generator:
        return np.random.Generator(np.random.Philox(key=[self._seed << 32 | epoch, what]))

    def batch(self, epoch: int, start: int, size: int) -> tuple[np.ndarray, ...]:
        """Instances start..start+size-1 of an epoch, and as the last array their solutions, in int64.

        TSP: coords (size, n, 2) float32, tours (size, n).  CVRP: coords (size, n + 1, 2) float32, demand (size, n + 1),
        capacity (size,), solutions (size, 2, n).
        """
        order = self._order(epoch).tolist()
        parts, first = [], 0
        for place, index in enumerate(order):
            count = self._shards[index].dataset.count
            lo, hi = max(start - first, 0), min(start + size - first, count)
            if lo < hi:
                rows = self._rng(epoch, 1 + index).permutation(count)[lo:hi] if self._shuffle else slice(lo, hi)
                following = order[place + 1] if place + 1 < len(order) else int(self._order(epoch + 1)[0])
                parts.append([array[rows] for array in self._arrays(index, following)])
            first += count
            if first >= start + size:
                break
        *instances, solutions = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return *instances, solutions.astype(np.int64)


class Labelled(Protocol):
    """Instances with tours, in training order."""

    def batch(self, epoch: int, start: int, size: int) -> tuple[np.ndarray, ...]:
        """Samples start..start+size-1 of an epoch: coords (size, n, 2) float32, tours (size, n) int64."""


class SupervisedBatches(Batches):
    """Trains a constructive model on the sub-paths of labelled tours; every batch is a function of (run, index).

    `model` is the network as a PathDecision, possibly compiled and wrapped.  Raises NeurouteError for a network of many
    starts, and for one that remembers: sub-paths begin anywhere, and say nothing of the stops before.
    """

    def __init__(self, scheme: Scheme, data: Labelled) -> None:
        super().__init__(scheme, scheme.model, decoupled=True)
        self.data = data
        if getattr(self.net, "multi_start", False) or getattr(self.net, "remembers", False):
            raise NeurouteError(
                f"{self.run.id}: {type(self.net).__name__} cannot learn from sub-paths, as '{self.training.kind}' "
                "needs; take a path network, such as Lehd"
            )
        if (self.training.samples - 1) % self.training.batch_size + 1 < self.world.size:
            raise NeurouteError(
                f"{self.run.id}: the last batch is smaller than {self.world.size} processes; "
                "change samples or batch_size"
            )

    def learning_rate(self, index: int) -> float:
        """Decay counted in batches, after an optional linear warm-up.

        Exponential (scaling, Table 9) or, with a final rate, half a cosine that ends on it (pens, Section 5.1).
        """
        t = self.training
        final = t.final_learning_rate if isinstance(t, Supervised) else None
        rate: float
        if final is None:
            rate = t.learning_rate * t.decay_gamma ** (index // t.decay_every)
        else:
            fall = (1 + math.cos(math.pi * index / max(1, t.batches - 1))) / 2
            rate = final + (t.learning_rate - final) * fall
        if index < t.warmup_batches:
            rate *= t.warmup_factor + (1 - t.warmup_factor) * index / t.warmup_batches
        return rate

    def train(self, index: int) -> tuple[Tensor, int]:
        epoch, within = divmod(index, self.training.batches_per_epoch)
        size = self._size(index)
        arrays = self.data.batch(epoch, within * self.training.batch_size, size)
        instances = [torch.from_numpy(array[self.world.rows(size)]).to(self.device) for array in arrays]
        path = self._sub_path(index, *instances)
        share = len(path) * self.world.size / size  # ranks may hold unequal parts; DDP averages their gradients
        total, updates = torch.zeros((), device=self.device), 0
        rows = self._rows(path)
        for row in rows:
            total += self._backward(path, row, share, sync=self.training.step != "summed" or row == rows[-1])
            if self.training.step != "summed" or row == rows[-1]:
                self._update(index)
                updates += 1
        return total / max(len(rows), 1) * updates, updates

    def _size(self, index: int) -> int:
        """Instances of batch `index`, of all processes: what is drawn for each is drawn for all of them."""
        t = self.training
        size: int = min(t.batch_size, t.samples - index % t.batches_per_epoch * t.batch_size)
        return size

    def _sub_path(self, index: int, *arrays: Tensor) -> Any:
        """What batch `index` trains on: the stops (batch, length, 2) of sub-paths of its coords and tours."""
        coords, tours = arrays
        generator = torch.Generator().manual_seed(stream_seed(self.run.seed, index))
        draw = sub_paths.draw if self.training.sub_paths == "random" else sub_paths.draw_suffix
        return sub_paths.cut(coords, tours, *draw(generator, self.run.n))

    def _rows(self, path: Any) -> range:
        """The stops from which a decision is trained."""
        return rows(path.shape[1], self.training.step)

    def _loss(self, path: Any, row: int) -> Tensor:
        return loss(self.model, path, row)

    def _backward(self, path: Any, row: int, share: float, sync: bool) -> Tensor:
        """Accumulate the gradient of one decision; returns its loss."""
        total = torch.zeros((), device=self.device)
        parts = list(path.split(self._micro_batch(path.shape[1] - row)))
        for i, part in enumerate(parts):
            weight = len(part) / len(path)
            with self.world.sync(self.model, sync and i == len(parts) - 1):
                with autocast(self.device, self.training.precision):
                    loss = self._loss(part, row)
                (loss * (weight * share)).backward()
            total += loss.detach() * weight
        return total

    def _micro_batch(self, tokens: int) -> int:
        """Instances whose activations fit the memory budget: about 14 floats per token, channel and layer."""
        per_instance = 4 * 14 * self.net.width * self.net.depth * tokens
        return max(1, int(self.memory_gb * 1e9 / per_instance))


def supervised(scheme: Scheme) -> SupervisedBatches:
    """Build the batches of a run.  Raises NeurouteError if labels are missing."""
    return SupervisedBatches(scheme, labelled(scheme))


def labelled(scheme: Scheme) -> TrainingSet:
    """Load the run's labelled instances."""
    run, ahead = scheme.run, scheme.device.type == "cuda"
    return TrainingSet(run.data, scheme.label_dirs, run.seed, shuffle=run.training.epochs > 1, ahead=ahead)


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
