"""Solutions from many starts of an instance at once, and from its eight symmetric images (POMO; Kwon et al., 2020).

Here is what all problems share, and the TSP; the CVRP is `multi_start_cvrp`, the 16 problems `multi_start_vrp`.
"""

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor

from neuroute.core.dotted import resolve
from neuroute.core.errors import NeurouteError
from neuroute.decoding.batches import Coords, autocast, batch_size
from neuroute.plan.objects import Decoding

Choose = Callable[[Tensor], Tensor]  # logits (batch, tours, nodes) -> nodes (batch, tours)
BYTES = 48  # of a tour and a node while a decision is made: what is closed, distances, the logits on their way


class UnderWay(Protocol):
    """Tours of several instances that are being built: as many of each, in step."""

    known: Tensor  # (batch, tours): what a decision knows besides the stop, as `Pomo.decide` says
    current: Tensor  # (batch, tours) int64: the stop
    closed: Tensor  # (batch, tours, nodes): -inf at what may not come next, 0 elsewhere

    def over(self) -> bool:
        """Whether nothing is left to be decided."""

    def go(self, stops: Tensor) -> None:
        """Move on to stops (batch, tours)."""

    def solutions(self) -> Tensor:
        """What was built, int64 (batch, tours, ...)."""


class Tours:
    """Tours of the TSP.  The last stop goes without saying and is not asked for."""

    def __init__(self, starts: Tensor, nodes: int, dtype: torch.dtype) -> None:
        self.known = self.current = starts
        self.closed = close(nothing_closed(starts, nodes, dtype), starts)
        self._stops = [starts]

    def over(self) -> bool:
        return len(self._stops) >= self.closed.shape[2] - 1

    def go(self, stops: Tensor) -> None:
        self.current, self.closed = stops, close(self.closed, stops)
        self._stops.append(stops)

    def solutions(self) -> Tensor:
        """(batch, tours, n)"""
        return torch.stack([*self._stops, self.closed.argmax(dim=-1)], dim=-1)  # one is left, where 0 is above -inf


def augment8(coords: Tensor) -> Tensor:
    """coords (..., 2) in the unit square -> (8, ..., 2): its reflections and rotations, itself first.

    All distances stay what they are, so the best solution of an image is one of the instance.
    """
    x, y = coords[..., 0], coords[..., 1]
    sides = [(a, b) for a in (x, 1 - x) for b in (y, 1 - y)]
    return torch.stack([torch.stack(pair, dim=-1) for a, b in sides for pair in ((a, b), (b, a))])


def greedy(logits: Tensor) -> Tensor:
    """The most probable next stop."""
    return logits.argmax(dim=-1)


def nothing_closed(starts: Tensor, nodes: int, dtype: torch.dtype) -> Tensor:
    """Zeros (batch, tours, nodes); rows begin at multiples of 8, as a GPU's fused attention loads them."""
    batch, tours = starts.shape
    return torch.zeros(batch, tours, nodes + -nodes % 8, dtype=dtype, device=starts.device)[..., :nodes]


def close(closed: Tensor, stops: Tensor) -> Tensor:
    """-inf at stops (batch, tours).  In place, unless gradients still need what was there."""
    if torch.is_grad_enabled():
        return closed.scatter(2, stops[..., None], -torch.inf)
    return closed.scatter_(2, stops[..., None], -torch.inf)


def complete(net: Any, prepared: Any, tours: UnderWay, choose: Choose = greedy) -> Tensor:
    """The solutions, each decision made by `choose`.

    prepared: what `net.prepare` returns.  Sampling, and the probabilities that training needs, are a matter of
    `choose`, which sees the logits of each decision.
    """
    while not tours.over():
        tours.go(choose(net.decide(prepared, tours.known, tours.current, tours.closed)))
    return tours.solutions()


def roll_out(net: Any, prepared: Any, starts: Tensor, choose: Choose = greedy) -> Tensor:
    """Tours (batch, tours, n) int64 of the TSP from starts (batch, tours), each decision made by `choose`."""
    return complete(net, prepared, Tours(starts, prepared.nodes.shape[1], prepared.nodes.dtype), choose)


def multi_start(
    net: Any,
    coords: Coords,
    starts: int | None = None,
    *,
    augment: bool = False,
    memory_gb: float = 4.0,
    precision: str = "fp32",
    batch_size: int | None = None,
) -> Tensor:
    """coords (count, n, 2) anywhere -> the shortest greedy tours (count, n) int64 on the CPU.

    Of each instance, those that start at its first `starts` nodes (None: at every node), with `augment` those of its
    eight images too; the first of equally short ones.  As many tours at a time as the memory budget holds, of as many
    instances or of `batch_size`: how many that are does not change them.  Raises NeurouteError when there are no
    starts, or not so many nodes.
    """
    points, device = torch.as_tensor(coords), next(net.parameters()).device
    n = points.shape[1]
    chosen = torch.arange(how_many(starts, n, "nodes"), device=device)
    images = 8 if augment else 1
    tours, size = at_once(net, n, len(chosen) * images, images, memory_gb, batch_size)

    def solved(first: int) -> Tensor:
        place = points[first : first + size].to(device)
        same = place.repeat(images, 1, 1)
        prepared = net.prepare(net.encode(augment8(place).flatten(0, 1) if augment else place))

        def built(starts: Tensor) -> tuple[Tensor, Tensor]:
            solutions = roll_out(net, prepared, starts)
            return solutions, tour_lengths(same, solutions)

        return shortest(built, chosen.expand(len(same), -1), tours, images)

    return in_parts(net, solved, len(points), size, precision, n)


