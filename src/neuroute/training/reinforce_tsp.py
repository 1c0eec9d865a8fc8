"""Reinforcement learning for the TSP: tours from every node (POMO; icam)."""

from typing import Any

import torch
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.datasets.streams import coordinates
from neuroute.decoding.multi_start import Tours, tour_lengths
from neuroute.training.reinforce import Instances, Reinforcement, many_starts, training_of
from neuroute.training.supervised import Scheme


class TourRollouts:
    """Instances are coordinates (batch, n, 2) alone."""

    def __init__(self, net: Any) -> None:
        self.net = net

    def instances(self, n: int, capacity: int | None, first: int, count: int) -> Instances:
        parameter = next(self.net.parameters())
        return (torch.from_numpy(coordinates("uniform", "train", n, first, count)).to(parameter),)

    def nodes(self, n: int) -> int:
        return n

    def moves(self, n: int) -> int:
        """The first stop is given, and the last goes without saying."""
        return n - 2

    def prepare(self, instances: Instances) -> Any:
        return self.net.prepare(self.net.encode(*instances))

    def begin(self, instances: Instances, starts: int, dtype: torch.dtype) -> Tours:
        (coords,) = instances
        return Tours(torch.arange(starts, device=coords.device).expand(len(coords), -1), coords.shape[1], dtype)

    def lengths(self, instances: Instances, solutions: Tensor) -> Tensor:
        return tour_lengths(instances[0], solutions)


def reinforce(scheme: Scheme) -> Reinforcement:
    """Raises NeurouteError for stages that draw capacities, and for a network that builds one tour at a time."""
    drawn = [stage.name for stage in training_of(scheme.run).stages if stage.capacities]
    if drawn:
        raise NeurouteError(f"{scheme.run.id}: stage '{drawn[0]}' draws capacities; a TSP has none, leave them out")
    return Reinforcement(scheme, TourRollouts(many_starts(scheme)), scheme.start)
