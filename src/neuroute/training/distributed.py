"""One process or several (torchrun, DDP): who am I, and when do gradients meet."""

import contextlib
import os
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

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
