"""What training schemes have in common: what they are built from, an optimizer and its updates, notes for the log.

And whether one process trains or several do (torchrun, DDP): who am I, and when do gradients meet.
"""

import contextlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.optim import Adam, AdamW, Optimizer

from neuroute.core.errors import NeurouteError
from neuroute.networks.base import RoutingNetwork
from neuroute.specs.objects import Run

PATIENCE = timedelta(days=2)  # of processes that wait: for the first one's validation, or for a round's slowest part


@dataclass(frozen=True)
class World:
    rank: int = 0
    size: int = 1

    @property
    def leads(self) -> bool:
        return self.rank == 0

    def wrap(self, net: nn.Module, device: torch.device, partly: bool) -> nn.Module:
        """The network whose backward pass averages gradients over all processes; partly: not all have to have one."""
        if self.size == 1:
            return net
        ids = [device.index] if device.type == "cuda" else None
        return nn.parallel.DistributedDataParallel(net, device_ids=ids, find_unused_parameters=partly)

    def rows(self, count: int) -> slice:
        """This process's rows of so many, which all processes share: every size-th."""
        return slice(self.rank, count, self.size)

    def part(self, count: int) -> range:
        """This process's rows of so many that lie together, so that nothing else has to be generated."""
        return range(count * self.rank // self.size, count * (self.rank + 1) // self.size)

    def gather(self, part: Tensor, count: int) -> Tensor:
        """All of so many rows, of which each process has its `part`."""
        if self.size == 1:
            return part
        rows, whole = self.part(count), part.new_zeros(count, *part.shape[1:])
        whole[rows.start : rows.stop] = part
        return self.sum(whole)

    def sync(self, net: nn.Module, now: bool) -> contextlib.AbstractContextManager[Any]:
        """Exchange gradients in this backward pass, or only accumulate them."""
        return contextlib.nullcontext() if self.size == 1 or now else net.no_sync()  # type: ignore[operator]

    def sum(self, value: torch.Tensor) -> torch.Tensor:
        """Sum over the processes, in place."""
        if self.size > 1:
            dist.all_reduce(value)
        return value

    def sum_gradients(self, net: nn.Module) -> None:
        """Add up the parameters' gradients over the processes."""
        if self.size == 1:
            return
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in net.parameters()]
        flat = self.sum(torch.cat([gradient.flatten() for gradient in gradients]))
        for parameter, part in zip(net.parameters(), flat.split([g.numel() for g in gradients]), strict=True):
            parameter.grad = part.view_as(parameter)

    def sum_with_gradient(self, value: Tensor) -> Tensor:
        """Sum over the processes; the gradient that it gets in each of them counts."""
        return value if self.size == 1 else _Sum.apply(value)  # type: ignore[no-untyped-call]

    def tell(self, value: float, device: torch.device) -> float:
        """What the first process says."""
        if self.size == 1:
            return value
        message = torch.tensor(value, dtype=torch.float64, device=device)
        dist.broadcast(message, 0)
        return float(message)

    def max(self, value: torch.Tensor) -> torch.Tensor:
        """The largest of the processes, in place."""
        if self.size > 1:
            dist.all_reduce(value, op=dist.ReduceOp.MAX)
        return value

    def barrier(self) -> None:
        if self.size > 1:
            dist.barrier()


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, value: Tensor) -> Tensor:
        total = value.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        total = gradients[0].clone()
        dist.all_reduce(total)
        return total


@contextlib.contextmanager
def join(device: torch.device):  # type: ignore[no-untyped-def]
    """The world that torchrun set up, or a world of one."""
    size = int(os.environ.get("WORLD_SIZE", 1))
    if size == 1:
        yield World()
        return
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=PATIENCE)
    try:
        yield World(dist.get_rank(), size)
    finally:
        dist.destroy_process_group()


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
