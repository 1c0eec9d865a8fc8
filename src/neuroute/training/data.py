"""Labelled instances in training order: regenerated from their seeds, one shard in memory at a time."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from neuroute.datasets.labels import load_tours
from neuroute.datasets.problem_spec import spec_of
from neuroute.plan.objects import SHARD, Labels


class TrainingSet:
    """The concatenation of label blocks, shuffled anew each epoch when there is more than one.

    The shuffle permutes the shards and the instances inside each, so memory stays O(shard).  Every draw is a
    function of (seed, epoch): any batch can be produced without those before it, which makes resuming exact.
    """

    def __init__(self, blocks: Sequence[Labels], directories: Sequence[Path], seed: int, shuffle: bool) -> None:
        self._directories = list(directories)
        self._seed, self._shuffle = seed, shuffle
        self._shards = [
            block.model_copy(update={"dataset": block.dataset.model_copy(update={"first": first, "count": count})})
            for block in blocks
            for first, count in _shard_ranges(block)
        ]
        self.count = sum(s.dataset.count for s in self._shards)
        self._load = lru_cache(maxsize=2)(self._load_shard)

    def _load_shard(self, index: int) -> tuple[np.ndarray, ...]:
        shard = self._shards[index]
        kind = spec_of(shard)
        return *kind.arrays(kind.instances(shard.dataset)), load_tours(shard, self._directories)

    def _rng(self, epoch: int, what: int) -> np.random.Generator:
        return np.random.Generator(np.random.Philox(key=[self._seed << 32 | epoch, what]))

    def batch(self, epoch: int, start: int, size: int) -> tuple[np.ndarray, ...]:
        """Instances start..start+size-1 of an epoch, and as the last array their solutions, in int64.

        TSP: coords (size, n, 2) float32, tours (size, n).  CVRP: coords (size, n + 1, 2) float32, demand (size, n + 1),
        capacity (size,), solutions (size, 2, n).
        """
        shards = np.arange(len(self._shards))
        if self._shuffle:
            shards = self._rng(epoch, 0).permutation(len(shards))
        parts, first = [], 0
        for index in shards:
            count = self._shards[index].dataset.count
            lo, hi = max(start - first, 0), min(start + size - first, count)
            if lo < hi:
                rows = self._rng(epoch, 1 + int(index)).permutation(count)[lo:hi] if self._shuffle else slice(lo, hi)
                parts.append([array[rows] for array in self._load(int(index))])
            first += count
            if first >= start + size:
                break
        *instances, solutions = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return *instances, solutions.astype(np.int64)


def _shard_ranges(block: Labels) -> list[tuple[int, int]]:
    """(first instance of the stream, count) for each shard of a block."""
    return [(shard * SHARD + lo, hi - lo) for shard, lo, hi in block.dataset.shards()]
