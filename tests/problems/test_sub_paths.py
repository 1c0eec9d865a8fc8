"""Paths of their own for each instance of a batch: what is drawn, and what is cut from a tour."""

import torch
from torch import Tensor

from neuroute.problems.sub_paths import cut, cut_pairs, draw_pairs

N = 9


def drawn(instances: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    return draw_pairs(torch.Generator().manual_seed(seed), instances, N)


def test_every_length_start_and_direction_is_drawn_alike() -> None:
    """Lengths 4..n + 1, starts 0..n - 1, two directions: uniform, by five standard deviations, and independent."""
    count = 20_000
    start, length, backwards = drawn(count)
    for values, choices in ((start, range(N)), (length, range(4, N + 2)), (backwards.long(), range(2))):
        found = torch.bincount(values, minlength=max(choices) + 1)
        assert found.sum() == found[list(choices)].sum() == count
        p = 1 / len(choices)
        assert (found[list(choices)] - count * p).abs().max() < 5 * (count * p * (1 - p)) ** 0.5
    independent = torch.corrcoef(torch.stack([start, length, backwards]).double()) - torch.eye(3)
    assert independent.abs().max() < 5 / count**0.5


def test_the_longest_come_first_and_equal_seeds_draw_equally() -> None:
    start, length, backwards = drawn(64)
    assert (length[1:] <= length[:-1]).all()
    for a, b in zip(drawn(64), (start, length, backwards), strict=True):
        assert torch.equal(a, b)
    assert not torch.equal(drawn(64, seed=1)[0], start)


def test_paths_follow_their_tours() -> None:
    """Stop by stop, as `cut` gives them of each instance alone; the last row is the destination, whatever is before it.

    N + 1 rows are the closed tour.
    """
    count = 200
    generator = torch.Generator().manual_seed(3)
    coords = torch.rand(count, N, 2, generator=generator)
    tours = torch.stack([torch.randperm(N, generator=generator) for _ in range(count)])
    start, length, backwards = drawn(count)
    assert {N, N + 1} <= set(length.tolist())
    path = cut_pairs(coords, tours, start, length, backwards)
    assert path.shape == (count, int(length.max()), 2)
    for i in range(count):
        n, s = int(length[i]), int(start[i])
        first = s - n + 1 if backwards[i] else s  # `cut` takes the stops first..first + n - 1, then turns them round
        alone = cut(coords[i : i + 1], tours[i : i + 1], first, n, bool(backwards[i]))[0]
        stops = coords[i, [int(tours[i, (s - k if backwards[i] else s + k) % N]) for k in range(n)]]
        assert torch.equal(alone, stops)
        assert torch.equal(path[i, : n - 1], stops[:-1])
        assert torch.equal(path[i, -1], stops[-1])
