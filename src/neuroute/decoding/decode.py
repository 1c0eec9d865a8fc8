"""Decode a whole test set, as many instances at a time as the memory budget holds."""

import math
import time
from collections import deque
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.decoding.as_path import AsPath
from neuroute.decoding.batches import Coords, autocast, batch_size, pair_floats
from neuroute.decoding.beam import beam_tours
from neuroute.decoding.greedy import Decide, greedy_tours
from neuroute.decoding.multi_start import (
    check_starts,
    has_many_starts,
    how_many,
    multi_start,
    starts_at_once,
    starts_of,
    tour_lengths,
)
from neuroute.decoding.prc import prc
from neuroute.plan.objects import Decoding
from neuroute.problems.longest import longest_sub_path
from neuroute.solvers.registry import get

TOGETHER = 1 << 20  # nodes of the instances that parallel re-construction has in hand, whose blocks go to the network


def decode(net: Any, coords: Coords, decoding: Decoding, memory_gb: float = 4.0, precision: str = "fp32") -> Tensor:
    """coords (count, n, 2) anywhere -> tours (count, n) int64 on the CPU.

    Of a network of many starts the best of the decoding's starts and images; searches treat it as one that reads what
    is left of a path.  Raises NeurouteError for what is not for this kind of network.
    """
    if has_many_starts(net) and decoding.method == "greedy":
        check_starts(net, decoding)
        return multi_start(
            net,
            coords,
            starts_of(decoding),
            augment=decoding.augment,
            memory_gb=memory_gb,
            precision=precision,
            batch_size=decoding.batch_size,
        )
    net, coords, device = _path(net, decoding), torch.as_tensor(coords), next(net.parameters()).device

    def solve(part: Tensor, first: int) -> Tensor:
        if decoding.method == "beam" and decoding.beam > 1:
            return _with_beams(net, part, decoding, first)
        return last(_improving(net, part, decoding, memory_gb, first))

    with torch.inference_mode(), autocast(device, precision):
        size = instances_at_once(net, coords.shape[1], decoding, memory_gb)
        return torch.cat([solve(part.to(device), size * i).cpu() for i, part in enumerate(coords.split(size))])


def construct(net: Any, coords: Coords, memory_gb: float = 4.0, precision: str = "fp32") -> Tensor:
    """The greedy tours (count, n) int64 on the CPU of coords (count, n, 2) anywhere.

    For the validations of training, which so does not hang on the code of searches.  Of a network of many starts the
    best of all.
    """
    if has_many_starts(net):
        return multi_start(net, coords, memory_gb=memory_gb, precision=precision)
    coords, device = torch.as_tensor(coords), next(net.parameters()).device
    n = coords.shape[1]
    with torch.inference_mode(), autocast(device, precision):
        size = batch_size(net, n, Decoding(), memory_gb)
        parts = enumerate(coords.split(size))
        return torch.cat([_greedy(net, part.to(device), Decoding(), memory_gb, size * i).cpu() for i, part in parts])


def _with_beams(net: Any, coords: Tensor, decoding: Decoding, first: int) -> Tensor:
    """The shortest tours (batch, n) that beams find from each of the decoding's starts, each start the path's ends."""
    encoded, n = _encode(net, coords, decoding, first), coords.shape[1]
    decide = _decide_for(net, decoding, n)
    best, least = None, torch.full((len(coords),), torch.inf, dtype=torch.float64, device=coords.device)
    for start in range(how_many(starts_of(decoding), n, "nodes")):
        points = coords.roll(-start, dims=1)
        tours = beam_tours(decide, encoded.roll(-start, dims=1), points, decoding.beam)
        lengths, tours = tour_lengths(points, tours[:, None])[:, 0], (tours + start) % n
        best = tours if best is None else torch.where((lengths < least)[:, None], tours, best)
        least = torch.minimum(lengths, least)
    assert best is not None
    return best


def last(solutions: Iterable[Tensor]) -> Tensor:
    """The last of many solutions, without keeping the others."""
    return deque(solutions, maxlen=1).pop()


def improve(
    net: Any, coords: Coords, decoding: Decoding, memory_gb: float = 4.0, precision: str = "fp32"
) -> list[tuple[int, Tensor, float]]:
    """(iterations, tours (count, n) on the CPU, seconds until then) at each of the decoding's milestones."""
    net, coords, device = _path(net, decoding), torch.as_tensor(coords), next(net.parameters()).device
    with torch.inference_mode(), autocast(device, precision):
        size = instances_at_once(net, coords.shape[1], decoding, memory_gb)
        parts = enumerate(coords.split(size))
        improving = (_improving(net, part.to(device), decoding, memory_gb, size * i) for i, part in parts)
        return timed_milestones(improving, decoding.milestones)


def timed_milestones(parts: Iterable[Iterator[Tensor]], milestones: Iterable[int]) -> list[tuple[int, Tensor, float]]:
    """(iterations, solutions of all parts on the CPU, seconds until then); each part yields one after the other."""
    found: dict[int, list[Tensor]] = {m: [] for m in sorted(milestones)}
    seconds = dict.fromkeys(found, 0.0)
    began = time.perf_counter()
    for part in parts:
        for iteration, solutions in enumerate(part):
            if iteration in found:
                found[iteration].append(solutions.cpu())
                seconds[iteration] += time.perf_counter() - began
        began = time.perf_counter()
    return [(m, torch.cat(solutions), seconds[m]) for m, solutions in found.items()]


