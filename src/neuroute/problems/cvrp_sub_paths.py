"""Sub-paths of CVRP solutions: the piece that training learns from and that re-construction rebuilds (LEHD).

A sub-path is `length` consecutive stops of the routes laid end to end in a circle; it may begin inside a route and
always ends where a route does.  Before it is cut, LEHD transforms the solution without changing its cost: all of it is
read backwards with probability 1/2, and so is each of its routes.  (LEHD's labels are also rotated by routes; the end
of the sub-path is uniform over the routes' ends before and after, so that step changes nothing and is left out.)
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from neuroute.problems.longest import SHORTEST


@dataclass(frozen=True)
class Draw:
    """The chance of one batch.  Length and direction are shared by it; the rest is each instance's own."""

    length: int  # 4..V, both inclusive
    backwards: bool
    turned: np.ndarray  # (batch, V) bool: whether the k-th route is read backwards
    end: np.ndarray  # (batch,) in [0, 1): at which of the routes the sub-path ends

    def __getitem__(self, rows: slice) -> "Draw":
        return Draw(self.length, self.backwards, self.turned[rows], self.end[rows])


def draw(seed: int, index: int, customers: int, first: int, count: int) -> Draw:
    """What chance `index` of a seed holds for instances first..first+count-1, whatever batch they come in."""
    shared = np.random.Philox(key=np.array([seed, 2 * index], dtype=np.uint64)).random_raw(2)
    shortest = min(SHORTEST, customers)
    length = shortest + int(_unit(shared[0]) * (customers - shortest + 1))
    generator = np.random.Philox(key=np.array([seed, 2 * index + 1], dtype=np.uint64))
    width = customers + 1  # draws per instance
    steps, skip = divmod(first * width, 4)  # one step of the counter gives four draws
    generator.advance(steps)
    unit = _unit(generator.random_raw(skip + count * width)[skip:]).reshape(count, width)
    return Draw(length, bool(_unit(shared[1]) < 0.5), unit[:, 1:] < 0.5, unit[:, 0])


def _unit(raw: np.ndarray) -> np.ndarray:
    """The upper 53 bits as a number in [0, 1)."""
    return (raw >> np.uint64(11)) * 2.0**-53


def arranged(solutions: Tensor, draw: Draw) -> Tensor:
    """The same routes, read and rotated so that the drawn sub-path is the last `length` stops: (batch, 2, V)."""
    order, via = solutions.unbind(1)
    if draw.backwards:  # a stop now starts a route where it ended one
        order, via = order.flip(1), via.roll(-1, dims=1).flip(1)
    size, device = order.shape[1], order.device
    stop = torch.arange(size, device=device)
    starts, closes = via == 1, via.roll(-1, dims=1) == 1  # the first flag is 1, so the last stop closes a route
    route = starts.cumsum(1) - 1
    first = torch.where(starts, stop, 0).cummax(1).values
    last = torch.where(closes, stop, size - 1).flip(1).cummin(1).values.flip(1)
    turned = torch.from_numpy(draw.turned).to(device).gather(1, route)
    order = order.gather(1, torch.where(turned, first + last - stop, stop))
    routes = route[:, -1] + 1
    last_route = (torch.from_numpy(draw.end).to(device) * routes).long().minimum(routes - 1)
    end = (closes & (route == last_route[:, None])).int().argmax(1)
    around = (end[:, None] + 1 + stop) % size
    return torch.stack([order.gather(1, around), via.gather(1, around)], dim=1)


def loads(demand: Tensor, solutions: Tensor) -> Tensor:
    """What the vehicle has delivered on its route after each stop.

    demand (batch, V + 1) whole numbers, solutions (batch, 2, V) that start at the depot -> (batch, V)
    """
    order, via = solutions.unbind(1)
    served = demand.gather(1, order)
    total = served.cumsum(1)
    # Totals never fall, so the largest one before a start of a route is the one before the present route.
    return total - torch.where(via == 1, total - served, 0).cummax(1).values


def path_lengths(depot: Tensor, points: Tensor, via: Tensor) -> Tensor:
    """Lengths of sub-paths that end at the depot; the way to the first stop counts only if it comes from the depot.

    depot (batch, 2), points (batch, length, 2), via (batch, length) -> (batch,)
    """
    out: Tensor = (points - depot[:, None]).norm(dim=-1)
    direct = (points[:, 1:] - points[:, :-1]).norm(dim=-1)
    legs = torch.where(via[:, 1:] == 1, out[:, :-1] + out[:, 1:], direct)
    ways = torch.cat([torch.where(via[:, :1] == 1, out[:, :1], 0), legs], dim=1)
    # One after the other, so that copies of the first stop before it, which are no way, change no digit.
    return ways.cumsum(1)[:, -1] + out[:, -1]


