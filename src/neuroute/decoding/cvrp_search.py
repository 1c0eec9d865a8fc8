"""Searches for the CVRP: beams; re-construction of pieces by networks of paths, of routes by those of many starts.

A piece ends where a route does, begins anywhere, and is rebuilt from its first stop, which stays as it is reached, with
what is then in the vehicle: one at a time in every solution (LEHD's RRC), or many at once (sit's PRC).  Networks of
many starts rebuild whole routes that lie together, as a smaller CVRP.  Either way, merged solutions are feasible.

Between a group and its surroundings a local search descends (docs/measured/checks/solve_settings.csv).
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.decoding.cvrp import CVRP, CvrpBatch, Decide, complete_routes, decide_for
from neuroute.decoding.decode import Search, blocks_per_batch
from neuroute.decoding.multi_start import check_starts, multi_start, starts_of
from neuroute.decoding.sampling import RoutePrefixes, search_beams
from neuroute.networks.base import MultiStartNetwork, PathNetwork, RoutingNetwork
from neuroute.problems.cvrp_sub_paths import (
    Blocks,
    arranged,
    by_angle,
    cut_off,
    draw,
    draw_within,
    from_the_end,
    loads,
    path_lengths,
)
from neuroute.problems.longest import longest_sub_path
from neuroute.problems.vrp import Vrp, from_routes, lengths, to_routes
from neuroute.solvers import pyvrp
from neuroute.solvers.base import on_vrp_grid
from neuroute.specs.objects import Decoding

FEWEST = 2  # routes of a group
IMAGES = 8
AROUND = 100  # customers of the routes nearest to it, which the local search moves


def rebuild_groups(
    net: MultiStartNetwork,
    batch: CvrpBatch,
    solutions: Tensor,
    customers: int,
    seed: int,
    first: int,
    iterations: range,
    memory_gb: float,
) -> Iterator[Tensor]:
    """Yield the solutions (batch, 2, V) after each iteration, nowhere longer than before it.

    What an instance draws depends on the seed, its number (first, first + 1, ...) and the iteration's.

    An iteration rebuilds one group of each solution's routes: those that pass nearest to a random customer, of up to
    so many customers, but two routes at least.  The network sees the group in the unit square, in eight random images,
    and starts at each customer of each.  A local search goes over its routes and those around it.
    """
    instances, rows = batch.instances(), solutions.cpu().numpy()
    for number in iterations:
        rebuilt = []
        for row, solution in enumerate(rows):
            rng = np.random.default_rng((seed, first + row, number))
            instance = instances[row : row + 1]
            points, routes = instance.coords[0].astype(np.float64), to_routes(solution)
            away = np.linalg.norm(points - points[rng.integers(1, len(points))], axis=1)
            order = np.argsort([away[route].min() for route in routes], kind="stable")
            served = np.cumsum([len(routes[route]) for route in order])
            size = max(FEWEST, int(np.searchsorted(served, customers, side="right")))
            wide = max(size, int(np.searchsorted(served, AROUND, side="right")))
            group, around, others = np.split(order, [size, wide])
            nodes = np.array([0, *(customer for route in group for customer in routes[route])])
            low, high = points[nodes].min(axis=0), points[nodes].max(axis=0)
            square = ((points[nodes] - low) / ((high - low).max() or 1.0)).astype(np.float32)
            smaller = Vrp(square[None], instance.demand[:, nodes], instance.capacity)
            draw = int(rng.integers(2**32))
            shortest = multi_start(CVRP, net, smaller, images=IMAGES, draw=draw, memory_gb=memory_gb)[0].numpy()
            by_network = [nodes[route].tolist() for route in to_routes(shortest)]
            near = descend(instance, [*by_network, *(routes[route] for route in around)], draw)
            changed = from_routes([*(routes[route] for route in others), *near])
            before, after = lengths(instance[np.zeros(2, dtype=np.int64)], np.stack([solution, changed]))
            rebuilt.append(changed if after < before else solution)
        rows = np.stack(rebuilt)
        yield torch.from_numpy(rows).to(solutions.device)


def descend(instance: Vrp, routes: list[list[int]], seed: int) -> list[list[int]]:
    """Return some of an instance's routes after a local search among their customers."""
    nodes = np.array([0, *(customer for route in routes for customer in route)])
    place = {int(node): i for i, node in enumerate(nodes)}
    part = on_vrp_grid(Vrp(instance.coords[:, nodes], instance.demand[:, nodes], instance.capacity))
    shorter = pyvrp.descend(part, [[place[customer] for customer in route] for route in routes], seed)
    return [nodes[route].tolist() for route in shorter]


