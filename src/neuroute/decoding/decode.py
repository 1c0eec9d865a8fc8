"""Decode a whole test set, as many instances at a time as the memory budget holds."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple

import numpy as np
import torch
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.datasets.problem_spec import SPEC
from neuroute.decoding.environment import ENVIRONMENT, B, Batch, Environment
from neuroute.decoding.memory import batch_size_for, device_of, inference, instances_that_fit
from neuroute.decoding.multi_start import multi_start, starts_of
from neuroute.networks.base import PathNetwork, RoutingNetwork
from neuroute.problems.longest import longest_sub_path
from neuroute.problems.registry import Part
from neuroute.solvers.registry import get
from neuroute.specs.objects import Decoding


class Search(ABC, Generic[B]):
    """Ways to decode a problem that go beyond greedy construction."""

    environment: Environment[B]

    @abstractmethod
    def check(self, net: RoutingNetwork, decoding: Decoding, *, improves: bool = False) -> None:
        """Raises NeurouteError if this kind of network cannot be decoded that way.

        improves: whatever the way is, it begins with one solution, which gets better.
        """

    def improves(self, net: RoutingNetwork) -> bool:
        """Whether `reconstruct` takes a network."""
        return True

    @abstractmethod
    def reconstruct(
        self,
        net: RoutingNetwork,
        batch: B,
        solutions: Tensor,
        decoding: Decoding,
        memory_gb: float,
        *,
        seed: int = 0,
        first: int = 0,
        iterations_before: int = 0,
    ) -> Iterator[Tensor]:
        """The solutions (batch, ...) after each of the decoding's iterations of random or parallel re-construction.

        All lies on the network's device.  `first`: the number of the batch's first instance, on which draws may depend.
        With `iterations_before`, `solutions` are those after as many iterations.
        Raises NeurouteError for a longest sub-path that cannot be, and for networks that `check` refuses.
        """

    def path_network(self, net: RoutingNetwork) -> PathNetwork:
        """View the network as one of paths."""
        paths: PathNetwork = net  # type: ignore[assignment]
        return paths

    def start_from_many(self, net: RoutingNetwork, batch: B, decoding: Decoding, memory_gb: float) -> Tensor | None:
        """The best of many starts, for re-construction to begin with; None where it begins with a greedy solution."""
        return None

    @abstractmethod
    def search_beams(self, net: PathNetwork, batch: B, decoding: Decoding, first: int) -> Tensor:
        """The shortest solutions (batch, ...) that beams find.

        first: the place of the first instance in its test set.  Raises NeurouteError for networks that `check` refuses.
        """


SEARCH = Part[Search[Any]]("search")


def blocks_per_batch(net: RoutingNetwork, memory_gb: float, nodes: int) -> int:
    """Count the blocks of so many nodes that fit."""
    return batch_size_for(net, nodes, Decoding(), memory_gb)


# A system's own way: (network, batch, decoding, memory_gb, number of the first instance) -> solutions (batch, ...).
OwnWay = Callable[[Any, Any, Decoding, float, int], Tensor]
MOST_TOGETHER = 256  # instances whose batch norms are taken together
MAX_NODES_PER_BATCH = 1 << 20  # of the instances whose blocks parallel re-construction gives to the network


class Keeper(NamedTuple):
    """Keeps how far a decoding has come, for one that is interrupted to go on with."""

    is_due: Callable[[], bool]  # whether it is time to keep it again
    load: Callable[[], dict[str, np.ndarray] | None]  # what was put last; None at the start
    put: Callable[[dict[str, np.ndarray]], None]


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
    return decode_timed(problem, net, instances, decoding, memory_gb, precision)[0]


def decode_timed(
    problem: str,
    net: RoutingNetwork,
    instances: Any,
    decoding: Decoding,
    memory_gb: float = 4.0,
    precision: str = "fp32",
    keeper: Keeper | None = None,
) -> tuple[Tensor, float]:
    """What `decode` returns, and its seconds, those before an interruption included."""
    search = SEARCH.of(problem)
    search.check(net, decoding)
    check_own(net, decoding)
    if net.multi_start and decoding.method == "greedy":
        began = time.perf_counter()
        solutions = multi_start(
            search.environment,
            net,  # type: ignore[arg-type]
            instances,
            starts_of(decoding),
            augment=decoding.augment,
            images=decoding.images,
            draw=decoding.draw,
            memory_gb=memory_gb,
            precision=precision,
            batch_size=decoding.batch_size,
        )
        return solutions, time.perf_counter() - began
    last = decoding.iterations if decoding.method in ("rrc", "prc") else 0
    ((_, solutions, seconds),) = _solve(problem, net, instances, decoding, [last], memory_gb, precision, keeper)
    return solutions, seconds


def improve(
    problem: str,
    net: RoutingNetwork,
    instances: Any,
    decoding: Decoding,
    memory_gb: float = 4.0,
    precision: str = "fp32",
    keeper: Keeper | None = None,
) -> list[tuple[int, Tensor, float]]:
    """(iterations, solutions (count, ...) on the CPU, seconds until then) at each of the decoding's milestones.

    Raises NeurouteError if solutions of such a network are not improved that way.
    """
    SEARCH.of(problem).check(net, decoding, improves=True)
    check_own(net, decoding)
    return _solve(problem, net, instances, decoding, sorted(decoding.milestones), memory_gb, precision, keeper)


def check_own(net: RoutingNetwork, decoding: Decoding) -> None:
    """Raises NeurouteError for a network that is decoded in a way of its own, unless that is it."""
    method = getattr(net, "own_method", None)
    methods = [method, *getattr(net, "other_methods", ())]
    if method is not None and decoding.method not in methods:
        names = " or ".join(f"'{name.rpartition(':')[2]}'" for name in methods)
        raise NeurouteError(f"{type(net).__name__} is decoded by method {names} alone, not by '{decoding.method}'")


@dataclass
class _Progress:
    """How far a decoding has come: part after part of the instances, iteration after iteration."""

    solutions: dict[int, list[Tensor]]  # at each milestone, of each part that has reached it
    seconds: dict[int, float]  # until then, of all those parts
    size: int  # instances of a part, on which rounding depends
    first: int = 0  # number of the first instance of the part at hand
    now: Tensor | None = None  # its solutions
    done: int = 0  # iterations that they have behind them
    spent: float = 0.0  # seconds of the part at hand

    def arrays(self) -> dict[str, np.ndarray]:
        about = {"size": self.size, "first": self.first, "done": self.done, "spent": self.spent}
        out = {key: np.array(value) for key, value in about.items()}
        out |= {"now": self.now.cpu().numpy()} if self.now is not None else {}
        for milestone, parts in self.solutions.items():
            out[f"seconds{milestone}"] = np.array(self.seconds[milestone])
            out |= {f"solutions{milestone}": torch.cat(parts).numpy()} if parts else {}
        return out

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self.size, self.first, self.done, self.spent = (arrays[k].item() for k in ("size", "first", "done", "spent"))
        self.now = torch.from_numpy(arrays["now"]) if "now" in arrays else None
        for milestone in self.solutions:
            self.seconds[milestone] = arrays[f"seconds{milestone}"].item()
            solutions = arrays.get(f"solutions{milestone}")
            self.solutions[milestone] = [torch.from_numpy(solutions)] if solutions is not None else []


def _solve(
    problem: str,
    net: RoutingNetwork,
    instances: Any,
    decoding: Decoding,
    milestones: list[int],
    memory_gb: float,
    precision: str,
    keeper: Keeper | None,
) -> list[tuple[int, Tensor, float]]:
    """What `improve` returns, at these milestones: as many instances at a time as fit."""
    search = SEARCH.of(problem)
    paths = search.path_network(net)
    size = instances_per_batch(paths, search.environment.size(instances), decoding, memory_gb)
    p = _Progress({m: [] for m in milestones}, dict.fromkeys(milestones, 0.0), size)
    if keeper and (arrays := keeper.load()):
        p.restore(arrays)
    complete = p.first >= len(instances)
    with inference(device_of(net), precision):
        while p.first < len(instances):
            began = time.perf_counter() - p.spent
            part = instances[p.first : p.first + p.size]
            for now in _improving(problem, search, paths, part, decoding, memory_gb, p.first, p.now, p.done):
                p.done, p.now = (0 if p.now is None else p.done + 1), now
                if p.done in p.solutions:
                    p.solutions[p.done].append(now.cpu())
                    p.seconds[p.done] += time.perf_counter() - began
                if keeper and keeper.is_due():
                    p.spent = time.perf_counter() - began
                    keeper.put(p.arrays())
                    began = time.perf_counter() - p.spent  # keeping is not timed
            p.first, p.now, p.done, p.spent = p.first + p.size, None, 0, 0.0
    if keeper and not complete:
        keeper.put(p.arrays())
    return [(m, torch.cat(parts), p.seconds[m]) for m, parts in p.solutions.items()]


def _improving(
    problem: str,
    search: Search[Any],
    net: PathNetwork,
    instances: Any,
    decoding: Decoding,
    memory_gb: float,
    first: int,
    now: Tensor | None,
    iterations_before: int,
) -> Iterator[Tensor]:
    """What a part of the instances starts from, then its solutions after each iteration; after `now`, if it is given.

    These have so many iterations behind them, of the same seed.
    """
    batch = search.environment.batch(instances, device_of(net))
    if now is not None:
        net.draw, net.first = decoding.draw, first  # as when it began
        solutions = now.to(batch.coords.device)
    elif decoding.method == "beam" and decoding.beam > 1:
        yield search.search_beams(net, batch, decoding, first)
        return
    elif decoding.is_own or decoding.method == "revise":
        yield solve_in_own_way(problem, net, batch, decoding, memory_gb, first)
        return
    else:
        if decoding.start == "greedy":
            solutions = start_greedily(search, net, batch, decoding, memory_gb, first)
        else:
            solutions = solve_with(problem, decoding.start, instances, first).to(batch.coords.device)
        yield solutions
    if decoding.method in ("rrc", "prc"):
        how = {"seed": decoding.draw, "first": first, "iterations_before": iterations_before}
        yield from search.reconstruct(net, batch, solutions, decoding, memory_gb, **how)


def solve_in_own_way(
    problem: str, net: RoutingNetwork, batch: Batch, decoding: Decoding, memory_gb: float, first: int
) -> Tensor:
    """Solutions (batch, ...) int64 by the method that a decoding names.

    Raises NeurouteError if it returns no such tensor, or numbers that no node has.
    """
    solutions = Part[OwnWay](decoding.method).of(problem)(net, batch, decoding, memory_gb, first)
    count, nodes = batch.coords.shape[:2]
    is_tensor = isinstance(solutions, Tensor)
    if not is_tensor or solutions.dtype != torch.int64 or solutions.shape[:1] != (count,):
        what = f"{solutions.dtype} of shape {tuple(solutions.shape)}" if is_tensor else type(solutions).__name__
        raise NeurouteError(f"{decoding.method} returned {what}; it is to return an int64 tensor ({count}, ...)")
    if bool(((solutions < 0) | (solutions >= nodes)).any()):
        raise NeurouteError(f"{decoding.method} returned numbers that are of no node; there are 0..{nodes - 1}")
    return solutions


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


def instances_per_batch(net: RoutingNetwork, n: int, decoding: Decoding, memory_gb: float) -> int:
    """Instances of n nodes (TSP) or customers in a batch.

    Parallel re-construction takes their blocks as memory allows, so it may have many.
    Raises NeurouteError for sub-paths that these instances cannot have, and for embeddings that a split would change.
    """
    environment = ENVIRONMENT.of(net.problem)
    nodes = environment.nodes(n)
    if net.multi_start and decoding.method == "greedy":
        images, starts = decoding.number_of_images, starts_of(decoding) or n
        return environment.batch_sizes(net, nodes, images * starts, images, memory_gb, decoding.batch_size)[1]
    if decoding.is_own:
        return decoding.batch_size or min(MOST_TOGETHER, instances_that_fit(net, nodes, decoding, memory_gb))
    if decoding.method == "revise":
        width = 4 * getattr(decoding.revision, "width", 10)  # tours, and their flips
        return decoding.batch_size or max(1, MAX_NODES_PER_BATCH // (nodes * width))
    if decoding.method != "prc":
        return batch_size_for(net, nodes, decoding, memory_gb)
    longest_sub_path(decoding.longest, n)
    if net.random_embeddings:
        raise NeurouteError("parallel re-construction is not for networks with random embeddings; take method 'rrc'")
    return decoding.batch_size or max(1, MAX_NODES_PER_BATCH // n)


def construct(
    problem: str, net: RoutingNetwork, instances: Any, memory_gb: float = 4.0, precision: str = "fp32"
) -> Tensor:
    """The greedy solutions (count, ...) int64 on the CPU; of a network of many starts the best of all.

    One with a `single_start` builds a single one.
    """
    environment = ENVIRONMENT.of(problem)
    if net.multi_start:
        starts = 1 if net.single_start else None
        return multi_start(environment, net, instances, starts, memory_gb=memory_gb, precision=precision)  # type: ignore[arg-type]
    greedy, device = Decoding(), device_of(net)
    with inference(device, precision):
        size = batch_size_for(net, environment.nodes(environment.size(instances)), greedy, memory_gb)
        firsts = range(0, len(instances), size)
        parts = ((environment.batch(instances[i : i + size], device), i) for i in firsts)
        return torch.cat([environment.build_greedily(net, part, greedy, memory_gb, i).cpu() for part, i in parts])  # type: ignore[arg-type]
