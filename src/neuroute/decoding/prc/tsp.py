"""Parallel local re-construction (PRC): rebuild many segments of every tour at once (sit, Section 4.3, Algorithm 3).

Random re-construct (LEHD's RRC) is the case of one block per tour and no limit to its length.
"""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from neuroute.decoding.greedy import Arrive, Decide, complete_paths
from neuroute.problems.longest import longest_sub_path
from neuroute.problems.sub_paths import draw_within, path_lengths


def prc(
    decide_for: Callable[[int], Decide],
    encode: Callable[[Tensor], Tensor],
    coords: Tensor,
    tours: Tensor,
    iterations: int,
    *,
    longest: int | None = None,
    most_blocks: int | None = None,
    blocks_per_batch: Callable[[int], int] | None = None,
    arrive: Arrive | None = None,
    seed: int = 0,
    iterations_before: int = 0,
) -> Iterator[Tensor]:
    """Yields the tours (batch, n) after each iteration, nowhere longer than before it.

    coords (batch, n, 2); `encode` gives the rows of a block's nodes from their coordinates, which stay where they are
    in the plane, and `decide_for(m)` decides on paths of m nodes.  Each iteration draws a start, a length from 4 to
    `longest` (None: 1000, or n where that is less) and a direction for the whole batch, and cuts every tour from that
    start on into floor(n / length) blocks, of which the first `most_blocks` (None: all) are rebuilt greedily
    between their ends, and kept where strictly shorter.  What is left at the end of the tour stays.

    The blocks of all instances are one batch, taken `blocks_per_batch(m)` blocks of m nodes at a time (None: all).
    The draws depend on the lower 32 bits of the seed alone (`stream_seed`), so no way of splitting changes anything.
    With `iterations_before`, `tours` are those after as many iterations of this seed, and the others follow.  Raises
    NeurouteError for a `longest` below 4 or above n.
    """
    n = tours.shape[1]
    longest = longest_sub_path(longest, n)

    def rounds() -> Iterator[Tensor]:
        now, generator = tours, torch.Generator().manual_seed(seed)
        for iteration in range(iterations):
            start, length, backwards = draw_within(generator, n, longest)
            if iteration < iterations_before:
                continue
            now = (now.flip(1) if backwards else now).roll(-start, dims=1)
            stops = length * min(n // length, most_blocks or n)
            size = blocks_per_batch(length) if blocks_per_batch else len(now) * n
            blocks = rebuild(decide_for(length), encode, coords, now[:, :stops], length, size, arrive)
            now = torch.cat([blocks, now[:, stops:]], dim=1)
            yield now

    return rounds()


@torch.no_grad()
def rebuild(
    decide: Decide,
    encode: Callable[[Tensor], Tensor],
    coords: Tensor,
    tours: Tensor,
    length: int,
    batch_size: int,
    arrive: Arrive | None = None,
) -> Tensor:
    """The first stops of tours, (batch, blocks * length), with each block rebuilt where that makes it shorter."""
    batch, stops = tours.shape
    instance = torch.arange(batch, device=tours.device).repeat_interleave(stops // length)[:, None]
    paths = []
    for i, old in zip(instance.split(batch_size), tours.reshape(-1, length).split(batch_size), strict=True):
        new = old.gather(1, complete_paths(decide, encode(coords[i, old]), arrive=arrive))
        before, after = (path_lengths(coords[i, path].double()) for path in (old, new))
        paths.append(torch.where((after < before)[:, None], new, old))
    return torch.cat(paths).reshape(batch, stops)