def instances_at_once(net: Any, nodes: int, decoding: Decoding, memory_gb: float) -> int:
    """Instances of a batch.  Parallel re-construction takes their blocks as memory allows, so it may have many.

    Raises NeurouteError for sub-paths that these instances cannot have, and for embeddings that a split would change.
    """
    if has_many_starts(net) and decoding.method == "greedy":
        return starts_at_once(net, nodes, decoding, memory_gb)
    if decoding.method != "prc":
        return batch_size(net, nodes, decoding, memory_gb)
    longest_sub_path(decoding.longest, nodes)
    if getattr(net, "gaussian", False):
        raise NeurouteError("parallel re-construction is not for networks with random embeddings; take method 'rrc'")
    return decoding.batch_size or max(1, TOGETHER // nodes)


def _path(net: Any, decoding: Decoding) -> Any:
    """The network as one of paths.  Raises NeurouteError for what is not for this kind of network."""
    if isinstance(net, AsPath):
        return net
    check_starts(net, decoding)
    return AsPath(net) if has_many_starts(net) else net


def _improving(net: Any, coords: Tensor, decoding: Decoding, memory_gb: float, first: int) -> Iterator[Tensor]:
    """The tours (batch, n) that decoding starts from, then those after each iteration of re-construction."""
    tours = started(net, coords, decoding, memory_gb, first)
    yield tours
    if decoding.method in ("rrc", "prc"):
        if hasattr(net, "draw"):
            net.draw, net.first = decoding.draw, first
        yield from reconstructing(net, coords, tours, decoding, memory_gb)


def started(net: Any, coords: Tensor, decoding: Decoding, memory_gb: float, first: int) -> Tensor:
    """What re-construction starts from: the network's greedy tours (batch, n), or a solver's, seeded by number."""
    if isinstance(net, AsPath) and (decoding.starts != 1 or decoding.augment):
        best = multi_start(net.net, coords, starts_of(decoding), augment=decoding.augment, memory_gb=memory_gb)
        return best.to(coords.device)
    if decoding.method != "prc":
        return _greedy(net, coords, decoding, memory_gb, first)
    if decoding.start == "greedy":
        size = batch_size(net, coords.shape[1], decoding.model_copy(update={"batch_size": None}), memory_gb)
        parts = enumerate(coords.split(size))
        return torch.cat([_greedy(net, part, decoding, memory_gb, first + size * i) for i, part in parts])
    solve, points = get(decoding.start).solve, coords.cpu().numpy()
    tours = np.stack([solve(instance, first + i) for i, instance in enumerate(points)])
    return torch.from_numpy(tours.astype(np.int64)).to(coords.device)


def reconstructing(
    net: Any,
    coords: Tensor,
    tours: Tensor,
    decoding: Decoding,
    memory_gb: float,
    *,
    seed: int = 0,
    done: int = 0,
) -> Iterator[Tensor]:
    """The tours (batch, n) after each of the decoding's iterations of random or parallel local re-construction.

    coords and tours lie on the network's device.  With `done`, `tours` are those after as many iterations.
    Raises NeurouteError for a longest sub-path that cannot be.
    """
    net = _path(net, decoding)

    # A segment is a smaller problem: the log(n) factor follows its size, from the training size on.
    def decide_for(m: int) -> Decide:
        return _decide_for(net, decoding, max(m, net.train_nodes))

    def encode(part: Tensor) -> Tensor:
        return net.encode(part * _factor(decoding))

    go = partial(prc, decide_for, encode, coords, tours, decoding.iterations, seed=seed, done=done)
    if decoding.method == "rrc":  # one block of any length, and no more of them than there are instances
        return go(longest=tours.shape[1], most_blocks=1)
    return go(
        longest=decoding.longest, most_blocks=decoding.most_blocks, at_once=partial(blocks_at_once, net, memory_gb)
    )


def blocks_at_once(net: Any, memory_gb: float, nodes: int) -> int:
    """Blocks of so many nodes that fit."""
    return batch_size(net, nodes, Decoding(), memory_gb)


def _greedy(net: Any, coords: Tensor, decoding: Decoding, memory_gb: float, first: int) -> Tensor:
    """Tours (batch, n) of coords (batch, n, 2); what a network keeps of pairs of nodes is computed once."""
    pairs = partial(net.pairs, floats=pair_floats(memory_gb)) if hasattr(net, "pairs") and decoding.cached else None
    return greedy_tours(_decide_for(net, decoding, coords.shape[1]), _encode(net, coords, decoding, first), pairs)


def _encode(net: Any, coords: Tensor, decoding: Decoding, first: int) -> Tensor:
    """What `decide` reads of coords (batch, n, 2), stretched by the decoding's factor; lengths are of the original.

    `first`: the place of the first instance in its test set, for a network whose embeddings are random.
    """
    if hasattr(net, "draw"):
        net.draw, net.first = decoding.draw, first
    return net.encode(coords * _factor(decoding))


def _factor(decoding: Decoding) -> float:
    if decoding.rescale == "best":
        raise ValueError("the best factor has to be looked up before decoding")
    return decoding.rescale


def _decide_for(net: Any, decoding: Decoding, nodes: int) -> Decide:
    """The network's decisions on instances of `nodes` nodes.

    The entropy scaling factor follows what is left of an instance (pens, Table 3: BQ changes at the training size
    too), the log(n) factor of scaling the instance.
    """
    if decoding.esf:
        return lambda rows, *pairs: net.decide(rows, math.log(rows.shape[1]) / math.log(net.train_nodes), *pairs)
    scale = net.attention_scale(nodes) if decoding.log_n else 1.0
    return lambda rows, *pairs: net.decide(rows, scale, *pairs)
