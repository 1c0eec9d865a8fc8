"""Parallel local re-construction for the CVRP: many pieces of every solution at once (sit, Section 4.3, Appendix B.3).

A piece ends where a route does, begins anywhere, and is rebuilt from its first stop, which stays as it is reached, with
what is then in the vehicle.  So whatever is left of the pieces' lengths, merged solutions are feasible.
"""

from collections.abc import Callable, Iterator
from typing import Literal

import torch
from torch import Tensor

from neuroute.decoding.cvrp_paths import Batch, Decide
from neuroute.problems.cvrp_sub_paths import (
    Blocks,
    arranged,
    by_angle,
    cut_off,
    draw_within,
    from_the_end,
    loads,
    path_lengths,
)
from neuroute.problems.longest import longest_sub_path

Rule = Literal["cut-off", "from-the-end"]
RULES = {"cut-off": cut_off, "from-the-end": from_the_end}  # the paper's, the published code's
Encode = Callable[[Tensor, Tensor], Tensor]


def prc(
    decide_for: Callable[[int], Decide],
    encode: Encode,
    instances: Batch,
    solutions: Tensor,
    iterations: int,
    *,
    rule: Rule = "cut-off",
    longest: int | None = None,
    most_blocks: int | None = None,
    at_once: Callable[[int], int] | None = None,
    seed: int = 0,
    first: int = 0,
    done: int = 0,
) -> Iterator[Tensor]:
    """Yields the solutions (batch, 2, V) after each iteration, nowhere longer than before it.

    Each iteration orders the routes by angle around the depot, reads all of them, and each, backwards with probability
    1/2, begins with a random one, draws a length from 4 to `longest` (None: 1000, or V where that is less) for the
    whole batch, and cuts the solutions into pieces by the `rule` (`cvrp_sub_paths`), at most `most_blocks` an instance
    (None: no limit).  The network sees the depot and a piece's customers; what is strictly shorter is kept.

    `encode(coords (pieces, 1 + m, 2), shares (pieces, 1 + m))`, depot first, gives rows; `decide_for(m)` decides on
    pieces of m customers or somewhat fewer.  All pieces are one batch, taken `at_once(m)` at a time (None: all).  Draws
    depend on the seed and on an instance's number, of which the batch's first is `first`, so no way of splitting
    changes anything.  With `done`, `solutions` are those after as many iterations of this seed, and the others follow.
    Raises NeurouteError for a `longest` below 4 or above V.
    """
    batch, _, customers = solutions.shape
    longest, cut = longest_sub_path(longest, customers), RULES[rule]

    def rounds() -> Iterator[Tensor]:
        now = solutions
        for index in range(done, iterations):
            drawn = draw_within(seed, index, customers, first, batch, longest)
            now = arranged(by_angle(instances.coords, now), drawn)
            pieces = cut(now[:, 1], drawn.length, most_blocks)
            if len(pieces):
                parts = at_once(drawn.length) if at_once else len(pieces)
                now = rebuilt(decide_for(drawn.length), encode, instances, now, pieces, parts)
            yield now

    return rounds()


@torch.no_grad()
def rebuilt(
    decide: Decide, encode: Encode, instances: Batch, solutions: Tensor, blocks: Blocks, at_once: int
) -> Tensor:
    """solutions (batch, 2, V) with each of the blocks rebuilt where that makes it shorter."""
    delivered, share = loads(instances.demand, solutions), instances.share
    order, via = (row.clone() for row in solutions.unbind(1))
    parts = (a.split(at_once) for a in (blocks.instance[:, None], blocks.first[:, None], blocks.size[:, None]))
    for instance, first, size in zip(*parts, strict=True):
        longest = int(size[0])
        # Pieces end in the last column.  Shorter ones begin with copies of their first stop, which is never rebuilt.
        place = torch.arange(longest, device=size.device) - (longest - size)
        stop = first + place.clamp(min=0)
        nodes, flags = order[instance, stop], torch.where(place > 0, via[instance, stop], 0)
        sizes = size[:, 0].tolist()
        rows = _rows(encode, instances.coords, share, instance, nodes, sizes)
        depot = torch.zeros_like(nodes[:, :1])
        demand = instances.demand[instance, torch.cat([nodes, depot], dim=1)]
        capacity = instances.capacity[instance[:, 0]]
        left = capacity - delivered[instance, first][:, 0]
        chosen, new_flags = complete(decide, rows, demand, capacity, left, sizes)
        new = nodes.gather(1, chosen)
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


@torch.inference_mode()
def complete(
    decide: Decide, rows: Tensor, demand: Tensor, capacity: Tensor, left: Tensor, sizes: list[int]
) -> tuple[Tensor, Tensor]:
    """`cvrp_paths.complete` for paths of several sizes: nothing is padded or masked, whatever the network.

    rows (paths, longest + 1, E) and demand (paths, longest + 1): of path i, the last sizes[i] + 1 columns are
    [current, available..., depot], and the longest path comes first; both are overwritten.  capacity and left (paths,).
    Paths of few stops wait until the longer ones have no more left, so that at each step all candidates count alike.
    Returns positions in `rows` and flags, both int64 (paths, longest); up to a path's first stop they are their own.
    """
    paths, m = demand.shape
    left, via = left.clone(), torch.zeros_like(demand)
    order = torch.arange(m, device=rows.device).repeat(paths, 1)
    index = torch.arange(paths, device=rows.device)
    begun = 0
    for step in range(m - 2):
        while begun < paths and sizes[begun] >= m - 1 - step:
            begun += 1
        on, path = slice(begun), index[:begun]
        share = (left[on] / capacity[on]).to(rows.dtype)
        best = decide(rows[on, step:], share).flatten(1).argmax(1)
        chosen, flag = best // 2 + (step + 1), best % 2
        for array in (rows, demand, order):
            moved = array[on, step + 1].clone()
            array[on, step + 1] = array[path, chosen]
            array[path, chosen] = moved
        served = demand[on, step + 1]
        flag = torch.where(served > left[on], 1, flag)
        left[on] = torch.where(flag == 1, capacity[on], left[on]) - served
        via[on, step + 1] = flag
    return order[:, :-1], via[:, :-1]
