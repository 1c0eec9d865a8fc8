"""How many instances fit in memory at a time, and in which precision they are decoded."""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import torch

from neuroute.core import device as devices
from neuroute.core.errors import NeurouteError
from neuroute.networks.base import RoutingNetwork
from neuroute.specs.objects import Decoding, Precision, Run


def autocast(device: torch.device, precision: str) -> contextlib.AbstractContextManager[Any]:
    """bf16 mixed precision, or nothing for fp32."""
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16")


@contextlib.contextmanager
def inference(device: torch.device, precision: str) -> Iterator[None]:
    """No gradients, in this precision.

    In inference mode autocast would cast the weights anew at each decision: it keeps none there.
    """
    with torch.no_grad() if precision == "bf16" else torch.inference_mode(), autocast(device, precision):
        yield


def device_of(net: RoutingNetwork) -> torch.device:
    """Where a network's weights lie."""
    return next(net.parameters()).device


def batch_size_for(net: RoutingNetwork, nodes: int, decoding: Decoding, memory_gb: float) -> int:
    """Instances that are solved together: as many as fit, and on a CPU as its caches hold.

    Raises NeurouteError if one does not fit.
    """
    fit = instances_that_fit(net, nodes, decoding, memory_gb)
    # On a CPU more tokens at once bring no speed, only cache misses; on a GPU a grid's axes are the limit of rows.
    on_cpu, tokens = device_of(net).type == "cpu", net.decision_tokens or nodes + 1
    enough = 8192 // (tokens * decoding.beam) if on_cpu else min(4096, 65_535 // decoding.beam)
    return decoding.batch_size or max(1, min(fit, enough))


def instances_that_fit(net: RoutingNetwork, nodes: int, decoding: Decoding, memory_gb: float) -> int:
    """About 16 floats of activations per token and channel are alive at once.

    What a network keeps of pairs of tokens has a quarter of the memory to itself.  Raises NeurouteError if the
    activations of one instance are more than all of it.
    """
    tokens = net.decision_tokens or nodes + 1
    per_instance = 4 * 16 * net.width * tokens * decoding.beam
    if per_instance > memory_gb * 1e9:
        beam = f" with beam {decoding.beam}" if decoding.beam > 1 else ""
        raise NeurouteError(
            f"an instance of {nodes} nodes{beam} needs about {per_instance / 1e9:.2g} GB of activations, memory_gb is "
            f"{memory_gb:.2g}: raise it in config.yaml, or take a smaller instance or beam"
        )
    pairs = net.pair_channels * (nodes + 1) ** 2
    most_by_pairs = max(1, pair_floats(memory_gb) // pairs) if pairs else 65_535
    return max(1, min(int(memory_gb * 1e9 / per_instance), most_by_pairs))


def bytes_of_decision(net: RoutingNetwork) -> int:
    """Activations of what one decision of one tour encodes anew."""
    return 4 * 16 * net.width * net.decision_tokens


def pair_floats(memory_gb: float) -> int:
    """Numbers that a network may keep of pairs of tokens: a quarter of the memory."""
    return int(memory_gb * 1e9 / 16)


class Place(Protocol):
    """Where jobs run: as config.yaml, or a training's settings, have it."""

    @property
    def device(self) -> str: ...
    @property
    def jobs_per_gpu(self) -> int: ...
    @property
    def tf32(self) -> bool: ...


def in_precision_of_device(run: Run, place: Place) -> Run:
    """Return the run in fp32 instead of bf16, or of either, on a CPU that multiplies no bf16; says so.

    bf16 was 0.13 to 2.1 times as fast there, mostly below once.  Raises NeurouteError for a device that is not there.
    """
    if run.training.precision == "fp32":
        return run
    if devices.has_bf16(devices.claim(place.device, place.jobs_per_gpu, place.tf32)):
        return run
    print(f"{run.id}: in fp32, as this CPU has no products in bf16")
    return run.in_precision("fp32")


CHOICES: tuple[Precision, Precision] = ("fp32", "bf16")  # of `precision: auto`
FASTER = 1.1  # times as fast as fp32, that bf16 must be: it has fewer digits


def faster_precision(work: Callable[[Precision, int], object], device: torch.device) -> tuple[Precision, float]:
    """Which precision `precision: auto` takes, and how many times as fast as fp32 bf16 is.

    work(precision, number): batches 0, 1 and 2, of which the first loads and is not timed; precisions take turns.
    On a CPU its own time is taken, which other work beside it changes least.
    """
    clock = time.process_time if device.type == "cpu" else time.perf_counter
    seconds = dict.fromkeys(CHOICES, 0.0)
    for number in range(3):
        for precision in seconds:
            began = clock()
            work(precision, number)
            devices.synchronize(device)
            seconds[precision] += clock() - began if number else 0.0
    ratio = seconds["fp32"] / max(seconds["bf16"], 1e-9)
    return ("bf16" if ratio >= FASTER else "fp32"), ratio
