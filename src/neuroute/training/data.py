"""Labelled instances in training order: regenerated from their seeds, one shard in memory at a time."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from neuroute.datasets.labels import load_tours
from neuroute.datasets.streams import dataset_coordinates
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

    def _load_shard(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        shard = self._shards[index]
        return dataset_coordinates(shard.dataset), load_tours(shard, self._directories)

    def _rng(self, epoch: int, what: int) -> np.random.Generator:
        return np.random.Generator(np.random.Philox(key=[self._seed << 32 | epoch, what]))

    def batch(self, epoch: int, start: int, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Instances start..start+size-1 of an epoch: coords (size, n, 2) float32, tours (size, n) int64."""
        shards = np.arange(len(self._shards))
        if self._shuffle:
            shards = self._rng(epoch, 0).permutation(len(shards))
        coords, tours, first = [], [], 0
        for index in shards:
            count = self._shards[index].dataset.count
            lo, hi = max(start - first, 0), min(start + size - first, count)
            if lo < hi:
                rows = self._rng(epoch, 1 + int(index)).permutation(count)[lo:hi] if self._shuffle else slice(lo, hi)
                shard_coords, shard_tours = self._load(int(index))
                coords.append(shard_coords[rows])
                tours.append(shard_tours[rows].astype(np.int64))
            first += count
            if first >= start + size:
                break
        return np.concatenate(coords), np.concatenate(tours)


def _shard_ranges(block: Labels) -> list[tuple[int, int]]:
    """(first instance of the stream, count) for each shard of a block."""
    return [(shard * SHARD + lo, hi - lo) for shard, lo, hi in block.dataset.shards()]
