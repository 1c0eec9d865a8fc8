"""Networks that fail as networks do on a first GPU."""

from typing import Any

import torch
from torch import Tensor

from neuroute.networks.bq import Bq

MOST_ROWS = 20


class MixesDevices(Bq):
    """Adds something that it makes on another device."""

    def decide(self, rows: Tensor, *args: Any) -> Tensor:
        return super().decide(rows, *args) + torch.ones(rows.shape[0], 1, device="meta")


class TakesMuchMemory(Bq):
    """Has room for a few instances only."""

    def decide(self, rows: Tensor, *args: Any) -> Tensor:
        if self.training and rows.device.type != "meta" and len(rows) > MOST_ROWS:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return super().decide(rows, *args)
