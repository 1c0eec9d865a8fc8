"""Greedy solutions of a whole data set: the validations of training, which do not depend on the code of searches."""

from typing import Any

import torch
from torch import Tensor

from neuroute.decoding.environment import ENVIRONMENT
from neuroute.decoding.memory import batch_size_for, device_of, inference
from neuroute.decoding.multi_start import multi_start
from neuroute.networks.base import RoutingNetwork
from neuroute.specs.objects import Decoding


def construct(
    problem: str, net: RoutingNetwork, instances: Any, memory_gb: float = 4.0, precision: str = "fp32"
) -> Tensor:
    """The greedy solutions (count, ...) int64 on the CPU; of a network of many starts the best of all.

    One with a `single_start` builds a single one.
    """
    environment = ENVIRONMENT.of(problem)
    if net.multi_start:
        starts = 1 if net.single_start else None
        return multi_start(environment, net, instances, starts, memory_gb=memory_gb, precision=precision)  # type: ignore[arg-type]
    greedy, device = Decoding(), device_of(net)
    with inference(device, precision):
        size = batch_size_for(net, environment.nodes(environment.size(instances)), greedy, memory_gb)
        firsts = range(0, len(instances), size)
        parts = ((environment.batch(instances[i : i + size], device), i) for i in firsts)
        return torch.cat([environment.build_greedily(net, part, greedy, memory_gb, i).cpu() for part, i in parts])  # type: ignore[arg-type]
