"""Decode CVRP instances, as many at a time as the memory budget holds: greedily, and by re-construction."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.datasets.problem_specs import CVRP
from neuroute.decoding.batches import autocast, batch_size
from neuroute.decoding.cvrp_paths import Batch, Decide, complete
from neuroute.decoding.decode import blocks_at_once, instances_at_once, last, timed_milestones
from neuroute.decoding.multi_start import check_starts, has_many_starts, starts_of
from neuroute.decoding.multi_start_cvrp import multi_start
from neuroute.decoding.prc_cvrp import prc
from neuroute.decoding.rrc_cvrp import reconstruct
from neuroute.plan.objects import Decoding
from neuroute.problems.vrp import Vrp
from neuroute.solvers.registry import get


def greedy(decide: Decide, nodes: Tensor, instances: Batch) -> Tensor:
    """nodes (batch, V + 1, E) of the whole instances -> solutions (batch, 2, V), from the depot on."""
    rows, demand = (torch.cat([a, a[:, :1]], dim=1) for a in (nodes, instances.demand))
    order, via = complete(decide, rows, demand, instances.capacity, instances.capacity)
    via[:, 0] = 1  # whichever way the network called it, the first customer is reached from the depot
    return torch.stack([order, via], dim=1)


def decode(net: Any, instances: Vrp, decoding: Decoding, memory_gb: float = 4.0, precision: str = "fp32") -> Tensor:
    """Solutions (count, 2, V) int64 on the CPU: in the last axis the order of the customers, and their flags.

    Of a network of many starts the best of the decoding's starts and images.  Raises NeurouteError for what is not for
    this kind of network.
    """
    _check(net, decoding)
    if has_many_starts(net):
        return multi_start(
            net,
            instances,
            starts_of(decoding),
            augment=decoding.augment,
            memory_gb=memory_gb,
            precision=precision,
            batch_size=decoding.batch_size,
        )
    device = next(net.parameters()).device
    with torch.inference_mode(), autocast(device, precision):
        return torch.cat([last(part).cpu() for part in _parts(net, instances, decoding, memory_gb, device)])


def construct(net: Any, instances: Vrp, memory_gb: float = 4.0, precision: str = "fp32") -> Tensor:
    """The greedy solutions (count, 2, V) int64 on the CPU.

    For the validations of training, which so does not hang on the code of searches.  Of a network of many starts the
    best of all.
    """
    if has_many_starts(net):
        return multi_start(net, instances, memory_gb=memory_gb, precision=precision)
    device = next(net.parameters()).device
    with torch.inference_mode(), autocast(device, precision):
        size = batch_size(net, instances.customers + 1, Decoding(), memory_gb)
        parts = (Batch.of(instances[i : i + size], device) for i in range(0, len(instances), size))
        return torch.cat([_greedy(net, part, Decoding()).cpu() for part in parts])


def improve(
    net: Any, instances: Vrp, decoding: Decoding, memory_gb: float = 4.0, precision: str = "fp32"
) -> list[tuple[int, Tensor, float]]:
    """(iterations, solutions (count, 2, V) on the CPU, seconds until then) at each of the decoding's milestones."""
    _check(net, decoding, one_solution=True)
    device = next(net.parameters()).device
    with torch.inference_mode(), autocast(device, precision):
        return timed_milestones(_parts(net, instances, decoding, memory_gb, device), decoding.milestones)


def _check(net: Any, decoding: Decoding, *, one_solution: bool = False) -> None:
    """Raises NeurouteError for a way of decoding that is not for this kind of network.

    `one_solution`: whatever the way is, it begins with one solution that it improves.
    """
    check_starts(net, decoding)
    if has_many_starts(net) and (one_solution or decoding.method != "greedy"):
        raise NeurouteError(
            f"{type(net).__name__}: re-construction and beam search are for the TSP and for networks that read what is "
            "left of a path; decode greedily, from all starts and with symmetric images if you like"
        )


def _parts(
    net: Any, instances: Vrp, decoding: Decoding, memory_gb: float, device: torch.device
) -> Iterator[Iterator[Tensor]]:
    """For each part of the instances that fits: what it starts from, then its solutions after each iteration."""
    if decoding.method == "beam":
        raise NeurouteError("beam search is for the TSP; decode CVRP instances greedily or by re-construction")
    if decoding.method == "prc":  # sub-paths count customers
        size = instances_at_once(net, instances.customers, decoding, memory_gb)
    else:
        size = batch_size(net, instances.customers + 1, decoding, memory_gb)
    for first in range(0, len(instances), size):
        yield _improving(net, instances[first : first + size], decoding, memory_gb, device, first)


def _improving(
    net: Any, instances: Vrp, decoding: Decoding, memory_gb: float, device: torch.device, first: int
) -> Iterator[Tensor]:
    solutions = started(net, instances, decoding, memory_gb, device, first)
    yield solutions
    if decoding.method in ("rrc", "prc"):
        batch = Batch.of(instances, device)
        yield from reconstructing(net, batch, solutions, decoding, memory_gb, first=first)


def started(net: Any, instances: Vrp, decoding: Decoding, memory_gb: float, device: torch.device, first: int) -> Tensor:
    """What re-construction starts from: the network's greedy solutions (batch, 2, V), or a solver's, seeded by number.

    Raises NeurouteError for a solver that is not made for CVRP.
    """
    if decoding.start != "greedy":
        solver, numbers = get(decoding.start), range(len(instances))
        solutions = np.stack([CVRP.solve(solver, instances[i : i + 1], first + i) for i in numbers])
        return torch.from_numpy(solutions.astype(np.int64)).to(device)
    size = len(instances)
    if decoding.method == "prc":
        size = batch_size(net, instances.customers + 1, decoding.model_copy(update={"batch_size": None}), memory_gb)
    parts = (Batch.of(instances[i : i + size], device) for i in range(0, len(instances), size))
    return torch.cat([_greedy(net, part, decoding) for part in parts])


def _greedy(net: Any, instances: Batch, decoding: Decoding) -> Tensor:
    scale = net.attention_scale(instances.coords.shape[1] - 1) if decoding.log_n else 1.0
    nodes = net.encode(instances.coords, instances.share)
    return greedy(lambda rows, left: net.decide(rows, left, scale), nodes, instances)


def reconstructing(
    net: Any,
    instances: Batch,
    solutions: Tensor,
    decoding: Decoding,
    memory_gb: float,
    *,
    seed: int = 0,
    first: int = 0,
    done: int = 0,
) -> Iterator[Tensor]:
    """The solutions (batch, 2, V) after each of the decoding's iterations of random or parallel local re-construction.

    All lies on the network's device.  `first`: the number of the batch's first instance, on which draws depend.  With
    `done`, `solutions` are those after as many iterations.
    Raises NeurouteError for a longest sub-path that cannot be, and for a network of many starts.
    """
    _check(net, decoding, one_solution=True)

    def decide_for(customers: int) -> Decide:
        scale = net.attention_scale(max(customers, net.train_nodes)) if decoding.log_n else 1.0
        return lambda rows, left: net.decide(rows, left, scale)

    if decoding.method == "rrc":
        return reconstruct(
            decide_for, net.encode, instances, solutions, decoding.iterations, seed=seed, first=first, done=done
        )
    return prc(
        decide_for,
        net.encode,
        instances,
        solutions,
        decoding.iterations,
        rule=decoding.rule,
        longest=decoding.longest,
        most_blocks=decoding.most_blocks,
        at_once=partial(blocks_at_once, net, memory_gb),
        seed=seed,
        first=first,
        done=done,
    )
