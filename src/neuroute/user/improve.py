"""Solutions of one instance, better and better: for some time, or for a number of re-constructions.

A search is an iterator of solutions; `keep_best` takes them until the time is up.  They are compared in the instance's
own distances, which a library rounds, so that nothing gets longer in them.
"""

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.datasets.progress import Progress
from neuroute.decoding.decode import OWN_METHODS, instances_per_batch
from neuroute.decoding.environment import Batch, Environment
from neuroute.decoding.memory import batch_size_for, device_of, inference
from neuroute.decoding.multi_start import augment8, roll_out
from neuroute.decoding.rollout import choose_best
from neuroute.decoding.search import SEARCH, Search
from neuroute.plan.objects import Decoding
from neuroute.problems.vrp import Vrp

CLASSICAL = "savings"  # what routes are improved from where the network's own are longer (docs/choices.md)
MOST_OWN = 2000  # customers up to which the network builds routes of its own first: of more they take minutes
Length = Callable[[np.ndarray], float]
Trace = tuple[tuple[float, float], ...]
SearchSolutions = Callable[[Any], Iterator[Tensor]]  # batch of one -> solutions (tours, ...), which come together
IMAGES = 8
SPREAD = 4  # re-constructions after which the shorter half of solutions that began alike takes the place of the others
BEAMS = (1, 50)  # of each of MDAM's decoders, one after the other
SEEDS = 1_000_003  # re-constructions between two seeds


def improve(
    net: Any,
    instance: np.ndarray | Vrp,
    solution: np.ndarray,
    decoding: Decoding,
    memory_gb: float,
    length: Length,
) -> np.ndarray:
    """Return the shortest, by `length`, of a solution and of what each iteration of re-construction makes of it.

    `instance` is a batch of one, coordinates (1, n, 2) or `Vrp`, in the unit square; the solution is a tour (n,) or
    customers and flags (2, V).  Re-construction shortens distances in the unit square; a library's own distances are
    rounded or of another kind, so by them its last solution may not be its shortest, and could be longer than the
    first.  Raises NeurouteError if no sub-path can be as long as the longest one asked for.
    """
    device = device_of(net)
    start = torch.from_numpy(solution.astype(np.int64))[None].to(device)
    instances_per_batch(net, solution.shape[-1], decoding, memory_gb)  # raises for a sub-path that cannot be
    search = SEARCH.of(net.problem)
    with inference(device, "fp32"), Progress(decoding.iterations, "re-construction", show=True) as progress:
        batch = search.environment.batch(instance, device)

        def all_of_them() -> Iterator[Tensor]:
            yield start
            for solutions in search.reconstruct(net, batch, start, decoding, memory_gb):
                yield solutions
                progress.add(1)

        return keep_best(all_of_them(), batch, length)[0]


def solve_for(
    net: Any,
    instance: np.ndarray | Vrp,
    decoding: Decoding,
    memory_gb: float,
    length: Length,
    seconds: float,
    seed: int = 0,
    start: np.ndarray | None = None,
    other: np.ndarray | None = None,
) -> tuple[np.ndarray, Trace]:
    """Return the shortest solution, by `length`, found in so many seconds, and when the length became which.

    `instance` as for `improve`; `start`: a solution to begin with; `other`: one that re-construction goes on from where
    it is shorter than the network's own, which comes first; of more than MOST_OWN stops there is no own one.  The first
    solution is built whatever it takes, and the last re-construction is brought to its end.  Raises NeurouteError for a
    network whose solutions nothing improves if there is a `start`.
    """
    search = SEARCH.of(net.problem)
    method = getattr(net, "own_method", None)
    if start is None and other is not None and other.shape[-1] > MOST_OWN:
        start, other = other, None
    if method or (net.multi_start and net.problem != "tsp"):
        if start is not None:
            raise NeurouteError(f"{type(net).__name__} builds solutions and improves none; leave the start out")
        places = search.environment.count_starts(instance, None)
        search_solutions = (
            _in_its_own_way(net, method, memory_gb)
            if method
            else _from_many_starts(net, search.environment, places, memory_gb, seed)
        )
    else:
        search_solutions = _by_reconstruction(net, search, decoding, memory_gb, seed, start, seconds, other, length)
    began = time.perf_counter()
    with inference(device_of(net), "fp32"):
        batch = search.environment.batch(instance, device_of(net))
        best, trace = keep_best(search_solutions(batch), batch, length, seconds)
    if other is not None and length(other) < trace[-1][1]:  # the time was over before the search came to it
        return other, (*trace, (time.perf_counter() - began, length(other)))
    return best, trace


def goes_on_from_others(net: Any) -> bool:
    """Whether a network's search may go on from the routes of `CLASSICAL`: it improves routes."""
    return bool(net.problem == "cvrp" and not net.multi_start and getattr(net, "own_method", None) is None)


