"""One process or several (torchrun, DDP): who am I, and when do gradients meet."""

import contextlib
import os
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import nn


@dataclass(frozen=True)
class World:
    rank: int = 0
    size: int = 1

    @property
    def leads(self) -> bool:
        return self.rank == 0

    def wrap(self, net: nn.Module, device: torch.device) -> nn.Module:
        """The network whose backward pass averages gradients over all processes."""
        if self.size == 1:
            return net
        ids = [device.index] if device.type == "cuda" else None
        return nn.parallel.DistributedDataParallel(net, device_ids=ids)

    def sync(self, net: nn.Module, now: bool) -> contextlib.AbstractContextManager[Any]:
        """Exchange gradients in this backward pass, or only accumulate them."""
        return contextlib.nullcontext() if self.size == 1 or now else net.no_sync()  # type: ignore[operator]

    def sum(self, value: torch.Tensor) -> torch.Tensor:
        """Sum over the processes, in place."""
        if self.size > 1:
            dist.all_reduce(value)
        return value

    def max(self, value: torch.Tensor) -> torch.Tensor:
        """The largest of the processes, in place."""
        if self.size > 1:
            dist.all_reduce(value, op=dist.ReduceOp.MAX)
        return value

    def barrier(self) -> None:
        if self.size > 1:
            dist.barrier()


@contextlib.contextmanager
def join(device: torch.device):  # type: ignore[no-untyped-def]
    """The world that torchrun set up, or a world of one."""
    size = int(os.environ.get("WORLD_SIZE", 1))
    if size == 1:
        yield World()
        return
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield World(dist.get_rank(), size)
    finally:
        dist.destroy_process_group()