def draw_within(seed: int, index: int, customers: int, first: int, count: int, longest: int) -> Draw:
    """As `draw`, with a length in 4..longest."""
    third = np.random.Philox(key=np.array([seed, 2 * index], dtype=np.uint64)).random_raw(3)[2]  # `draw` takes two
    length = SHORTEST + int(_unit(third) * (longest - SHORTEST + 1))
    return replace(draw(seed, index, customers, first, count), length=length)


def by_angle(coords: Tensor, solutions: Tensor) -> Tensor:
    """The same routes in the order of the angle under which the depot sees their middles, so that neighbours in the
    solution are neighbours in the plane (the published code of sit; its paper says nothing of the order).

    coords (batch, V + 1, 2), solutions (batch, 2, V) -> (batch, 2, V)
    """
    order, via = solutions.unbind(1)
    route = via.cumsum(1) - 1
    out = (coords.gather(1, order[..., None].expand(-1, -1, 2)) - coords[:, :1]).double()
    middle = torch.zeros_like(out).scatter_add_(1, route[..., None].expand(-1, -1, 2), out)  # times the route's stops
    angle = torch.atan2(middle[..., 1], middle[..., 0]).gather(1, route)
    place = angle.argsort(dim=1, stable=True)  # a route's stops have one angle, so they stay together and in order
    return torch.stack([order.gather(1, place), via.gather(1, place)], dim=1)


def by_load(demand: Tensor, solutions: Tensor) -> Tensor:
    """The same routes, the fullest first (BQ-NCO's labels).

    demand (batch, V + 1), solutions (batch, 2, V) -> (batch, 2, V)
    """
    order, via = solutions.unbind(1)
    route, served = via.cumsum(1) - 1, demand.gather(1, order)
    load = torch.zeros_like(served).scatter_add_(1, route, served).gather(1, route)
    place = load.argsort(dim=1, descending=True, stable=True)
    return torch.stack([order.gather(1, place), via.gather(1, place)], dim=1)


@dataclass(frozen=True)
class Blocks:
    """Sub-paths that share no stop, the longest first: stops first..first + size - 1 of an instance's solution.

    Each ends where a route does, and may begin inside one.
    """

    instance: Tensor  # (blocks,) int64
    first: Tensor  # (blocks,) int64
    size: Tensor  # (blocks,) int64, at least 2: of a single stop nothing can change

    def __len__(self) -> int:
        return len(self.size)


def cut_off(via: Tensor, length: int, most: int | None = None) -> Blocks:
    """Blocks of `length` stops from the beginning on, each without the route that goes on behind it (sit, B.3).

    via (batch, V); of a solution, floor(V / length) or `most`, less those that lie within one route.
    """
    batch, stops = via.shape
    first = length * torch.arange(min(stops // length, most or stops), device=via.device).expand(batch, -1)
    size = _last_ends(via).gather(1, first + length - 1) - first + 1
    return _longest_first(first, size)


def from_the_end(via: Tensor, length: int, most: int | None = None) -> Blocks:
    """Blocks of exactly `length` stops, from the end backwards, each up to the end of a route: the published code's.

    Between two blocks at least one stop is left out, at most a route.  (There all instances of a batch get as many
    as the one with the fewest; here each gets what it holds, so that batches may be split.)  via (batch, V)
    """
    batch, stops = via.shape
    ends = _last_ends(via)
    first = torch.full((batch,), stops - length, device=via.device)
    firsts = []
    for _ in range(min(stops // length, most or stops)):
        firsts.append(first)
        behind = ends.gather(1, (first - 2).clamp(min=0)[:, None])[:, 0]
        first = torch.where(first >= 2, behind - length + 1, -1)
    starts = torch.stack(firsts, dim=1)
    return _longest_first(starts, torch.where(starts >= 0, length, 0))


def _last_ends(via: Tensor) -> Tensor:
    """The last stop up to each, itself included, that ends a route, -1 before the first: flags (batch, V) -> same."""
    stop = torch.arange(via.shape[1], device=via.device)
    closes = torch.cat([via[:, 1:] == 1, torch.ones_like(via[:, :1], dtype=torch.bool)], dim=1)
    return torch.where(closes, stop, -1).cummax(1).values


def _longest_first(first: Tensor, size: Tensor) -> Blocks:
    """first and size (batch, blocks) as one list, without what is shorter than 2."""
    instance, block = (size >= 2).nonzero(as_tuple=True)
    first, size = first[instance, block], size[instance, block]
    order = size.argsort(descending=True, stable=True)
    return Blocks(instance[order], first[order], size[order])
