"""Networks whose encoders and decisions torch has compiled, for training by reinforcement.

Sizes may change from call to call, and nothing is compiled anew.
"""

import copy
import logging
from functools import cache
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor

from neuroute.core.private import private_folder
from neuroute.networks.base import RoutingNetwork

log = logging.getLogger(__name__)
PARTS = ("encode", "prepare", "decide")
N = TypeVar("N", bound=RoutingNetwork)


def compiled(net: N) -> N:
    """A copy of the network with the same weights and compiled parts; itself if it is decoded in a way of its own."""
    if hasattr(net, "own_method"):
        return net
    twin = copy.copy(net)
    for name in PARTS:
        vars(twin)[name] = torch.compile(getattr(net, name), dynamic=True)
    return twin


@cache
def can_compile(device: str) -> bool:
    """Whether torch can compile for the device ("cpu", "cuda") on this machine; if not, a line of the log says why."""
    try:
        from torch._inductor.runtime.cache_dir_utils import cache_dir

        private_folder(Path(cache_dir()))  # of libraries that torch loads
        torch.compile(_trial)(torch.ones(2, device=device))
    except Exception as error:  # of many kinds: no C++ compiler, no headers of Python, no Triton
        reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        log.warning("`compile`: torch cannot compile for %s here (%s); networks run as they are", device, reason)
        return False
    return True


def _trial(x: Tensor) -> Tensor:
    return (x * x).sin()
