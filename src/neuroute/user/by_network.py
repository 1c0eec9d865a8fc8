"""Solve an instance by a network."""

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

import numpy as np
import torch
from torch import Tensor

from neuroute.core.device import memory_budget_gb
from neuroute.core.errors import Interrupted, NeurouteError
from neuroute.datasets.progress import Progress
from neuroute.decoding.decode import decode, instances_per_batch, solve_in_own_way
from neuroute.decoding.environment import Batch, Environment
from neuroute.decoding.memory import batch_size_for, device_of, inference
from neuroute.decoding.multi_start import augment8, roll_out
from neuroute.decoding.rollout import choose_best
from neuroute.decoding.search import SEARCH, Search
from neuroute.instances.instance import Instance
from neuroute.problems.longest import SHORTEST
from neuroute.problems.vrp import Vrp
from neuroute.specs.objects import Decoding
from neuroute.user.model import Model, name_of_search, resolve_decoding, search_step
from neuroute.user.options import check_decoding
from neuroute.user.solution import Solution
from neuroute.user.within_time import Construction

# -- solutions of one instance, better and better: for some time, or for a number of re-constructions ----------------
# A search is an iterator of solutions; `keep_best` takes them until the time is up, which the network is told at
# its next decision. They are compared in the instance's own distances, which a library rounds, so that nothing gets
# longer in them.

MOST_OWN = 2000  # stops up to which the network builds a solution of its own first: of more it takes minutes
OWN_SHARE = 1 / 2  # of the time, that this may take where there is another solution
FIRST = 3, 10  # calls of a network, by whose time that of all decisions is seen; the very first ones load and compile
Length = Callable[[np.ndarray], float]
Trace = tuple[tuple[float, float], ...]
IMAGES = 8
SPREAD = 4  # re-constructions after which the shorter half of solutions that began alike takes the place of the others
BEAMS = (1, 50)  # of a network's own way, one after the other
SEEDS = 1_000_003  # re-constructions between two seeds
DECISIONS = ("encode", "decide", "decide_best", "decide_path")  # methods of networks that are called again and again


class TimeIsOverError(Exception):
    """Ends what a network is at."""


class Best:
    """The shortest solution so far, by `length`; it outlives an interrupted search.

    Attributes:
        solution: None before there is one.
        trace: (seconds, length) of each that was the shortest.
        own: length of the network's own first solution, if it built one.
    """

    def __init__(self, length: Length) -> None:
        self.length, self.began = length, time.perf_counter()
        self.solution: np.ndarray | None = None
        self.trace: Trace = ()
        self.own: float | None = None

    def offer(self, solution: np.ndarray) -> float:
        """Take a solution if it is shorter, and return its length."""
        length = self.length(solution)
        if self.solution is None or length < self.trace[-1][1]:
            self.solution = solution
            self.trace += ((time.perf_counter() - self.began, length),)
        return length


@contextmanager
def ended(net: Any, ends: float, best: Best, decisions: int = 0) -> Iterator[None]:
    """Raise TimeIsOverError at the network's first call after `ends`, by the clock, once there is a solution.

    decisions: that there will be at least: it is raised, too, if their time is seen to be longer.
    """
    before = {name: vars(net).get(name) for name in DECISIONS if hasattr(net, name)}
    calls, inside, began = 0, False, 0.0

    def timed(method: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **more: Any) -> Any:
            nonlocal calls, inside, began
            if inside:
                return method(*arguments, **more)
            calls, now = calls + 1, time.perf_counter()
            began = now if calls == FIRST[0] else began
            each = (now - began) / (FIRST[1] - FIRST[0])
            too_slow = calls == FIRST[1] and now + each * (decisions - FIRST[1]) > ends
            if best.solution is not None and (now >= ends or too_slow):
                raise TimeIsOverError
            inside = True
            try:
                return method(*arguments, **more)
            finally:
                inside = False

        return run

    for name in before:
        setattr(net, name, timed(getattr(net, name)))
    try:
        yield
    finally:
        for name, method in before.items():
            delattr(net, name)
            if method is not None:
                setattr(net, name, method)


def improve(
    net: Any,
    instance: np.ndarray | Vrp,
    solution: np.ndarray,
    decoding: Decoding,
    memory_gb: float,
    best: Best,
) -> None:
    """Offer to `best` a solution and what each iteration of re-construction makes of it.

    `instance` is a batch of one, coordinates (1, n, 2) or `Vrp`, in the unit square; the solution is a tour (n,) or
    customers and flags (2, V).  Re-construction shortens distances in the unit square; a library's own distances are
    rounded or of another kind, so by them its last solution may not be its shortest, and could be longer than the
    first.  Raises NeurouteError if no sub-path can be as long as the longest one asked for.
    """
    device = device_of(net)
    start = torch.from_numpy(solution.astype(np.int64))[None].to(device)
    instances_per_batch(net, solution.shape[-1], decoding, memory_gb)  # raises for a sub-path that cannot be
    search = SEARCH.of(net.problem)
    with inference(device, "fp32"), Progress(decoding.iterations, "re-construction") as progress:
        batch = search.environment.batch(instance, device)

        def all_of_them() -> Iterator[Tensor]:
            yield start
            for solutions in search.reconstruct(net, batch, start, decoding, memory_gb):
                yield solutions
                progress.add(1)

        keep_best(all_of_them(), batch, best)


