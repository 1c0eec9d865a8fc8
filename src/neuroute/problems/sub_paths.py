"""Sub-paths of tours: the piece that training learns from and that re-construction rebuilds."""

import torch
from torch import Tensor

from neuroute.problems.longest import SHORTEST


def draw(generator: torch.Generator, nodes: int) -> tuple[int, int, bool]:
    """(start, length, reversed), shared by the whole batch: start in 0..n-1, length in 4..n, both inclusive."""
    return draw_within(generator, nodes, nodes)


def draw_suffix(generator: torch.Generator, nodes: int) -> tuple[int, int, bool]:
    """(start, length, False): the last 3..n rows of the closed tour, which ends on its first stop (BQ-NCO)."""
    length = int(torch.randint(3, nodes + 1, (), generator=generator))
    return nodes + 1 - length, length, False


def cut(coords: Tensor, tours: Tensor, start: int, length: int, backwards: bool) -> Tensor:
    """The coordinates of `length` consecutive stops of each cyclic tour, in visiting order.

    coords (batch, n, 2), tours (batch, n) -> (batch, length, 2)
    """
    stops = torch.arange(start, start + length, device=tours.device) % tours.shape[1]
    path = tours[:, stops.flip(0) if backwards else stops]
    return coords.gather(1, path[..., None].expand(-1, -1, coords.shape[-1]))


def draw_pairs(generator: torch.Generator, instances: int, nodes: int) -> tuple[Tensor, Tensor, Tensor]:
    """A path of its own for each instance, longest first: start, length and reversed, each (instances,).

    Start in 0..n-1, length in 4..n + 1, both inclusive; n + 1 stops are the closed tour.
    """
    start = torch.randint(nodes, (instances,), generator=generator)
    length = torch.randint(4, nodes + 2, (instances,), generator=generator)
    backwards = torch.randint(2, (instances,), generator=generator).bool()
    return start, length.sort(descending=True).values, backwards


def cut_pairs(
    coords: Tensor, tours: Tensor, start: Tensor, length: Tensor, backwards: Tensor, rows: int | None = None
) -> Tensor:
    """The coordinates of the drawn stops of each cyclic tour, in visiting order, the last one in the last row.

    coords (batch, n, 2), tours (batch, n), the rest (batch,) as drawn on the host -> (batch, rows, 2), by default as
    many rows as the longest has; a shorter path's rows before the last repeat stops of the tour that are not on it.
    """
    rows = rows or int(length.max())
    start, length, backwards = (values.to(tours.device) for values in (start, length, backwards))
    place = torch.arange(rows, device=tours.device).repeat(len(tours), 1)
    place[:, -1] = length - 1
    stops = (start[:, None] + torch.where(backwards, -1, 1)[:, None] * place) % tours.shape[1]
    path = tours.gather(1, stops)
    return coords.gather(1, path[..., None].expand(-1, -1, coords.shape[-1]))


def draw_within(generator: torch.Generator, nodes: int, longest: int) -> tuple[int, int, bool]:
    """As `draw`, with a length in 4..longest."""
    start = int(torch.randint(nodes, (), generator=generator))
    length = int(torch.randint(SHORTEST, longest + 1, (), generator=generator))
    return start, length, bool(torch.randint(2, (), generator=generator))


def path_lengths(points: Tensor) -> Tensor:
    """Lengths of open paths, (batch, length, 2) -> (batch,): where the two ends stay, what closes a tour cancels."""
    legs: Tensor = (points[:, 1:] - points[:, :-1]).norm(dim=-1)
    return legs.sum(-1)
