"""Tours from many starts of an instance at once, and from its eight symmetric images (POMO; Kwon et al., 2020)."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from neuroute.decoding.decode import Coords, autocast
from neuroute.errors import NeurouteError

Choose = Callable[[Tensor], Tensor]  # logits (batch, tours, nodes) -> nodes (batch, tours)
BYTES = 24  # of a tour and a node while a decision is made: what is closed, and the logits on their way


def augment8(coords: Tensor) -> Tensor:
    """coords (..., 2) in the unit square -> (8, ..., 2): its reflections and rotations, itself first.

    All distances stay what they are, so the best tour of an image is one of the instance.
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


def roll_out(net: Any, prepared: Any, starts: Tensor, choose: Choose = greedy) -> Tensor:
    """Tours (batch, tours, n) int64 from starts (batch, tours), each decision made by `choose`.

    prepared: what `net.prepare` returns.  The last stop goes without saying and is not asked for.  Sampling, and the
    probabilities that training needs, are a matter of `choose`, which sees the logits of each decision.
    """
    n = prepared.nodes.shape[1]
    closed = close(nothing_closed(starts, n, prepared.nodes.dtype), starts)
    stops = [starts]
    for _ in range(n - 2):
        stops.append(choose(net.decide(prepared, starts, stops[-1], closed)))
        closed = close(closed, stops[-1])
    return torch.stack([*stops, closed.argmax(dim=-1)], dim=-1)  # one node is left, where 0 is above -inf


def multi_start(
    net: Any,
    coords: Coords,
    starts: int | None = None,
    *,
    augment: bool = False,
    memory_gb: float = 4.0,
    precision: str = "fp32",
) -> Tensor:
    """coords (count, n, 2) anywhere -> the shortest greedy tours (count, n) int64 on the CPU.

    Of each instance, those that start at its first `starts` nodes (None: at every node), with `augment` those of its
    eight images too; the first of equally short ones.  As many tours at a time as the memory budget holds: how many
    that are does not change them.  Raises NeurouteError when there are no starts, or not so many nodes.
    """
    coords, device = torch.as_tensor(coords), next(net.parameters()).device
    n = coords.shape[1]
    starts = n if starts is None else starts
    if not 1 <= starts <= n:
        raise NeurouteError(f"{starts} starts of an instance of {n} nodes; give from 1 to {n}, or none for every node")
    images = 8 if augment else 1
    tours = max(1, int(memory_gb * 1e9 / (BYTES * n)))  # at a time
    with torch.inference_mode(), autocast(device, precision):
        found = []
        for part in coords.split(max(1, tours // (starts * images))):
            place = part.to(device)
            seen = augment8(place).flatten(0, 1) if augment else place
            found.append(_best(net, place.repeat(images, 1, 1), seen, starts, tours, images).cpu())
        return torch.cat(found) if found else torch.empty(0, n, dtype=torch.int64)


def _best(net: Any, coords: Tensor, seen: Tensor, starts: int, tours: int, images: int) -> Tensor:
    """The shortest of all tours of each instance: coords and seen (images * count, n, 2) -> (count, n).

    seen: what the network sees; lengths are those of coords.
    """
    batch = len(seen)
    prepared = net.prepare(net.encode(seen))
    shortest = torch.full((batch,), torch.inf, dtype=torch.float64, device=coords.device)
    best = torch.zeros(batch, coords.shape[1], dtype=torch.int64, device=coords.device)
    for chosen in torch.arange(starts, device=coords.device).split(max(1, tours // batch)):
        found = roll_out(net, prepared, chosen.expand(batch, -1))
        lengths, which = tour_lengths(coords, found).min(dim=1)
        own = found[torch.arange(batch, device=coords.device), which]
        best = torch.where((lengths < shortest)[:, None], own, best)
        shortest = torch.minimum(shortest, lengths)
    which = shortest.view(images, -1).argmin(dim=0)
    return best.view(images, -1, best.shape[1])[which, torch.arange(len(which), device=coords.device)]


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