def search_for(
    net: Any,
    instance: np.ndarray | Vrp,
    decoding: Decoding,
    memory_gb: float,
    best: Best,
    seconds: float,
    seed: int = 0,
    start: np.ndarray | None = None,
) -> None:
    """Offer to `best` what is found until so many seconds after it began.

    `instance` as for `improve`; `start`: a solution to begin with.  What `best` holds already is what re-construction
    goes on from where the network's own solution is longer, takes too much of the time, or is of more than MOST_OWN
    stops.  Where there is none, or no time, the first solution is built whatever it takes.  Raises NeurouteError for a
    network whose solutions nothing improves if there is a `start`.
    """
    search = SEARCH.of(net.problem)
    method = getattr(net, "own_method", None)
    improves = not method and search.improves(net)
    if start is not None and not improves:
        raise NeurouteError(f"{type(net).__name__} builds solutions and improves none; leave the start out")
    ends, trace = ended(net, best.began + seconds, best) if seconds else nullcontext(), best.trace
    with inference(device_of(net), "fp32"), ends, suppress(TimeIsOverError):
        batch = search.environment.batch(instance, device_of(net))
        if improves:
            solutions = _by_reconstruction(net, search, batch, decoding, memory_gb, seed, start, seconds, best)
        elif method:
            solutions = _in_its_own_way(net, method, batch, memory_gb)
        else:
            places = search.environment.count_starts(instance, None)
            solutions = _from_many_starts(net, search.environment, batch, places, memory_gb, seed)
        keep_best(solutions, batch, best, seconds)
    if best.own is None and start is None and not improves and best.trace != trace:
        best.own = best.trace[-1][1]


def keep_best(search: Iterator[Tensor], batch: Batch, best: Best, seconds: float | None = None) -> None:
    """Offer the solutions of a search to `best`, until so many seconds after it began.

    Solutions (tours, ...) of the one instance of the `batch` come together, of which the shortest one counts.
    """
    for solutions in search:
        best.offer(solutions[int(batch.lengths(solutions[None])[0].argmin())].cpu().numpy())
        if seconds is not None and time.perf_counter() - best.began >= seconds:
            break


