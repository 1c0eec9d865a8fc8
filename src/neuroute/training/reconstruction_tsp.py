"""Self-improved training for the TSP (sit, Section 4.3)."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from neuroute.core.seeds import stream_seed
from neuroute.decoding.decode import reconstructing
from neuroute.problems.sub_paths import cut, cut_pairs, draw_within
from neuroute.training.reconstruction import ReconstructedSet, Rounds
from neuroute.training.supervised import Scheme


class ReconstructedTours(ReconstructedSet):
    """Coordinates and tours."""

    def instances(self, rows: slice) -> Any:
        return self.arrays[0][rows]

    def reconstructing(self, instances: Any, solutions: Tensor, seed: int, first: int, done: int) -> Iterator[Tensor]:
        coords = torch.from_numpy(instances).to(self.device)
        net, budget = self.scheme.net, self.scheme.memory_gb
        return reconstructing(net, coords, solutions, self.decoding, budget, seed=seed, done=done)


class TourRounds(Rounds):
    """Sub-paths of tours, of one length in a batch: 4 to the longest.

    Where they start, and in which direction they are read, each instance draws for itself (Algorithm 4) or, as
    published, the batch does.
    """

    def _sub_path(self, index: int, *arrays: Tensor) -> Tensor:
        coords, tours = arrays
        generator = torch.Generator().manual_seed(stream_seed(self.run.seed, index))
        start, length, backwards = draw_within(generator, self.run.n, self.longest)
        if self.rounds.starts == "batch":
            return cut(coords, tours, start, length, backwards)
        count = len(tours)
        starts = torch.randint(self.run.n, (count,), generator=generator)
        turned = torch.randint(2, (count,), generator=generator).bool()
        drawn = (starts, torch.full((count,), length), turned)
        return cut_pairs(coords, tours, *(d.to(coords.device) for d in drawn))


def reconstruction(scheme: Scheme) -> TourRounds:
    """Raises NeurouteError when labels are missing, for several processes, and for sub-paths that cannot be."""
    return TourRounds(scheme, ReconstructedTours(scheme))
