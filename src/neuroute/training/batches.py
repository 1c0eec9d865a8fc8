"""What training schemes have in common: what they are built from, an optimizer and its updates, notes for the log."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.optim import Adam, AdamW, Optimizer

from neuroute.core.errors import NeurouteError
from neuroute.networks.base import RoutingNetwork
from neuroute.specs.objects import Run
from neuroute.training.distributed import World

N = TypeVar("N")


@dataclass(frozen=True)
class Scheme:
    """What a training scheme is built from; `supervised` and its like take it and give the batches."""

    run: Run
    net: RoutingNetwork  # the bare network
    model: Any  # it as decisions, possibly compiled and wrapped; of reinforcement it, or it compiled
    label_dirs: list[Path]
    best: Callable[[], dict[str, Tensor]]  # the best weights so far
    stopping: Callable[[], bool]  # whether a signal asks to stop: for what takes longer than a batch
    state_dir: Path  # survives a kill
    device: torch.device
    world: World
    memory_gb: float
    start: Path | None = None  # the checkpoint that the weights are of, where they are not random
    moments: Path | None = None  # of the optimizer there, to go on with

    @property
    def training(self) -> Any:
        """The run's, of the kind that the scheme is for."""
        return self.run.training

    def require(self, kind: type[N]) -> N:
        """The network.  Raises NeurouteError if it is of another kind than the training is for."""
        if not isinstance(self.net, kind):
            raise NeurouteError(f"{self.run.id}: its training is for {kind.__name__}, not {type(self.net).__name__}")
        return self.net


class Batches(ABC):
    """A training scheme: each batch is a function of its index, the weights, and what `state` holds.

    The state goes through torch.save and is loaded with weights_only: tensors, numbers, strings, lists, dicts.  The
    optimizer is of `model`: the bare network, if nothing else is given.
    """

    def __init__(self, scheme: Scheme, model: nn.Module | None = None, *, decoupled: bool = False) -> None:
        self.scheme, self.run = scheme, scheme.run
        self.net: Any = scheme.net  # as the training, of the kind that the subclass is for
        self.training: Any = scheme.training
        self.device, self.world, self.memory_gb = scheme.device, scheme.world, scheme.memory_gb
        self.model = scheme.net if model is None else model
        decay = self.training.weight_decay
        self.optimizer = adam(self.model, self.learning_rate(0), decay, decoupled)
        self._notes: list[dict[str, Any]] = []

    def samples(self, batches: int) -> int:
        """Count the instances, anew in each epoch, in the first so many batches."""
        t = self.training
        epochs, within = divmod(batches, t.batches_per_epoch)
        return int(epochs * t.samples + min(within * t.batch_size, t.samples))

    @abstractmethod
    def learning_rate(self, index: int) -> float: ...

    @abstractmethod
    def train(self, index: int) -> tuple[Tensor, int]:
        """Train on batch `index`.  Returns the sum of the losses (a scalar on the device) and the updates made."""

    def state(self) -> dict[str, Any]:
        """Return what a killed run needs besides its batch's index: nothing, unless a scheme has more."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from such a state."""
        assert not state

    def notes(self) -> list[dict[str, Any]]:
        """What the log should say besides losses and validations, once: lines with a "kind" of their own."""
        notes, self._notes = self._notes, []
        return notes

    def leave(self, batches: int) -> None:
        """Keep what the end of a training keeps, where a callback ends it after so many batches: nothing."""
        return

    def _check_memory(self, size: int, n: int, gb: float) -> None:
        """Raises NeurouteError where batches of so many instances, learnt from as a whole, take more than there is."""
        if gb > self.memory_gb:
            raise NeurouteError(
                f"{self.run.id}: experts need whole batches: {size} instances of {n} customers take about {gb:.2g} GB, "
                f"memory_gb is {self.memory_gb:.2g}: raise it, or take smaller batches"
            )

    def _update(self, index: int) -> None:
        """Go along the gradient, which is no longer than the training's `clip`, at the rate of batch `index`."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate(index)
        if (clip := getattr(self.training, "clip", None)) is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


def adam(net: nn.Module, learning_rate: float, weight_decay: float, decoupled: bool) -> Optimizer:
    """Return the optimizer of a network's parameters; fused is torch's fastest way on a GPU and on a CPU.

    decoupled: AdamW (Loshchilov & Hutter, 2019), whose weight decay is no part of the gradient.
    """
    kind = AdamW if decoupled else Adam
    return kind(net.parameters(), lr=learning_rate, weight_decay=weight_decay, fused=True)
