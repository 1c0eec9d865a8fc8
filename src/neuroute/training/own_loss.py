"""A training scheme of the user's own: a class whose `train(index)` returns the loss of a batch.

The class is made of a `Scheme` and does what it likes to get a loss: `draw_batch` gives instances of the training
stream, `sampled` solutions of a network of many starts.  Gradient, update, log, validation and state are as in every
other training.
"""

from typing import Any

import torch
from torch import Tensor

from neuroute.core.device import stream_seed
from neuroute.core.dotted import resolve
from neuroute.core.errors import NeurouteError
from neuroute.datasets.problem_spec import spec_of
from neuroute.decoding.environment import ENVIRONMENT, Batch
from neuroute.decoding.memory import autocast
from neuroute.decoding.multi_start import roll_out
from neuroute.specs.objects import Dataset
from neuroute.training.batches import Batches, Scheme


class OwnLossBatches(Batches):
    """Batches whose loss a class of the user's own computes."""

    def __init__(self, scheme: Scheme) -> None:
        super().__init__(scheme)
        self.own: Any = resolve(self.training.loss)(scheme)

    def learning_rate(self, index: int) -> float:
        """The same of every batch."""
        return float(self.training.learning_rate)

    def train(self, index: int) -> tuple[Tensor, int]:
        """Go along the gradient of a batch's loss.

        Raises:
            NeurouteError: if it has none, or is no finite number.
        """
        with autocast(self.device, self.training.precision):
            loss = self.own.train(index)
        what = f"{self.training.loss}: train({index}) returns"
        if not isinstance(loss, Tensor) or loss.numel() != 1:
            shape = tuple(loss.shape) if isinstance(loss, Tensor) else type(loss).__name__
            raise NeurouteError(f"{what} {shape}, where a loss is needed: a tensor of one number")
        if not loss.requires_grad:
            raise NeurouteError(f"{what} a loss without a gradient: it has to depend on the network's weights")
        if index == 0 and not loss.isfinite():
            raise NeurouteError(f"{what} a loss of {float(loss.detach()):g}: look for log(0), 0/0 and overflow")
        (loss.sum() / self.world.size).backward()  # of several processes each has a part of the batch
        self.world.sum_gradients(self.net)
        self._update(index)
        return loss.detach().sum(), 1


def draw_batch(scheme: Scheme, index: int) -> Batch:
    """Return instances of the training stream on the network's device: a function of the index alone.

    Of several processes each has its part.  A run for several of the 16 problems takes them in turn.

    Args:
        scheme: of the training.
        index: of the batch.
    """
    t: Any = scheme.run.training
    problems = (scheme.run.validation, *scheme.run.also_validation)
    labels = problems[index % len(problems)]
    like = labels.dataset
    rows = scheme.world.part(t.batch_size)
    fields = {"split": "train", "n": scheme.run.n, "first": index * t.batch_size + rows.start, "count": len(rows)}
    same = {"problem": like.problem, "capacity": like.capacity, "variant": like.variant}
    dataset = Dataset.model_validate(same | fields)
    batch: Batch = ENVIRONMENT.of(like.problem).batch(spec_of(labels).instances(dataset), scheme.device)
    return batch


def sampled(scheme: Scheme, batch: Batch, index: int, starts: int | None = None) -> tuple[Tensor, Tensor]:
    """Sample solutions of a batch from a network of many starts.

    Args:
        scheme: of the training.
        batch: as `draw_batch` gives it.
        index: of the batch, for the random numbers.
        starts: of each instance, from its first nodes; None: from all.

    Returns:
        lengths (batch, starts) and, with their gradient, log-probabilities (batch, starts) of the solutions.
    """
    net: Any = scheme.net
    seed = stream_seed(scheme.run.seed, index * scheme.world.size + scheme.world.rank)
    generator = torch.Generator(scheme.device).manual_seed(seed)
    logs: list[Tensor] = []

    def draw(logits: Tensor) -> Tensor:
        log = logits.float().log_softmax(dim=-1)
        stops = log.detach().exp().flatten(0, 1).multinomial(1, generator=generator).view(log.shape[:2])
        logs.append(log.gather(2, stops[..., None]).squeeze(2))
        return stops

    first_stops = batch.start_nodes(starts or scheme.run.n)
    solutions = roll_out(net, net.prepare(net.encode(*batch.features)), batch, first_stops, draw)
    return batch.lengths(solutions), torch.stack(logs).sum(dim=0)
