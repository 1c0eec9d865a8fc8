"""Solve an instance by a network: solutions of one instance, better and better, until the time is over.

They are compared in the instance's own distances, which a library rounds, so that nothing gets longer in them.
"""

import itertools
import time
from collections.abc import Callable, Generator, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from neuroute.api.model import Model, name_of_search, resolve_decoding, search_step
from neuroute.api.solution import Best, Found, Solution, keep_best
from neuroute.api.within_time import CONSTRUCTIONS, start_of_search
from neuroute.core.device import Threads, is_busy, memory_budget_gb
from neuroute.core.errors import Interrupted, NeurouteError
from neuroute.decoding.decode import SEARCH, Search, decode, instances_per_batch, solve_in_own_way
from neuroute.decoding.environment import Batch, Environment, choose_best
from neuroute.decoding.memory import batch_size_for, inference
from neuroute.decoding.multi_start import augment8, roll_out
from neuroute.networks.weights import parameters
from neuroute.problems.instances.instance import Instance
from neuroute.problems.longest import SHORTEST
from neuroute.problems.registry import entries
from neuroute.solvers.registry import entry
from neuroute.specs.decodings import check_decoding
from neuroute.specs.objects import Decoding

MOST_OWN = 2000  # stops up to which the network builds a solution of its own first
OWN_FLOPS = 5e9  # for each second of the time, that this may take beyond the sizes of its training: half of a core's
DECISIONS = 2e7  # of a pass: nodes times nodes times starts, which are all starts of 270 nodes
IMAGES = 8
SPREAD = 4  # re-constructions after which the shorter half of solutions that began alike takes the place of the others
BEAMS = (1, 50)  # of a network's own way, one after the other
SEEDS = 1_000_003  # re-constructions between two seeds


def solve_by_network(
    instance: Instance,
    model: Model,
    decoding: Decoding | str | None,
    seconds: float,
    built: Callable[[], Solution | None],
    start: np.ndarray | None,
    seed: int,
    memory_gb: float | None,
    best: Best,
    threads: int | None = None,
) -> Solution:
    """Return the best solution that a network finds, as `neuroute.solve` says.

    built: gives the construction that the search goes on from, if there is one; its time is the search's, which lasts
    for `seconds`, but until the network has made one solution at least.  Raises NeurouteError if model, instance and
    decoding do not go together, and Interrupted, with the best solution so far, at Ctrl-C.
    """
    net, basis, own, reason = model.net, None, Own(), ""
    if start is not None and not SEARCH.of(model.problem).improves(net):
        raise NeurouteError(f"{model.name} builds solutions and improves none; leave the start out")
    budget, inputs = memory_budget_gb(model.place, memory_gb), instance.inputs(model.problem)
    if decoding is not None:
        decoding = resolve_decoding(net, decoding)
        check_decoding(model.problem, instance.n, decoding, instance.name)
    name = name_of_search(net, seconds, start is not None) if decoding is None else decoding.name
    decoding = decoding and decoding.model_copy(update={"draw": decoding.draw + seed})
    if decoding is not None and threads is None and is_busy():
        threads = 1
    best.start_clock()
    try:
        if decoding is not None and start is None:
            with Threads(threads or torch.get_num_threads(), model.place):
                best.offer(decode(model.problem, net, inputs, decoding, budget)[0].numpy())
        else:
            batch = SEARCH.of(model.problem).environment.batch(inputs, model.place)
            if decoding is not None and start is not None:
                best.offer(start)
                instances_per_batch(net, start.shape[-1], decoding, budget)  # raises for a sub-path that cannot be
                given = torch.from_numpy(start.astype(np.int64))[None].to(batch.coords.device)
                reconstruct, ends = SEARCH.of(net.problem).reconstruct, None
                search = reconstruct(net, batch, given, decoding, budget, seed=decoding.draw)
            else:
                if start is not None:
                    best.offer(start)
                elif (basis := built()) is not None:
                    best.offer(basis.stops)
                step = search_step(model, instance.n)
                search = solutions(net, batch, step, budget, seed, best, seconds, start is not None, own)
                ends = seconds
            with inference(model.place, "fp32"), Threads(threads, model.place) as pace:
                keep_best(_one_by_one(search, batch, pace), best, ends)
            reason = pace.reason
    except KeyboardInterrupt:
        if best.stops is None:
            raise Interrupted from None
        note = f"interrupted after {best.seconds:.1f} s"
        raise Interrupted(_solution(best, f"{model.name}, {name}", basis, own.cost, note)) from None
    late = decoding is None and seconds and own.seconds is not None and own.seconds > seconds
    note = f"its first solution took {own.seconds:.1f} s, more than the {seconds:g} asked for" if late else ""
    return _solution(best, f"{model.name}, {name}", basis, own.cost, "; ".join(filter(None, (note, reason))))


