"""Labelled instances in training order: regenerated from their seeds, one shard in memory at a time."""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np

from neuroute.datasets.problem_spec import spec_of
from neuroute.datasets.stored_labels import load_tours
from neuroute.plan.objects import SHARD, Labels


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
        self._shards = [
            block.model_copy(update={"dataset": block.dataset.model_copy(update={"first": first, "count": count})})
            for block in blocks
            for first, count in _shard_ranges(block)
        ]
        self._jobs = [block for block in blocks for _ in _shard_ranges(block)]  # each shard's
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


def _shard_ranges(block: Labels) -> list[tuple[int, int]]:
    """(first instance of the stream, count) for each shard of a block."""
    return [(shard * SHARD + lo, hi - lo) for shard, lo, hi in block.dataset.shards()]
