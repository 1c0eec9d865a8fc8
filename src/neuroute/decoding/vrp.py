"""Decode instances of the 16 vehicle routing problems, as many at a time as the memory budget holds."""

from typing import Any

from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.decoding.multi_start import check_starts, has_many_starts, starts_of
from neuroute.decoding.multi_start_vrp import multi_start
from neuroute.plan.objects import Decoding
from neuroute.problems.vrp import Vrp


def decode(net: Any, instances: Vrp, decoding: Decoding, memory_gb: float = 4.0, precision: str = "fp32") -> Tensor:
    """The best solutions (count, 2, V) int64 on the CPU of the decoding's starts and images.

    In the last axis the order of the customers, and their flags.  Raises NeurouteError for searches, and for a network
    that is not for these problems.
    """
    _check(net, decoding)
    return multi_start(
        net,
        instances,
        starts_of(decoding),
        augment=decoding.augment,
        memory_gb=memory_gb,
        precision=precision,
        batch_size=decoding.batch_size,
    )


def construct(net: Any, instances: Vrp, memory_gb: float = 4.0, precision: str = "fp32") -> Tensor:
    """The best greedy solutions (count, 2, V) int64 on the CPU of all starts, for the validations of training."""
    return multi_start(net, instances, memory_gb=memory_gb, precision=precision)


def improve(
    net: Any, instances: Vrp, decoding: Decoding, memory_gb: float = 4.0, precision: str = "fp32"
) -> list[tuple[int, Tensor, float]]:
    """Raises NeurouteError: there is no re-construction of these problems whose milestones could be measured."""
    raise _refused(net)


def _check(net: Any, decoding: Decoding) -> None:
    """Raises NeurouteError for a way of decoding that is not for this kind of network, or these problems."""
    if not has_many_starts(net) or getattr(net, "problem", "tsp") != "vrp":
        raise NeurouteError(f"{type(net).__name__} is not for the 16 vehicle routing problems; networks as MvMoe are")
    check_starts(net, decoding)
    if decoding.method != "greedy" or decoding.milestones:
        raise _refused(net)


def _refused(net: Any) -> NeurouteError:
    return NeurouteError(
        f"{type(net).__name__}: beam search and re-construction are for the TSP and the CVRP; decode instances of the "
        "16 vehicle routing problems greedily, from all starts and with symmetric images if you like"
    )
