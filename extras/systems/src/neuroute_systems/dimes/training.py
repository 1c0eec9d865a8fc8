"""Training of DIMES: weights from which a few steps on an instance lead to short tours (Qiu et al., 2022)."""

import torch
from torch import Tensor

from neuroute.core.device import stream_seed
from neuroute.datasets.problem_spec import SPEC
from neuroute.specs.objects import Dataset
from neuroute.training.batches import Scheme
from neuroute_systems.dimes.network import Dimes, follow, instance_of
from neuroute_systems.dimes.system import MetaTraining
from neuroute_systems.own_solutions import OwnSolutions


class MetaBatches(OwnSolutions):
    """Batches of a run: each is a function of (run, index), the weights and the optimizer's moments.

    Instances learn one at a time, so each has norms of its own.
    """

    training: MetaTraining
    net: Dimes

    def __init__(self, scheme: Scheme) -> None:
        super().__init__(scheme, decoupled=True)

    def learning_rate(self, index: int) -> float:
        return self.training.learning_rate

    def train(self, index: int) -> tuple[Tensor, int]:
        first, stop = self.samples(index), self.samples(index + 1)
        data = Dataset(problem="tsp", split="train", n=self.run.n, first=first, count=stop - first)
        coords = torch.from_numpy(SPEC.of("tsp").instances(data)).to(self.device, torch.float32)
        lengths = [self._learn(coords[i : i + 1], first + i, stop - first) for i in self.world.part(len(coords))]
        self.world.sum_gradients(self.net)
        self._update(index)
        total = torch.tensor(sum(lengths) / len(coords), dtype=torch.float64, device=self.device)
        return total * self.world.size, 1

    def _learn(self, coords: Tensor, number: int, size: int) -> float:
        """Add the share of one of so many instances to the gradient: that where its own steps end (first order).

        Returns the mean length of tours there.
        """
        t = self.training
        neighbours, edges = self.net.embed(coords)
        instance = instance_of(coords, neighbours, stream_seed(self.run.seed, number))
        ends, head = self.net.learn(instance, edges, t.inner_steps, t.tours)
        length = follow(instance, ends, head, t.tours)
        assert ends.grad is not None
        edges.backward(ends.grad / size)
        for weight, copy in zip(self.net.head.parameters(), head.parameters(), strict=True):
            assert copy.grad is not None
            share = copy.grad / size
            weight.grad = share if weight.grad is None else weight.grad + share
        return length


def meta(scheme: Scheme) -> MetaBatches:
    """Raises NeurouteError for another network."""
    scheme.require(Dimes)
    return MetaBatches(scheme)