class Own:
    """The network's own first solution: its cost, and when it was there; None before."""

    cost: float | None = None
    seconds: float | None = None


def _solution(best: Best, name: str, built: Solution | None, own: float | None, note: str) -> Solution:
    """Return the best solution, and how it came about."""
    basis = None if built is None or (own is not None and own <= built.cost) else (built.method, built.cost, own)
    if basis is not None:
        name = f"{name.partition(', ')[0]}, {basis[0]} + search"
    return best.solution(name, basis=basis, note=note)


def _shortest(several: Tensor, batch: Batch) -> np.ndarray:
    """Return the shortest of several solutions (tours, ...) of the batch's one instance."""
    return several[int(batch.lengths(several[None])[0].argmin())].cpu().numpy()


def _one_by_one(search: Iterator[Tensor], batch: Batch, threads: Threads) -> Found:
    """Yield the shortest of the solutions (tours, ...) that come together."""
    while True:
        with threads.piece():
            several = next(search, None)
        if several is None:
            return
        yield _shortest(several, batch)


def solutions(
    net: Any,
    batch: Batch,
    decoding: Decoding,
    memory_gb: float,
    seed: int,
    best: Best,
    seconds: float,
    has_start: bool = False,
    own: Own | None = None,
) -> Generator[Tensor, None, None]:
    """Yield solutions (tours, ...) without end, from what `best` holds where the network's own is longer or too slow.

    Raises NeurouteError for a network whose solutions nothing improves if there is a start.
    """
    search, own = SEARCH.of(net.problem), own or Own()
    method = getattr(net, "own_method", None)
    improves = not method and search.improves(net)
    if has_start and not improves:
        raise NeurouteError(f"{type(net).__name__} builds solutions and improves none; leave the start out")
    if improves:
        yield from _by_reconstruction(net, search, batch, decoding, memory_gb, seed, best, seconds, has_start, own)
        return
    if method:
        endless = _in_its_own_way(net, method, batch, memory_gb)
    else:
        stops = batch.coords.shape[1] - search.environment.depots
        endless = _from_many_starts(net, search.environment, batch, stops, memory_gb, seed)
    for several in endless:
        if own.cost is None:
            _note(own, best, several, batch)
        yield several


def _note(own: Own, best: Best, several: Tensor, batch: Batch) -> None:
    own.cost, own.seconds = best.instance.cost(_shortest(several, batch)), best.seconds


