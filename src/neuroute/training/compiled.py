"""Training by reinforcement on a network that torch has compiled."""

from typing import Any

import torch

from neuroute.networks.base import MultiStartNetwork


class Compiled:
    """A network whose encoder and decisions are compiled; all else is the network's.

    Sizes may change from batch to batch.  What is not for training, such as validation, takes the network itself.
    """

    def __init__(self, net: MultiStartNetwork) -> None:
        self._net = net
        self.encode, self.prepare, self.decide = (
            torch.compile(part, dynamic=True) for part in (net.encode, net.prepare, net.decide)
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._net, name)
