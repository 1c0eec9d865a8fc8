"""Training of maps of edges by the tours of labelled instances: each edge is in the tour, or not."""

from abc import abstractmethod

import torch
from torch import Tensor

from neuroute.core.device import stream_seed
from neuroute.decoding.memory import autocast
from neuroute.training.batches import Scheme
from neuroute.training.supervised import labelled
from neuroute_systems.own_solutions import OwnSolutions

FLOATS = 12  # of a pair of nodes, channel and layer, that a backward pass needs


class EdgeLabelBatches(OwnSolutions):
    """Batches of a run: each is a function of (run, index) and the weights.

    `prepare` makes of instances and tours what the loss is of, with all draws; `loss` is that of each instance.  Where
    norms look at whole batches (`together`), each of several processes computes all of it.
    """

    together = False

    def __init__(self, scheme: Scheme, *, decoupled: bool = False) -> None:
        super().__init__(scheme, decoupled=decoupled)
        self.data = labelled(scheme)

    @abstractmethod
    def prepare(self, coords: Tensor, tours: Tensor, generator: torch.Generator) -> tuple[Tensor, ...]:
        """coords (batch, n, 2) float32, tours (batch, n) int64, on the CPU as the generator -> (batch, ...) each."""

    @abstractmethod
    def loss(self, *prepared: Tensor) -> Tensor:
        """(batch,) of what is prepared, on the device."""

    def train(self, index: int) -> tuple[Tensor, int]:
        epoch, within = divmod(index, self.training.batches_per_epoch)
        first = within * self.training.batch_size
        size = min(self.training.batch_size, self.training.samples - first)
        coords, tours = (torch.from_numpy(array) for array in self.data.batch(epoch, first, size))
        generator = torch.Generator().manual_seed(stream_seed(self.run.seed, index))
        prepared = self.prepare(coords, tours, generator)
        rows, share = (slice(0, size), size * self.world.size) if self.together else (self.world.rows(size), size)
        limit = size if self.together else self._micro_batch()
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        for part in zip(*(each[rows].split(limit) for each in prepared), strict=True):
            if not len(part[0]):
                continue  # a last batch of fewer instances than processes
            with autocast(self.device, self.training.precision):
                loss = self.loss(*(each.to(self.device) for each in part)).sum() / share
            loss.backward()
            total += loss.detach()
        self.world.sum_gradients(self.net)
        self._update(index)
        return total * self.world.size, 1

    def _micro_batch(self) -> int:
        per_instance = 4 * FLOATS * self.net.width * self.net.depth * self.run.n * self.net.edges_of(self.run.n)
        return max(1, int(self.memory_gb * 1e9 / per_instance))


def successors(tours: Tensor) -> Tensor:
    """tours (batch, n) -> what follows each node, (batch, n)."""
    return torch.empty_like(tours).scatter_(1, tours, tours.roll(-1, dims=1))