def _by_reconstruction(
    net: Any,
    search: Search[Any],
    batch: Batch,
    decoding: Decoding,
    memory_gb: float,
    seed: int,
    best: Best,
    seconds: float,
    has_start: bool,
    own: Own,
) -> Generator[Tensor, None, None]:
    """Yield a greedy solution, where none is given, and what each of ever more re-constructions makes of it.

    Each sees another of the eight symmetric images: the same piece is not always rebuilt in the same way.  Where it
    takes no more than a quarter of the time, one solution is built of each of several images, and all are improved in
    step: later, one alone gets no shorter, while another one still does (docs/choices.md).  As many go on from the
    solution that `best` holds where it is shorter than the greedy one.
    """
    paths, once = search.path_network(net), decoding.model_copy(update={"iterations": 1})
    environment, stops, copies, first = search.environment, batch.coords.shape[1], 1, None
    places = stops - environment.depots
    starts = max(1, min(places, int(DECISIONS / stops**2))) if seconds else places
    many = Decoding(starts=starts if net.multi_start and not net.single_start else 1)

    def build(batch: Batch) -> Tensor:
        """The network's own solutions: greedy ones, or the best of many starts."""
        best = search.start_from_many(paths, batch, many, memory_gb)
        return environment.build_greedily(paths, batch, once, memory_gb, 0) if best is None else best

    # Where there is another solution, it builds one of its own only if it is quick enough.
    is_usual = net.multi_start or stops <= net.train_nodes
    is_quick = is_usual or 2.0 * parameters(net) * stops**2 <= OWN_FLOPS * seconds
    if not has_start and (best.stops is None or (stops <= MOST_OWN and is_quick)):
        began = time.perf_counter()
        first = build(batch)
        most = min(IMAGES, batch_size_for(paths, stops, Decoding(), memory_gb))
        copies = max(1, min(most, int(seconds / (4 * (time.perf_counter() - began)))))
        _note(own, best, first, batch)
        yield first
    images, several = augment8(batch.coords)[:, 0], batch.repeat(copies)
    assert best.stops is not None
    alike = own.cost is None or best.cost < own.cost
    if alike or first is None:
        now = torch.from_numpy(best.stops.astype(np.int64)).to(batch.coords.device).expand(copies, *best.stops.shape)
    else:
        now = first
        if copies > 1:
            yield (now := torch.cat([first, build(several[1:].at(images[1:copies]))]))
    if places < SHORTEST:
        return  # nothing is long enough to be rebuilt
    generator = torch.Generator().manual_seed(seed)
    for number in itertools.count(1):
        if net.problem == "tsp":  # pieces begin at the same place of all tours, so tours begin anywhere
            turns = torch.randint(now.shape[1], (copies, 1), generator=generator)
            turned = (turns + torch.arange(now.shape[1])) % now.shape[1]
            now = now.gather(1, turned.to(now.device))
        images_of_call = several.at(images[(torch.arange(copies) + number) % IMAGES])
        now = next(search.reconstruct(paths, images_of_call, now, once, memory_gb, seed=seed * SEEDS + number))
        own.seconds = own.seconds or best.seconds
        yield now
        if alike and number % SPREAD == 0:
            shorter = several.lengths(now[:, None])[:, 0].argsort()[: (copies + 1) // 2]
            now = now[shorter.repeat(2)[:copies]]


def _in_its_own_way(net: Any, method: Any, batch: Batch, memory_gb: float) -> Iterator[Tensor]:
    """Yield of each of the eight images the partition, with solved routes; or what is greedy, then of beams."""
    for beam in BEAMS if net.own_beams else (1,):
        for coords in augment8(batch.coords):
            decoding = Decoding(method=method, beam=beam)
            yield solve_in_own_way(net.problem, net, batch.at(coords), decoding, memory_gb, 0)


def _from_many_starts(
    net: Any, environment: Environment[Any], batch: Batch, places: int, memory_gb: float, seed: int
) -> Iterator[Tensor]:
    """Yield greedy solutions from so many starts of each of the eight images; then sampled ones, without end."""
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
                environment.reset(image)
                yield roll_out(net, image, batch, part, choose)[0]


def definitions(model: Model, searches: bool) -> tuple[str, ...]:
    """Return the definitions by which a network answers, for `neuroute.api.model.digest_of`."""
    how = model.decoding
    stages = ("spec", "environment", "search", *([how.method] if how.is_own or how.method == "revise" else []))
    names = [f"{__name__}:solve_by_network", model.about["network"]["kind"], *entries([model.problem], *stages)]
    if searches:  # which begin with a quick construction
        quick = {*sum(CONSTRUCTIONS.values(), ()), "nearest"}
        names += [f"{start_of_search.__module__}:start_of_search", *map(entry, sorted(quick))]
    return tuple(names)


def check_fit(instance: Instance, model: Model) -> None:
    """Raises NeurouteError if a network is not for an instance's problem."""
    variant = model.card.variants if model.card else None
    if model.problem not in instance.problems or (variant is not None and instance.variant not in variant):
        raise NeurouteError(
            f"{instance.name}: is a {instance.variant}, but {model.name} solves "
            f"{', '.join(variant) if variant else model.problem.upper()}; take a network for {instance.variant}"
        )
