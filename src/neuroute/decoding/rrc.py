"""Random re-construct: improve tours by rebuilding random segments of them (LEHD's RRC), batched over instances."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from neuroute.decoding.greedy import Decide, complete_paths
from neuroute.problems.sub_paths import draw


def reconstruct(
    decide_for: Callable[[int], Decide],
    encode: Callable[[Tensor], Tensor],
    coords: Tensor,
    tours: Tensor,
    iterations: int,
    seed: int = 0,
) -> Iterator[Tensor]:
    """Yields the tours (batch, n) after each iteration, nowhere longer than before it.

    coords (batch, n, 2); `encode` gives the rows of a segment's nodes from their coordinates, and `decide_for(m)`
    decides on paths of m nodes.  Each iteration draws one segment (start, 4..n nodes, direction) for the whole batch,
    rebuilds it greedily between its two ends, and keeps the new order where it is strictly shorter.  The draws depend
    on the seed alone, so splitting a batch changes nothing.
    """
    generator = torch.Generator().manual_seed(seed)
    batch, n = tours.shape
    instance = torch.arange(batch, device=tours.device)[:, None]
    points = coords.double()
    for _ in range(iterations):
        start, length, backwards = draw(generator, n)
        tours = (tours.flip(1) if backwards else tours).roll(-start, dims=1)
        old = tours[:, :length]
        rows = encode(coords[instance, old])  # of the segment's nodes only, as in training
        new = old.gather(1, complete_paths(decide_for(length), rows))
        shorter = _path_length(points[instance, new]) < _path_length(points[instance, old])
        tours = torch.cat([torch.where(shorter[:, None], new, old), tours[:, length:]], dim=1)
        yield tours


def _path_length(points: Tensor) -> Tensor:
    """(batch, length, 2) -> (batch,), open paths: the two ends stay, so what closes the tour cancels."""
    return (points[:, 1:] - points[:, :-1]).norm(dim=-1).sum(-1)
