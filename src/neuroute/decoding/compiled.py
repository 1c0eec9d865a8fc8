"""Networks whose encoders and decisions torch has compiled, for decoding and for training by reinforcement.

Sizes may change from call to call, and nothing is compiled anew.  On a GPU the decisions of many starts replay CUDA
graphs besides, where nothing is learnt from them: from a batch's first to its last they have the same shapes, and take
longer to start than to run.  The rows of a path are one fewer at each decision, and an encoder runs once a batch.
"""

import copy
import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from neuroute.core import device as devices
from neuroute.core.private import private_folder
from neuroute.networks.base import RoutingNetwork

log = logging.getLogger(__name__)
PARTS = ("encode", "prepare", "decide", "decide_best", "path_rows", "decide_path")
REPEATED = ("decide", "decide_best")
N = TypeVar("N", bound=RoutingNetwork)


def compiled(net: N, place: torch.device) -> N:
    """A copy of the network with the same weights and compiled parts.

    The network itself where torch cannot compile, and if it is decoded in a way of its own.
    """
    if hasattr(net, "own_method") or not can_compile(place.type):
        return net
    twin = copy.copy(net)
    for name in PARTS:
        if hasattr(net, name) and not (name == "encode" and net.random_embeddings):  # drawn as the copy says
            vars(twin)[name] = _compile(net, name, place)
    return twin


def replays(net: RoutingNetwork, name: str, place: torch.device) -> bool:
    """Whether a part of the network becomes a CUDA graph.

    Not where gates draw, or choose for all of a batch: how much there is to do would depend on values.
    """
    return place.type == "cuda" and net.multi_start and name in REPEATED and not net.is_batch_dependent


def describe_device(net: RoutingNetwork, place: torch.device) -> str:
    """The device's name, and whether the network is compiled for it: times depend on that."""
    return devices.name(place) + (", compiled" if "decide" in vars(net) else "")


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


def _compile(net: RoutingNetwork, name: str, place: torch.device) -> Callable[..., Any]:
    part = getattr(net, name)
    whatever_size: Callable[..., Any] = torch.compile(part, dynamic=True)
    if not replays(net, name, place):
        return whatever_size
    replayed: Callable[..., Tensor] = torch.compile(part, dynamic=True, mode="reduce-overhead")

    def decide(*state: Any) -> Tensor:
        if torch.is_grad_enabled():  # a backward pass needs what the next replay would overwrite
            decided: Tensor = whatever_size(*state)
            return decided
        torch.compiler.cudagraph_mark_step_begin()
        return replayed(*state).clone()  # as the next replay overwrites it

    return decide