Rule = Literal["cut-off", "from-the-end"]
RULES = {"cut-off": cut_off, "from-the-end": from_the_end}  # the paper's, the published code's
Encode = Callable[[Tensor, Tensor], Tensor]


def prc(
    decide_for: Callable[[int], Decide],
    encode: Encode,
    instances: CvrpBatch,
    solutions: Tensor,
    iterations: int,
    *,
    rule: Rule = "cut-off",
    longest: int | None = None,
    most_blocks: int | None = None,
    blocks_per_batch: Callable[[int], int] | None = None,
    seed: int = 0,
    first: int = 0,
    iterations_before: int = 0,
) -> Iterator[Tensor]:
    """Yields the solutions (batch, 2, V) after each iteration, nowhere longer than before it (sit, 4.3, B.3).

    Each iteration orders the routes by angle around the depot, reads all of them, and each, backwards with probability
    1/2, begins with a random one, draws a length from 4 to `longest` (None: 1000, or V where that is less) for the
    whole batch, and cuts the solutions into pieces by the `rule` (`cvrp_sub_paths`), at most `most_blocks` an instance
    (None: no limit).  The network sees the depot and a piece's customers; what is strictly shorter is kept.

    `encode(coords (pieces, 1 + m, 2), shares (pieces, 1 + m))`, depot first, gives rows; `decide_for(m)` decides on
    pieces of m customers or somewhat fewer.  All pieces are one batch, taken `blocks_per_batch(m)` at a time (None:
    all).  Draws depend on the seed and on an instance's number, of which the batch's first is `first`, so no way of
    splitting changes anything.  With `iterations_before`, `solutions` are those after as many iterations of this seed,
    and the others follow.  Raises NeurouteError for a `longest` below 4 or above V.
    """
    batch, _, customers = solutions.shape
    longest, cut = longest_sub_path(longest, customers), RULES[rule]

    def rounds() -> Iterator[Tensor]:
        now = solutions
        for index in range(iterations_before, iterations):
            draw_now = draw_within(seed, index, customers, first, batch, longest)
            now = arranged(by_angle(instances.coords, now), draw_now)
            pieces = cut(now[:, 1], draw_now.length, most_blocks)
            if len(pieces):
                size = blocks_per_batch(draw_now.length) if blocks_per_batch else len(pieces)
                now = rebuild(decide_for(draw_now.length), encode, instances, now, pieces, size)
            yield now

    return rounds()


def rrc(
    decide_for: Callable[[int], Decide],
    encode: Encode,
    instances: CvrpBatch,
    solutions: Tensor,
    iterations: int,
    *,
    longest: int | None = None,
    seed: int = 0,
    first: int = 0,
    iterations_before: int = 0,
) -> Iterator[Tensor]:
    """Yields the solutions (batch, 2, V) after each iteration, nowhere longer than before it (LEHD).

    Each iteration draws a length (4..V, or to `longest`) for the whole batch and a sub-path of it for each instance,
    keeps the first stop and how it is reached, rebuilds the rest greedily, and accepts what is strictly shorter.  The
    rest as for `prc`.
    """
    batch, _, customers = solutions.shape
    every, most = torch.arange(batch, device=solutions.device), longest and longest_sub_path(longest, customers)
    for index in range(iterations_before, iterations):
        which = seed, index, customers, first, batch
        draw_now = draw_within(*which, most) if most else draw(*which)
        length = torch.full_like(every, draw_now.length)
        pieces = Blocks(every, customers - length, length)  # a piece ends where the solution does
        solutions = arranged(solutions, draw_now)
        solutions = rebuild(decide_for(draw_now.length), encode, instances, solutions, pieces, batch)
        yield solutions


