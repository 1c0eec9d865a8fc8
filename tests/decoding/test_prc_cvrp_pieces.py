"""The pieces that PRC cuts a CVRP's solutions into: as printed and as published, apart, and by which routes they go."""

import math

import numpy as np
import pytest
import torch
from random_cvrp import random_instances

from neuroute.decoding.prc.cvrp import RULES
from neuroute.problems.cvrp_sub_paths import Blocks, by_angle, cut_off, draw, draw_within, from_the_end
from neuroute.problems.vrp import to_routes


def test_the_papers_example_of_pieces() -> None:
    """B.3: of (0, 1, 2, 3, 4, 5, 0, 6, 7, 0, 8, 9, 10, 0), fours are 1-4, which lie within a route, and 5, 6, 7 | 8."""
    via = torch.tensor([[1, 0, 0, 0, 0, 1, 0, 1, 0, 0]])
    found = cut_off(via, 4)
    assert (found.instance.tolist(), found.first.tolist(), found.size.tolist()) == ([0], [4], [3])
    both = cut_off(torch.cat([via, torch.ones_like(via)]), 4)
    assert both.instance.tolist() == [1, 1, 0]
    assert both.first.tolist() == [0, 4, 4]
    assert both.size.tolist() == [4, 4, 3]
    assert len(cut_off(via, 4, most=1)) == 0


def test_the_published_pieces_end_with_routes_and_skip_an_adjacent_one() -> None:
    via = torch.tensor([[1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 0]])  # routes of 3, 2, 3 and 3 stops
    assert from_the_end(via, 4).first.tolist() == [7, 1]  # the last ends before 7 are 4 and 2: 4 - 4 + 1
    assert from_the_end(via, 3).first.tolist() == [8, 2]  # 7 is adjacent, so 4; then nothing ends before 2 with room
    assert from_the_end(via, 4, most=1).first.tolist() == [7]
    assert from_the_end(via, 11).first.tolist() == [0]


@pytest.mark.parametrize("rule", RULES)
def test_pieces_share_no_stop_and_end_where_routes_do(rule: str) -> None:
    for seed in range(50):
        customers = 4 + seed % 20
        _, solutions = random_instances(20, customers, seed)
        via, length = solutions[:, 1], 4 + seed % (customers - 3)
        found: Blocks = RULES[rule](via, length)
        assert found.size.tolist() == sorted(found.size.tolist(), reverse=True)
        taken = torch.zeros_like(via)
        for i, first, size in zip(found.instance, found.first, found.size, strict=True):
            taken[i, first : first + size] += 1
            assert 2 <= size <= length
            assert rule == "cut-off" or size == length
            assert first + size == customers or via[i, first + size] == 1
            if rule == "cut-off":
                assert first % length == 0
                assert not via[i, first + size + 1 : first + length].any()
        assert taken.max() <= 1


def test_routes_are_ordered_by_angle_and_otherwise_untouched() -> None:
    instances, solutions = random_instances(20, 25, 3, grid=False)
    found = by_angle(torch.from_numpy(instances.coords), solutions)
    for i in range(20):
        before, after = to_routes(solutions[i].numpy()), to_routes(found[i].numpy())
        assert sorted(before) == sorted(after)
        middles = [instances.coords[i, route].mean(0) - instances.coords[i, 0] for route in after]
        angles = [math.atan2(y, x) for x, y in middles]
        assert angles == sorted(angles)


def test_lengths_are_drawn_alike_and_the_rest_as_for_re_construct() -> None:
    count = 10_000
    drawn = [draw_within(1, i, 30, 0, 1, 9).length for i in range(count)]
    found = np.bincount(drawn, minlength=10)
    assert found[4:].sum() == count
    assert np.abs(found[4:] - count / 6).max() < 5 * (count * 5 / 36) ** 0.5
    one, other = draw_within(1, 5, 30, 2, 4, 9), draw(1, 5, 30, 2, 4)
    assert one.backwards == other.backwards
    np.testing.assert_array_equal(one.turned, other.turned)
    np.testing.assert_array_equal(one.end, other.end)
