"""PRC for the TSP: never worse, never broken, equal to a loop over instances and blocks."""

import itertools
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from refusals import one_line
from torch import Tensor

from networks import make
from neuroute.decoding.greedy import complete_paths
from neuroute.decoding.tsp import SEARCH, TspBatch, prc
from neuroute.networks.lehd import Lehd
from neuroute.problems.longest import longest_sub_path
from neuroute.problems.sub_paths import draw, draw_within
from neuroute.specs.objects import Decoding


@pytest.fixture
def net() -> Lehd:
    return make("lehd", train_nodes=10)


def random_instances(batch: int, n: int, seed: int) -> tuple[Tensor, Tensor]:
    """Coordinates, some of them on a coarse grid, so that nodes and lengths coincide; and random tours."""
    rng = np.random.default_rng(seed)
    coords = rng.random((batch, n, 2))
    coords[::2] = np.round(coords[::2] * 3) / 3
    return torch.from_numpy(coords), torch.from_numpy(rng.permuted(np.tile(np.arange(n), (batch, 1)), axis=1))


def length_of(coords: Tensor, tour: Tensor) -> float:
    """By Python's complex numbers, edge by edge."""
    stops = [complex(*point) for point in coords[tour].tolist()]
    return sum(abs(a - b) for a, b in zip(stops, [*stops[1:], stops[0]], strict=True))


def whims(seed: int):
    """Decisions by chance, to the nearest, and by perverse rules: to the farthest node, all alike, no numbers."""
    generator = torch.Generator().manual_seed(seed)

    def decide(rows: Tensor) -> Tensor:
        way = (rows[:, 1:-1] - rows[:, :1]).norm(dim=-1)
        chance = torch.rand(way.shape, generator=generator)
        kinds = (way, -way, -way, torch.zeros_like(way), torch.full_like(way, torch.nan), chance, chance, chance)
        return kinds[int(torch.randint(len(kinds), (), generator=generator))]

    return decide


@pytest.mark.parametrize("seed", range(60))
def test_never_worse_and_never_broken_whatever_is_decided(seed: int) -> None:
    """30 x 40 instances x 10 iterations, of 4..30 nodes."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 31))
    coords, tours = random_instances(40, n, seed)
    longest = [None, 4, n][seed % 3]
    decide = whims(seed)
    found = prc(lambda m: decide, lambda c: c, coords, tours, 10, longest=longest, seed=seed)
    before = [length_of(c, t) for c, t in zip(coords, tours, strict=True)]
    first = before
    for now in found:
        assert (now.dtype, now.shape) == (torch.int64, tours.shape)
        assert all(sorted(tour) == list(range(n)) for tour in now.tolist())
        after = [length_of(c, t) for c, t in zip(coords, now, strict=True)]
        assert all(a <= b + 1e-12 for a, b in zip(after, before, strict=True))
        before = after
    assert sum(before) < sum(first)


def plain(
    net: Lehd, coords: Tensor, tours: Tensor, iterations: int, longest: int, seed: int, blocks: int
) -> list[list[int]]:
    """Instance by instance, block by block, on lists."""
    generator, n = torch.Generator().manual_seed(seed), tours.shape[1]
    now = tours.tolist()
    for _ in range(iterations):
        start, length, backwards = draw_within(generator, n, longest)
        for i in range(len(now)):
            tour = now[i][::-1] if backwards else now[i]
            tour = tour[start:] + tour[:start]
            for block in range(min(n // length, blocks)):
                old = tour[block * length : (block + 1) * length]
                order = complete_paths(net.decide, net.encode(coords[i, old][None]))[0].tolist()
                new = [old[k] for k in order]
                ways = [sum(abs(complex(*(coords[i, a] - coords[i, b]))) for a, b in itertools.pairwise(p))
                        for p in (new, old)]  # fmt: skip
                if ways[0] < ways[1]:
                    tour[block * length : (block + 1) * length] = new
            now[i] = tour
    return now


@pytest.mark.parametrize("most", [None, 2])
def test_equals_the_loop_over_instances_and_blocks(net: Lehd, most: int | None) -> None:
    coords, tours = torch.rand(5, 23, 2).double(), torch.stack([torch.randperm(23) for _ in range(5)])
    with torch.inference_mode():
        *_, found = prc(lambda m: net.decide, net.encode, coords, tours, 12, longest=9, most_blocks=most, seed=4)
        assert found.tolist() == plain(net, coords, tours, 12, 9, 4, most or 23)
    assert not torch.equal(found, tours)


def test_random_re_construct_is_one_block_of_any_length(net: Lehd) -> None:
    """By the loop over instances: one segment of 4..n nodes of each tour an iteration (LEHD)."""
    coords, tours = torch.rand(6, 17, 2).double(), torch.stack([torch.randperm(17) for _ in range(6)])
    with torch.inference_mode():
        found = list(
            SEARCH.reconstruct(net, TspBatch(coords), tours, Decoding(method="rrc", iterations=10), 4.0, seed=5)
        )
        assert found[-1].tolist() == plain(net, coords, tours, 10, 17, 5, blocks=1)
    assert len(found) == 10
    assert not torch.equal(found[-1], tours)


def test_the_longest_sub_path_is_1000_or_all_or_what_is_stated() -> None:
    assert [longest_sub_path(None, n) for n in (20, 1000, 100_000)] == [20, 1000, 1000]
    assert longest_sub_path(20, 20) == 20
    for longest in (3, 0, -1, 21):
        with one_line(r"give 4 to 20"):
            longest_sub_path(longest, 20)


@pytest.mark.parametrize(("of", "longest"), [(draw, 12), (partial(draw_within, longest=9), 9)])
def test_lengths_starts_and_directions_are_drawn_alike(of: Any, longest: int) -> None:
    generator, count = torch.Generator().manual_seed(0), 20_000
    drawn = torch.tensor([of(generator, 12) for _ in range(count)])
    for values, choices in zip(drawn.T, (range(12), range(4, longest + 1), range(2)), strict=True):
        p = 1 / len(choices)
        found = torch.bincount(values, minlength=max(choices) + 1)
        assert found[list(choices)].sum() == count
        assert (found[list(choices)] - count * p).abs().max() < 5 * (count * p * (1 - p)) ** 0.5
