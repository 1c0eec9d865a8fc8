"""Sub-paths of tours: the piece that training learns from and that re-construction rebuilds."""

import torch
from torch import Tensor


def draw(generator: torch.Generator, nodes: int) -> tuple[int, int, bool]:
    """(start, length, reversed), shared by the whole batch: start in 0..n-1, length in 4..n, both inclusive."""
    start = int(torch.randint(nodes, (), generator=generator))
    length = int(torch.randint(4, nodes + 1, (), generator=generator))
    return start, length, bool(torch.randint(2, (), generator=generator))


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