@torch.no_grad()
def rebuild(
    decide: Decide, encode: Encode, instances: CvrpBatch, solutions: Tensor, blocks: Blocks, batch_size: int
) -> Tensor:
    """solutions (batch, 2, V) with each of the blocks rebuilt where that makes it shorter."""
    delivered, share = loads(instances.demand, solutions), instances.share
    order, via = (row.clone() for row in solutions.unbind(1))
    parts = (a.split(batch_size) for a in (blocks.instance[:, None], blocks.first[:, None], blocks.size[:, None]))
    for instance, first, size in zip(*parts, strict=True):
        sizes = size[:, 0].tolist()
        longest = sizes[0]
        # Pieces end in the last column.  Shorter ones begin with copies of their first stop, which is never rebuilt.
        place = torch.arange(longest, device=size.device) - (longest - size)
        stop = first + place.clamp(min=0)
        nodes, flags = order[instance, stop], torch.where(place > 0, via[instance, stop], 0)
        rows = _rows(encode, instances.coords, share, instance, nodes, sizes)
        depot = torch.zeros_like(nodes[:, :1])
        demand = instances.demand[instance, torch.cat([nodes, depot], dim=1)]
        capacity = instances.capacity[instance[:, 0]]
        remaining = capacity - delivered[instance, first][:, 0]
        places, new_flags = complete_routes(decide, rows, demand, capacity, remaining, sizes)
        new = nodes.gather(1, places)
        points, home = instances.coords[instance, nodes].double(), instances.coords[instance[:, 0], 0].double()
        before = path_lengths(home, points, flags)
        after = path_lengths(home, instances.coords[instance, new].double(), new_flags)
        shorter = (after < before)[:, None]
        order[instance, stop] = torch.where(shorter, new, nodes)
        via[instance, stop] = torch.where(shorter & (place > 0), new_flags, via[instance, stop])
    return torch.stack([order, via], dim=1)


def _rows(encode: Encode, coords: Tensor, share: Tensor, instance: Tensor, nodes: Tensor, sizes: list[int]) -> Tensor:
    """Rows (pieces, longest + 1, E) of [first stop, others..., depot], aligned at the depot.

    instance (pieces, 1), nodes (pieces, longest).  An encoder may mix a piece's nodes, so pieces of one size at a time.
    """
    rows, begin = None, 0
    while begin < len(sizes):
        size = sizes[begin]
        end = begin + sizes.count(size)
        path = torch.nn.functional.pad(nodes[begin:end, -size:], (1, 0))  # the depot, 0, comes first
        who = instance[begin:end]
        encoded = encode(coords[who, path], share[who, path])
        if rows is None:
            rows = encoded.new_zeros(len(sizes), sizes[0] + 1, encoded.shape[-1])
        rows[begin:end, -size - 1 : -1], rows[begin:end, -1] = encoded[:, 1:], encoded[:, 0]
        begin = end
    assert rows is not None
    return rows


class CvrpSearch(Search[CvrpBatch]):
    environment = CVRP

    def check(self, net: RoutingNetwork, decoding: Decoding, *, improves: bool = False) -> None:
        check_starts(net, decoding)
        if net.multi_start and (improves or decoding.method != "greedy"):
            raise NeurouteError(
                f"{type(net).__name__}: re-construction and beam search of the CVRP need a path network, such as LEHD; "
                "decode greedily or by multistart, or give `seconds`"
            )

    def search_beams(self, net: PathNetwork, batch: CvrpBatch, decoding: Decoding, first: int) -> Tensor:
        decide, nodes = decide_for(net, decoding, batch.coords.shape[1] - 1), net.encode(batch.coords, batch.share)
        prefixes = RoutePrefixes(decide, nodes, batch.demand, batch.capacity)
        return search_beams(prefixes, batch.lengths, decoding.beam)[0]

    def start_from_many(self, net: Any, batch: CvrpBatch, decoding: Decoding, memory_gb: float) -> Tensor | None:
        if not net.multi_start:
            return None
        best = multi_start(CVRP, net, batch.instances(), starts_of(decoding), memory_gb=memory_gb)
        return best.to(batch.coords.device)

    def reconstruct(
        self,
        net: RoutingNetwork,
        batch: CvrpBatch,
        solutions: Tensor,
        decoding: Decoding,
        memory_gb: float,
        *,
        seed: int = 0,
        first: int = 0,
        iterations_before: int = 0,
    ) -> Iterator[Tensor]:
        if isinstance(net, MultiStartNetwork):
            customers = decoding.longest or solutions.shape[-1]
            iterations = range(iterations_before, iterations_before + decoding.iterations)
            return rebuild_groups(net, batch, solutions, customers, seed, first, iterations, memory_gb)
        self.check(net, decoding, improves=True)
        paths = self.path_network(net)

        def decide(customers: int) -> Decide:
            return decide_for(paths, decoding, max(customers, paths.train_nodes))

        what = (decide, paths.encode, batch, solutions, decoding.iterations)
        if decoding.method == "rrc":
            return rrc(*what, longest=decoding.longest, seed=seed, first=first, iterations_before=iterations_before)
        return prc(
            *what,
            rule=decoding.rule,
            longest=decoding.longest,
            most_blocks=decoding.most_blocks,
            blocks_per_batch=partial(blocks_per_batch, paths, memory_gb),
            seed=seed,
            first=first,
            iterations_before=iterations_before,
        )


SEARCH = CvrpSearch()
