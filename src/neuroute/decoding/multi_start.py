"""Solutions from many starts of an instance at once, and from images of it (POMO; Kwon et al., 2020)."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.decoding.environment import Batch, Choose, Environment, Rollout, complete, precision_of, select_masks
from neuroute.decoding.memory import device_of, inference
from neuroute.networks.base import MultiStartNetwork, RoutingNetwork
from neuroute.specs.objects import Decoding

# -- routes for networks that read which customers have been served, and not only which ones may come next -----------


def start_rollout(net: MultiStartNetwork, batch: Batch, starts: Tensor, dtype: torch.dtype) -> Rollout:
    """Solutions from starts (batch, tours), with the context that the network reads; dtype: of its nodes."""
    rollout = batch.rollout(starts, dtype)
    return WithServed(rollout, starts) if net.sees_served else rollout


class WithServed:
    """A rollout of the CVRP whose context is, besides what is left, -inf at what has been served and 0 elsewhere."""

    def __init__(self, rollout: Rollout, starts: Tensor) -> None:
        self._rollout = rollout
        self._served = torch.zeros_like(rollout.action_mask).scatter_(2, starts[..., None], -torch.inf)
        self._update()

    def done(self) -> bool:
        return self._rollout.done()

    def step(self, stops: Tensor) -> None:
        self._rollout.step(stops)
        self._served.scatter_(2, stops[..., None], -torch.inf)
        self._update()

    def select(self, parents: Tensor) -> None:
        self._rollout.select(parents)
        self._served = select_masks(self._served, parents)
        self._update()

    def _update(self) -> None:
        self.current, self.action_mask = self._rollout.current, self._rollout.action_mask
        self.context = torch.cat([self._rollout.context[..., None], self._served], dim=-1)

    def solutions(self) -> Tensor:
        return self._rollout.solutions()


def images_of(coords: Tensor, turns: Tensor) -> Tensor:
    """coords (batch, nodes, 2) -> images (images, batch, nodes, 2), the first of which is the instance itself.

    Of the others even ones are rotated and odd ones reflected, by the angles turns (images, batch), in [0, 1); then
    they are moved and scaled alike on both axes, so that the larger range is 1.  Lengths are those of `coords`.
    """
    angle = (2 * torch.pi * turns.double())[..., None]
    side = 1.0 - 2 * (torch.arange(len(turns), device=coords.device) % 2)[:, None, None]
    x, y = coords.double().unbind(-1)
    turned = torch.stack([angle.cos() * x - side * angle.sin() * y, angle.sin() * x + side * angle.cos() * y], dim=-1)
    low, high = turned.aminmax(dim=2, keepdim=True)
    scale = (high - low).amax(dim=-1, keepdim=True)
    moved = (turned - low) / torch.where(scale > 0, scale, 1.0)
    return torch.cat([coords[None], moved[1:].to(coords.dtype)])


def draw_images(draw: int, instances: Iterable[int], images: int) -> Tensor:
    """Uniform numbers in [0, 1): turns, and places to start at, float64 (2, images, instances).

    Those of an instance follow from `draw` and its number in its test set alone; more images have the same first ones.
    """
    streams = (np.random.Philox(key=np.array([draw, number], np.uint64)) for number in instances)
    numbers = [np.random.Generator(stream).random((images, 2)) for stream in streams]
    return torch.from_numpy(np.stack(numbers, axis=1)).movedim(2, 0)


def augment8(coords: Tensor) -> Tensor:
    """coords (..., 2) in the unit square -> (8, ..., 2): its reflections and rotations, itself first.

    All distances stay what they are, so the best solution of an image is one of the instance.
    """
    x, y = coords[..., 0], coords[..., 1]
    sides = [(a, b) for a in (x, 1 - x) for b in (y, 1 - y)]
    return torch.stack([torch.stack(pair, dim=-1) for a, b in sides for pair in ((a, b), (b, a))])


def roll_out(
    net: MultiStartNetwork, prepared: Any, batch: Batch, starts: Tensor, choose: Choose | None = None
) -> Tensor:
    """Solutions (batch, tours, ...) int64 from starts (batch, tours), each decision made by `choose`; see `complete`.

    batch: what `prepared` is of.  starts: the first stops; with a depot 0 where the network is to choose.
    """
    return complete(net, prepared, start_rollout(net, batch, starts, precision_of(prepared)), choose)


def multi_start(
    environment: Environment[Any],
    net: MultiStartNetwork,
    instances: Any,
    starts: int | None = None,
    *,
    augment: bool = False,
    images: int = 1,
    draw: int = 0,
    memory_gb: float = 4.0,
    precision: str = "fp32",
    batch_size: int | None = None,
) -> Tensor:
    """The shortest greedy solutions (count, ...) int64 on the CPU.

    Of each instance, those that start at the first `starts` of its possible ones (None: at each of them), with
    `augment` those of its eight images too, or those of so many random `images`, which only the network sees; the first
    of equally short ones.  Of one start, the first customer is the network's choice, as published; a tour of a network
    with a `single_start` begins at a random node, another one in each image.  `draw` is which random images and starts.
    As many tours at a time as the memory budget holds, of as many instances or of `batch_size`: how many that are does
    not change them, unless the network `is_batch_dependent`.  Raises NeurouteError if there are no starts, or not so
    many.
    """
    device, n, images = device_of(net), environment.size(instances), 8 if augment else images
    number = environment.count_starts(instances, starts)
    tours, size = environment.batch_sizes(net, environment.nodes(n), number * images, images, memory_gb, batch_size)

    def solve(first: int) -> Tensor:
        part: Batch = environment.batch(instances[first : first + size], device)
        same, free = part.repeat(images), torch.zeros(images * len(part), 1, dtype=torch.int64, device=device)
        images_of_part = same.at(augment8(part.coords).flatten(0, 1)) if augment else same
        if net.single_start or (images > 1 and not augment):
            turns, places = draw_images(draw, range(first, first + len(part)), images).to(device)
            if images > 1 and not augment:
                images_of_part = same.at(images_of(part.coords, turns).flatten(0, 1))
            if net.single_start and not environment.depots:
                free = (places * n).long().view(-1, 1)
        prepared = environment.prepare(net, images_of_part, first)

        def build(starts: Tensor) -> tuple[Tensor, Tensor]:
            environment.reset(prepared)
            solutions = roll_out(net, prepared, same, starts)
            return solutions, same.lengths(solutions)

        return shortest(build, free if starts == 1 else same.start_nodes(number), tours, images)

    with inference(device, precision):
        none = torch.empty(0, *environment.shape(n), dtype=torch.int64)
        return torch.cat([none, *(solve(first).cpu() for first in range(0, len(instances), size))])


def starts_of(decoding: Decoding) -> int | None:
    """Starts as `multi_start` takes them."""
    return None if decoding.starts == "all" else decoding.starts


def check_starts(net: RoutingNetwork, decoding: Decoding) -> None:
    """Raises NeurouteError if this kind of network cannot be decoded that way."""
    if not net.multi_start:
        if decoding.starts != 1 or decoding.augment or decoding.images > 1:
            raise NeurouteError(
                f"{type(net).__name__} builds one solution of an instance, unlike Pomo and Icam; leave out `starts`, "
                "`augment` and `images`"
            )
    elif decoding.rescale != 1 or decoding.esf:
        raise NeurouteError(
            f"{type(net).__name__} reads coordinates of the unit square as they are; leave `rescale` and `esf` out"
        )


def shortest(build: Callable[[Tensor], tuple[Tensor, Tensor]], starts: Tensor, tours: int, images: int) -> Tensor:
    """Of each instance the shortest solution from any start of any image, the first of equally short ones.

    build(starts) -> solutions (batch, tours, ...), lengths (batch, tours); starts (batch, all tours), the batch being
    instances under each of their `images`; `tours` of them at a time.  Returns (batch / images, ...).
    """
    batch = len(starts)
    every = torch.arange(batch, device=starts.device)
    best, least = None, torch.full((batch,), torch.inf, dtype=torch.float64, device=starts.device)
    for part in starts.split(max(1, tours // batch), dim=1):
        solutions, lengths = build(part)
        lengths, which = lengths.min(dim=1)
        new = solutions[every, which]
        best = new if best is None else torch.where((lengths < least).view(-1, *[1] * (new.dim() - 1)), new, best)
        least = torch.minimum(least, lengths)
    assert best is not None
    which = least.view(images, -1).argmin(dim=0)
    by_image: Tensor = best.unflatten(0, (images, -1))
    return by_image[which, torch.arange(len(which), device=starts.device)]