def keep_best(
    search: Iterator[Tensor], batch: Batch, length: Length, seconds: float | None = None
) -> tuple[np.ndarray, Trace]:
    """Return the shortest solution of a search, by `length`, and (seconds, length) of each that was the shortest.

    Solutions (tours, ...) of the one instance of the `batch` come together, of which the shortest one counts.
    """
    began = time.perf_counter()
    best, trace = None, list[tuple[float, float]]()
    for solutions in search:
        new = solutions[int(batch.lengths(solutions[None])[0].argmin())].cpu().numpy()
        now, passed = length(new), time.perf_counter() - began
        if not trace or now < trace[-1][1]:
            best = new
            trace.append((passed, now))
        if seconds is not None and passed >= seconds:
            break
    assert best is not None
    return best, tuple(trace)


def _by_reconstruction(
    net: Any,
    search: Search[Any],
    decoding: Decoding,
    memory_gb: float,
    seed: int,
    start: np.ndarray | None,
    seconds: float,
    other: np.ndarray | None,
    length: Length,
) -> SearchSolutions:
    """A greedy solution, or a given one, and what each of ever more re-constructions makes of it.

    Each sees another of the eight symmetric images: the same piece is not always rebuilt in the same way.  Where it
    takes no more than a quarter of the time, one solution is built of each of several images, and all are improved in
    step: later, one alone gets no shorter, while another one still does (docs/choices.md).  As many go on from the
    `other` solution where it is shorter, by `length`, than the greedy one.
    """
    paths, once = search.path_network(net), decoding.model_copy(update={"iterations": 1})
    many, environment = Decoding(starts="all" if net.multi_start else 1), search.environment

    def build(batch: Batch) -> Tensor:
        """The network's own solutions: greedy ones, or the best of all starts."""
        best = search.start_from_many(paths, batch, many, memory_gb)
        return environment.build_greedily(paths, batch, once, memory_gb, 0) if best is None else best

    def search_solutions(batch: Batch) -> Iterator[Tensor]:
        began, copies = time.perf_counter(), 1
        if start is not None:
            solutions = torch.from_numpy(start.astype(np.int64))[None].to(batch.coords.device)
            yield solutions
        else:
            yield (solutions := build(batch))
            took = time.perf_counter() - began
            most = batch_size_for(paths, batch.coords.shape[1], Decoding(), memory_gb)
            copies = max(1, min(IMAGES, most, int(seconds / (4 * took))))
        images, several = augment8(batch.coords)[:, 0], batch.repeat(copies)
        alike = other is not None and length(other) < length(solutions[0].cpu().numpy())
        if other is not None and alike:
            solutions = torch.from_numpy(other.astype(np.int64)).to(solutions.device).expand(copies, *other.shape)
            yield solutions
        elif copies > 1:
            others = several[1:].at(images[1:copies])
            solutions = torch.cat([solutions, build(others)])
            yield solutions
        generator = torch.Generator().manual_seed(seed)
        for number in itertools.count(1):
            if net.problem == "tsp":  # pieces begin at the same place of all tours, so tours begin anywhere
                places = torch.randint(solutions.shape[1], (copies, 1), generator=generator)
                turned = (places + torch.arange(solutions.shape[1])) % solutions.shape[1]
                solutions = solutions.gather(1, turned.to(solutions.device))
            images_of_call = several.at(images[(torch.arange(copies) + number) % IMAGES])
            call_seed = seed * SEEDS + number
            yield (
                solutions := next(search.reconstruct(paths, images_of_call, solutions, once, memory_gb, seed=call_seed))
            )
            if alike and number % SPREAD == 0:
                shorter = several.lengths(solutions[:, None])[:, 0].argsort()[: (copies + 1) // 2]
                solutions = solutions[shorter.repeat(2)[:copies]]

    return search_solutions


def _in_its_own_way(net: Any, method: Any, memory_gb: float) -> SearchSolutions:
    """Of each of the eight images the partition, with solved routes; or what decoders find greedily, then by beams."""

    def search_solutions(batch: Batch) -> Iterator[Tensor]:
        for beam in BEAMS if method == "decoders" else (1,):
            for coords in augment8(batch.coords):
                decoding = Decoding(method=method, beam=beam)
                yield OWN_METHODS[method].of(net.problem)(net, batch.at(coords), decoding, memory_gb, 0)

    return search_solutions


def _from_many_starts(
    net: Any, environment: Environment[Any], places: int, memory_gb: float, seed: int
) -> SearchSolutions:
    """Greedy solutions from so many starts of each of the eight images; then sampled ones, without end."""

    def search_solutions(batch: Batch) -> Iterator[Tensor]:
        starts, nodes = batch.start_nodes(places), batch.coords.shape[1]
        tours, _ = environment.batch_sizes(net, nodes, places, 1, memory_gb, 1)
        generator = torch.Generator(batch.coords.device).manual_seed(seed)

        def draw(logits: Tensor) -> Tensor:
            noise = torch.empty_like(logits).exponential_(generator=generator)
            return (logits.softmax(-1) / noise).argmax(-1)  # the largest of p / noise is a draw of p

        images = [environment.prepare(net, batch.at(coords), 0) for coords in augment8(batch.coords)]
        for choose in itertools.chain([choose_best], itertools.repeat(draw)):
            for image in images:
                for part in starts.split(tours, dim=1):
                    environment.begin_episode(image)
                    yield roll_out(net, image, batch, part, choose)[0]

    return search_solutions