def _by_reconstruction(
    net: Any,
    search: Search[Any],
    batch: Batch,
    decoding: Decoding,
    memory_gb: float,
    seed: int,
    start: np.ndarray | None,
    seconds: float,
    best: Best,
) -> Iterator[Tensor]:
    """A greedy solution, or a given one, and what each of ever more re-constructions makes of it.

    Each sees another of the eight symmetric images: the same piece is not always rebuilt in the same way.  Where it
    takes no more than a quarter of the time, one solution is built of each of several images, and all are improved in
    step: later, one alone gets no shorter, while another one still does (docs/choices.md).  As many go on from the
    solution that `best` holds where it is shorter than the greedy one.
    """
    paths, once = search.path_network(net), decoding.model_copy(update={"iterations": 1})
    many, environment = Decoding(starts="all" if net.multi_start and not net.single_start else 1), search.environment

    def build(batch: Batch) -> Tensor:
        """The network's own solutions: greedy ones, or the best of all starts."""
        best = search.start_from_many(paths, batch, many, memory_gb)
        return environment.build_greedily(paths, batch, once, memory_gb, 0) if best is None else best

    other, first, copies = best.solution if start is None else start, None, 1
    stops = batch.coords.shape[1]
    if start is None and (other is None or stops <= MOST_OWN):
        began = time.perf_counter()
        share = nullcontext() if other is None else ended(net, began + OWN_SHARE * seconds, best, stops)
        with share, suppress(TimeIsOverError):
            first = build(batch)
        if first is not None:
            most = min(IMAGES, batch_size_for(paths, stops, Decoding(), memory_gb))
            copies = max(1, min(most, int(seconds / (4 * (time.perf_counter() - began)))))
            best.own = best.length(first[0].cpu().numpy())
            yield first
    images, several = augment8(batch.coords)[:, 0], batch.repeat(copies)
    alike = other is not None and (best.own is None or best.length(other) < best.own)
    if other is not None and alike:
        start_tensor = torch.from_numpy(other.astype(np.int64)).to(batch.coords.device)
        yield (solutions := start_tensor.expand(copies, *other.shape))
    else:
        assert first is not None
        solutions = first
        if copies > 1:
            yield (solutions := torch.cat([first, build(several[1:].at(images[1:copies]))]))
    if stops - environment.depots < SHORTEST:
        return  # nothing is long enough to be rebuilt
    generator = torch.Generator().manual_seed(seed)
    for number in itertools.count(1):
        if net.problem == "tsp":  # pieces begin at the same place of all tours, so tours begin anywhere
            places = torch.randint(solutions.shape[1], (copies, 1), generator=generator)
            turned = (places + torch.arange(solutions.shape[1])) % solutions.shape[1]
            solutions = solutions.gather(1, turned.to(solutions.device))
        images_of_call = several.at(images[(torch.arange(copies) + number) % IMAGES])
        call_seed = seed * SEEDS + number
        solutions = next(search.reconstruct(paths, images_of_call, solutions, once, memory_gb, seed=call_seed))
        yield solutions
        if alike and number % SPREAD == 0:
            shorter = several.lengths(solutions[:, None])[:, 0].argsort()[: (copies + 1) // 2]
            solutions = solutions[shorter.repeat(2)[:copies]]


def _in_its_own_way(net: Any, method: Any, batch: Batch, memory_gb: float) -> Iterator[Tensor]:
    """Of each of the eight images the partition, with solved routes; or what is found greedily, then by beams."""
    for beam in BEAMS if net.own_beams else (1,):
        for coords in augment8(batch.coords):
            decoding = Decoding(method=method, beam=beam)
            yield solve_in_own_way(net.problem, net, batch.at(coords), decoding, memory_gb, 0)


def _from_many_starts(
    net: Any, environment: Environment[Any], batch: Batch, places: int, memory_gb: float, seed: int
) -> Iterator[Tensor]:
    """Greedy solutions from so many starts of each of the eight images; then sampled ones, without end."""
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


def solve_by_network(
    instance: Instance,
    model: Model,
    decoding: Decoding | str | None,
    seconds: float,
    construction: Construction | None,
    start: np.ndarray | None,
    seed: int,
    memory_gb: float | None,
) -> Solution:
    """Return the best solution that a network finds, as `neuroute.solve` says.

    seconds: from the `construction` on, which the search goes on from.  Raises NeurouteError if model, instance and
    decoding do not go together, and Interrupted, with the best solution so far, at Ctrl-C.
    """
    if start is not None and not SEARCH.of(model.problem).improves(model.net):
        raise NeurouteError(f"{model.name} builds solutions and improves none; leave the start out")
    budget = memory_budget_gb(model.place, memory_gb)
    inputs = instance.inputs(model.problem)
    best, built = Best(instance.cost), None
    if decoding is not None:
        decoding = resolve_decoding(model.net, decoding)
        check_decoding(model.problem, instance.n, decoding, instance.name)
    name = name_of_search(model.net, seconds, start is not None) if decoding is None else decoding.name
    try:
        if decoding is not None and start is not None:
            improve(model.net, inputs, start, decoding, budget, best)
        elif decoding is not None:
            best.offer(decode(model.problem, model.net, inputs, decoding, budget)[0].numpy())
        else:
            if construction is not None:
                built = construction.answer(seconds)
                best.offer(built.stops)
            how = search_step(model, instance.n)
            search_for(model.net, inputs, how, budget, best, seconds, seed, start)
    except KeyboardInterrupt:
        if best.solution is None and construction is not None:
            built = construction.so_far()
            best.offer(built.stops)
        if best.solution is None:
            raise Interrupted from None
        note = f"interrupted after {time.perf_counter() - best.began:.1f} s"
        raise Interrupted(_solution(instance, model.name, name, best, built, note)) from None
    return _solution(instance, model.name, name, best, built)


def _solution(
    instance: Instance, model: str, name: str, best: Best, built: Solution | None, note: str = ""
) -> Solution:
    """Return the best solution, and how it came about."""
    assert best.solution is not None
    seconds = time.perf_counter() - best.began
    basis = None if built is None else (built.method, built.cost, best.own)
    if basis is not None and basis[2] is not None and basis[2] <= basis[1]:
        basis = None  # it went on from its own
    name = name if basis is None else f"{basis[0]} + search"
    return Solution(instance, best.solution, f"{model}, {name}", seconds, best.trace, basis, note)


def check_fit(instance: Instance, model: Model) -> None:
    """Raises NeurouteError if a network is not for an instance's problem."""
    variant = model.card.variants if model.card else None
    if model.problem not in instance.problems or (variant is not None and instance.variant not in variant):
        raise NeurouteError(
            f"{instance.name}: is a {instance.variant}, but {model.name} solves "
            f"{', '.join(variant) if variant else model.problem.upper()}; take a network for {instance.variant}"
        )
