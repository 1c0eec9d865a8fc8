"""Decode a whole test set, as many instances at a time as the memory budget holds."""

import time
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.datasets.problem_spec import SPEC
from neuroute.decoding.environment import ENVIRONMENT, Batch
from neuroute.decoding.memory import autocast, batch_size_for, device_of
from neuroute.decoding.multi_start import multi_start, starts_of
from neuroute.decoding.search import SEARCH, Search
from neuroute.networks.base import PathNetwork, RoutingNetwork
from neuroute.plan.objects import Decoding
from neuroute.problems.longest import longest_sub_path
from neuroute.solvers.registry import get

MAX_NODES_PER_BATCH = 1 << 20  # of the instances whose blocks parallel re-construction gives to the network


def decode(
    problem: str,
    net: RoutingNetwork,
    instances: Any,
    decoding: Decoding,
    memory_gb: float = 4.0,
    precision: str = "fp32",
) -> Tensor:
    """Solutions (count, ...) int64 on the CPU of instances in host memory.

    Of a network of many starts the best of the decoding's starts and images; searches treat it as one that reads what
    is left of a path.  Raises NeurouteError if this kind of network cannot be decoded that way.
    """
    search = SEARCH.of(problem)
    search.check(net, decoding)
    if net.multi_start and decoding.method == "greedy":
        return multi_start(
            search.environment,
            net,  # type: ignore[arg-type]
            instances,
            starts_of(decoding),
            augment=decoding.augment,
            memory_gb=memory_gb,
            precision=precision,
            batch_size=decoding.batch_size,
        )
    with torch.inference_mode(), autocast(device_of(net), precision):
        parts = _parts(problem, net, instances, decoding, memory_gb)
        return torch.cat([deque(part, maxlen=1).pop().cpu() for part in parts])


def improve(
    problem: str,
    net: RoutingNetwork,
    instances: Any,
    decoding: Decoding,
    memory_gb: float = 4.0,
    precision: str = "fp32",
) -> list[tuple[int, Tensor, float]]:
    """(iterations, solutions (count, ...) on the CPU, seconds until then) at each of the decoding's milestones.

    Raises NeurouteError if solutions of such a network are not improved that way.
    """
    SEARCH.of(problem).check(net, decoding, improves=True)
    solutions: dict[int, list[Tensor]] = {m: [] for m in sorted(decoding.milestones)}
    seconds = dict.fromkeys(solutions, 0.0)
    with torch.inference_mode(), autocast(device_of(net), precision):
        began = time.perf_counter()
        for part in _parts(problem, net, instances, decoding, memory_gb):
            for iteration, now in enumerate(part):
                if iteration in solutions:
                    solutions[iteration].append(now.cpu())
                    seconds[iteration] += time.perf_counter() - began
            began = time.perf_counter()
    return [(m, torch.cat(parts), seconds[m]) for m, parts in solutions.items()]


def _parts(
    problem: str, net: RoutingNetwork, instances: Any, decoding: Decoding, memory_gb: float
) -> Iterator[Iterator[Tensor]]:
    """For each part of the instances that fits: what it starts from, then its solutions after each iteration."""
    search = SEARCH.of(problem)
    paths, n = search.path_network(net), search.environment.size(instances)
    nodes = n if decoding.method == "prc" else search.environment.nodes(n)  # its sub-paths count customers
    size = instances_per_batch(paths, nodes, decoding, memory_gb)
    for first in range(0, len(instances), size):
        yield _improving(problem, search, paths, instances[first : first + size], decoding, memory_gb, first)


def _improving(
    problem: str,
    search: Search[Any],
    net: PathNetwork,
    instances: Any,
    decoding: Decoding,
    memory_gb: float,
    first: int,
) -> Iterator[Tensor]:
    batch = search.environment.batch(instances, device_of(net))
    if decoding.method == "beam" and decoding.beam > 1:
        yield search.search_beams(net, batch, decoding, first)
        return
    if decoding.start == "greedy":
        solutions = start_greedily(search, net, batch, decoding, memory_gb, first)
    else:
        solutions = solve_with(problem, decoding.start, instances, first).to(batch.coords.device)
    yield solutions
    if decoding.method in ("rrc", "prc"):
        yield from search.reconstruct(net, batch, solutions, decoding, memory_gb, first=first)


def start_greedily(
    search: Search[Any], net: PathNetwork, batch: Batch, decoding: Decoding, memory_gb: float, first: int
) -> Tensor:
    """The network's solutions (batch, ...) that re-construction starts from; parallel re-construction has many."""
    best = search.start_from_many(net, batch, decoding, memory_gb)
    if best is not None:
        return best
    environment = search.environment
    if decoding.method != "prc":
        return environment.build_greedily(net, batch, decoding, memory_gb, first)
    alone, nodes = decoding.model_copy(update={"batch_size": None}), batch.coords.shape[1]
    size = batch_size_for(net, nodes, alone, memory_gb)
    parts = ((batch[i : i + size], i) for i in range(0, len(batch), size))
    return torch.cat([environment.build_greedily(net, part, decoding, memory_gb, first + i) for part, i in parts])


def solve_with(problem: str, name: str, instances: Any, first: int) -> Tensor:
    """A solver's solutions (count, ...), seeded by the instances' numbers, of which the first is `first`.

    Raises NeurouteError if the solver is not made for the problem.
    """
    solver, spec = get(name), SPEC.of(problem)
    instances = instances.cpu().numpy() if isinstance(instances, Tensor) else instances
    solutions = [spec.solve(solver, instances[i : i + 1], first + i) for i in range(len(instances))]
    return torch.from_numpy(np.stack(solutions).astype(np.int64))


def instances_per_batch(net: RoutingNetwork, nodes: int, decoding: Decoding, memory_gb: float) -> int:
    """Instances of a batch.  Parallel re-construction takes their blocks as memory allows, so it may have many.

    Raises NeurouteError for sub-paths that these instances cannot have, and for embeddings that a split would change.
    """
    if net.multi_start and decoding.method == "greedy":
        environment = ENVIRONMENT.of(net.problem)
        images, starts = 8 if decoding.augment else 1, starts_of(decoding) or nodes - environment.depots
        return environment.batch_sizes(net, nodes, images * starts, images, memory_gb, decoding.batch_size)[1]
    if decoding.method != "prc":
        return batch_size_for(net, nodes, decoding, memory_gb)
    longest_sub_path(decoding.longest, nodes)
    if net.random_embeddings:
        raise NeurouteError("parallel re-construction is not for networks with random embeddings; take method 'rrc'")
    return decoding.batch_size or max(1, MAX_NODES_PER_BATCH // nodes)