def in_parts(net: Any, solved: Callable[[int], Tensor], count: int, size: int, precision: str, *shape: int) -> Tensor:
    """Solutions (count, *shape) int64 on the CPU: solved(first) are those of `size` instances from `first` on."""
    with torch.inference_mode(), autocast(next(net.parameters()).device, precision):
        found = [torch.empty(0, *shape, dtype=torch.int64)]
        return torch.cat([*found, *(solved(first).cpu() for first in range(0, count, size))])


def how_many(starts: int | None, places: int, noun: str) -> int:
    """Starts of an instance; None: at every place.  Raises NeurouteError when there are none, or not so many places."""
    if starts is None:
        return places
    if not 1 <= starts <= places:
        raise NeurouteError(
            f"{starts} starts of an instance of {places} {noun}; give from 1 to {places}, or 'all' {noun}"
        )
    return starts


def starts_of(decoding: Decoding) -> int | None:
    """Starts as `multi_start` takes them."""
    return None if decoding.starts == "all" else decoding.starts


def has_many_starts(net: Any) -> bool:
    """Whether a network builds solutions from many starts of an instance at once (POMO, ICAM)."""
    return bool(getattr(net, "multi_start", False))


def check_starts(net: Any, decoding: Decoding) -> None:
    """Raises NeurouteError for a way of decoding that is not for this kind of network."""
    if not has_many_starts(net):
        if decoding.starts != 1 or decoding.augment:
            raise NeurouteError(
                f"{type(net).__name__} builds one solution of an instance; several starts and symmetric images are for "
                "networks such as Pomo and Icam, so leave `starts` and `augment` out"
            )
    elif decoding.rescale != 1 or decoding.esf:
        raise NeurouteError(
            f"{type(net).__name__} reads coordinates of the unit square as they are; leave `rescale` and `esf` out"
        )


def at_once(
    net: Any, nodes: int, tours: int, images: int, memory_gb: float, instances: int | None = None
) -> tuple[int, int]:
    """Tours that are built at a time, and instances that are encoded at a time: both at least 1.

    tours: of one instance, those of all its `images` together; instances: as many, or, if None, as fit.  Raises
    NeurouteError when the activations of one image's encoder are more than all the memory.
    """
    most = max(1, int(memory_gb * 1e9 / (BYTES * nodes)))
    encoded = batch_size(net, nodes, Decoding(), memory_gb)
    return most, instances or max(1, min(most // tours, encoded // images))


def starts_at_once(net: Any, nodes: int, decoding: Decoding, memory_gb: float) -> int:
    """Instances of so many nodes, depots included, that are in hand at a time."""
    images, places = 8 if decoding.augment else 1, nodes - (net.problem != "tsp")
    tours = images * (starts_of(decoding) or places)
    # By name: what only one problem needs is no part of the others' code.
    of = resolve("neuroute.decoding.multi_start_vrp:in_hand") if net.problem == "vrp" else at_once
    found: int = of(net, nodes, tours, images, memory_gb, decoding.batch_size)[1]
    return found


def shortest(built: Callable[[Tensor], tuple[Tensor, Tensor]], starts: Tensor, tours: int, images: int) -> Tensor:
    """Of each instance the shortest solution from any start of any image, the first of equally short ones.

    built(starts) -> solutions (batch, tours, ...), lengths (batch, tours); starts (batch, all tours), the batch being
    instances under each of their `images`; `tours` of them at a time.  Returns (batch / images, ...).
    """
    batch = len(starts)
    every = torch.arange(batch, device=starts.device)
    best, least = None, torch.full((batch,), torch.inf, dtype=torch.float64, device=starts.device)
    for part in starts.split(max(1, tours // batch), dim=1):
        found, lengths = built(part)
        lengths, which = lengths.min(dim=1)
        own = found[every, which]
        best = own if best is None else torch.where((lengths < least).view(-1, *[1] * (own.dim() - 1)), own, best)
        least = torch.minimum(least, lengths)
    assert best is not None
    which = least.view(images, -1).argmin(dim=0)
    return best.unflatten(0, (images, -1))[which, torch.arange(len(which), device=starts.device)]


def tour_lengths(coords: Tensor, tours: Tensor) -> Tensor:
    """Lengths (batch, tours), float64, of closed tours (batch, tours, n) over coords (batch, n, 2).

    One stop after the other: of all points at once there would be three times as many numbers as of the tours.
    """
    points = coords.double()
    instance = torch.arange(len(coords), device=coords.device)[:, None]
    total = torch.zeros(tours.shape[:2], dtype=torch.float64, device=coords.device)
    for stop in range(tours.shape[2]):
        total += (points[instance, tours[..., stop]] - points[instance, tours[..., stop - 1]]).norm(dim=-1)
    return total
