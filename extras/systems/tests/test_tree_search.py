"""Tree search, merging and 2-opt on maps of edges: moves by dense matrices of our own, and what a map may be like."""

import math
from itertools import accumulate
from typing import Any

import numpy as np
import pytest

from neuroute.core.errors import NeurouteError
from neuroute.problems.tsp import tour_length
from neuroute.solvers.registry import get
from neuroute_systems.edge_maps import tree_moves
from neuroute_systems.edge_maps.merging import merge, two_opt
from neuroute_systems.edge_maps.tree_search import Search, candidates, nearest_others, search, soft_map


def points_of(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((n, 2))


def is_tour(tour: np.ndarray, n: int) -> bool:
    return sorted(tour.tolist()) == list(range(n))


def length(coords: np.ndarray, tour: np.ndarray) -> float:
    return float(tour_length(coords, np.asarray(tour)))


class Dense:
    """One state of a search with matrices of all pairs, lists for tours, and no place for speed."""

    def __init__(self, found: Search) -> None:
        n = len(found.points)
        self.n, self.points, self.random = n, found.points, found.random.copy()
        self.weight, self.tries = np.zeros((n, n)), np.zeros((n, n), int)
        self.near = [found.edges.ends[found.edges.first[i] : found.edges.first[i + 1]].tolist() for i in range(n)]
        for i in range(n):
            span = slice(found.edges.first[i], found.edges.first[i + 1])
            self.weight[i, found.edges.ends[span]] = found.edges.weight[span]
            self.tries[i, found.edges.ends[span]] = found.edges.tries[span]
            self.weight[i, i] = found.edges.total[i] - self.weight[i].sum()  # what edges brought that are no candidates
        self.tour, self.m = found.tour.tolist(), int(found.counts[tree_moves.M])
        self.length = float(found.lengths[tree_moves.LENGTH])

    def apart(self, a: int, b: int) -> float:
        return float(np.linalg.norm(self.points[a] - self.points[b]))

    def draw(self) -> float:
        return float(tree_moves.draw(self.random))

    def act(self) -> None:
        n, place = self.n, int(self.draw() * self.n)
        path = [self.tour[(place + 1 + i) % n] for i in range(n)]  # from b to a
        gain, joined = self.apart(path[-1], path[0]), []
        self.m += 1
        for _ in range(10):
            b, shares = path[0], {}
            for c in self.near[b]:
                mean = self.weight[b].sum() / (n - 1)
                z = self.weight[b, c] / mean + math.sqrt(math.log(self.m + 1) / (self.tries[b, c] + 1))
                if c not in (path[-1], path[1]) and z >= 1:
                    shares[c] = z
            if not shares:
                return
            mark = self.draw() * sum(shares.values())
            c = next(c for c, below in zip(shares, accumulate(shares.values()), strict=True) if mark < below)
            self.tries[b, c] += 1
            self.tries[c, b] += 1
            at = path.index(c)
            gain += self.apart(path[at - 1], c) - self.apart(b, c)
            joined.append((b, c))
            path[:at] = path[:at][::-1]
            closed = gain - self.apart(path[0], path[-1])
            if closed > tree_moves.EPS:
                more = 10 * (math.exp(closed / self.length) - 1)
                for u, v in [*joined, (path[0], path[-1])]:
                    self.weight[u, v] += more
                    self.weight[v, u] += more
                self.tour, self.length = path, self.length - closed
                return


def as_cycle(tour: Any) -> list[int]:
    """From node 0, towards the smaller of its neighbours."""
    tour = list(tour)
    at = tour.index(0)
    turned = [int(i) for i in tour[at:] + tour[:at]]
    return turned if turned[1] < turned[-1] else [0, *turned[:0:-1]]


@pytest.mark.parametrize("n", [7, 30])
def test_each_action_is_that_of_dense_matrices(n: int) -> None:
    coords = points_of(n)
    found = Search(coords, *soft_map(coords), seed=3)
    found.run(0)
    dense, gains = Dense(found), 0
    for _ in range(300):
        if int(found.counts[tree_moves.FAILED]) >= tree_moves.POOL * n - 1:
            break
        # The orientation is no part of a state: the reference starts each action from the tour as it is there.
        dense.tour = found.tour.tolist()
        before = dense.length
        found.run(1)
        dense.act()
        assert as_cycle(found.tour) == as_cycle(dense.tour)
        gains += dense.length < before
        np.testing.assert_allclose(found.lengths[tree_moves.LENGTH], dense.length, rtol=1e-12)
        assert dense.length == pytest.approx(length(coords, found.tour), rel=1e-12)
        for i in range(n):
            span = slice(found.edges.first[i], found.edges.first[i + 1])
            np.testing.assert_allclose(found.edges.weight[span], dense.weight[i, found.edges.ends[span]], rtol=1e-12)
            np.testing.assert_array_equal(found.edges.tries[span], dense.tries[i, found.edges.ends[span]])
            np.testing.assert_allclose(found.edges.total[i], dense.weight[i].sum(), rtol=1e-12)
    assert found.counts[tree_moves.M] == dense.m
    assert gains or n == 7


def test_two_opt_leaves_a_node_after_its_first_exchange() -> None:
    """By lists: which exchanges are looked at, in which order, and what their edges bring to a node's total."""
    coords, n = points_of(40, 1), 40
    found = Search(coords, *soft_map(coords), seed=0)
    dense = Dense(found)
    dense.tour, dense.length = list(range(n)), length(coords, np.arange(n))
    got = tree_moves._two_opt(coords, found.edges, found.tour, found.where, found.counts, dense.length)
    improves = True
    while improves:
        improves = False
        for a in range(n):
            for c in dense.near[a]:
                b, d = (dense.tour[(dense.tour.index(node) + 1) % n] for node in (a, c))
                if c == b or d == a:
                    continue
                dense.m += 1
                dense.tries[[a, c, b, d], [c, a, d, b]] += 1
                gain = dense.apart(a, b) + dense.apart(c, d) - dense.apart(a, c) - dense.apart(b, d)
                if gain > tree_moves.EPS:
                    at = dense.tour.index(b)
                    turned = dense.tour[at:] + dense.tour[:at]
                    inside, outside = turned[: turned.index(c) + 1], turned[turned.index(c) + 1 :]
                    # The shorter side is reversed, which says what is after what from here on.
                    shorter = 2 * len(inside) <= n
                    dense.tour = inside[::-1] + outside if shorter else inside + outside[::-1]
                    more = 10 * (math.exp(gain / dense.length) - 1)
                    dense.weight[[a, c, b, d], [c, a, d, b]] += more
                    dense.length -= gain
                    improves = True
                    break
    assert as_cycle(found.tour) == as_cycle(dense.tour)
    assert found.counts[tree_moves.M] == dense.m
    assert got == pytest.approx(dense.length, rel=1e-12)
    np.testing.assert_allclose(found.edges.total, dense.weight.sum(axis=1), rtol=1e-12)


def test_candidates_are_symmetric_and_sorted() -> None:
    neighbours = np.array([[1, 2], [2, 3], [0, 1], [0, 2]])
    heat = np.array([[0.6, 0.4], [0.5, 0.5], [1.0, 0.0], [1e-4, 0.9]])
    first, ends, twin, probabilities = candidates(neighbours, heat)
    dense = np.zeros((4, 4))
    for i, j in np.ndindex(4, 2):
        dense[i, neighbours[i, j]] += heat[i, j] / 2
        dense[neighbours[i, j], i] += heat[i, j] / 2
    tails = np.repeat(np.arange(4), np.diff(first))
    assert {(int(a), int(b)) for a, b in zip(tails, ends, strict=True)} == set(
        zip(*np.nonzero(dense >= 1e-4), strict=True)
    )
    np.testing.assert_allclose(probabilities, dense[tails, ends])
    np.testing.assert_array_equal(tails[twin], ends)
    np.testing.assert_array_equal(ends[twin], tails)
    for i in range(4):
        assert (np.diff(probabilities[first[i] : first[i + 1]]) <= 0).all()


def test_a_search_goes_on_where_it_was() -> None:
    coords = points_of(40)
    together, parts = (Search(coords, *soft_map(coords), seed=1) for _ in range(2))
    together.run(5000)
    for count in (1, 3999, 1000):
        parts.run(count)
    np.testing.assert_array_equal(together.best, parts.best)
    np.testing.assert_array_equal(together.edges.tries, parts.edges.tries)
    assert is_tour(together.best, 40)
    assert length(coords, together.best) == pytest.approx(together.lengths[tree_moves.BEST], rel=1e-12)


def test_more_actions_are_no_worse_and_small_instances_are_solved() -> None:
    coords = points_of(9, 4)
    lengths = [length(coords, search(coords, *soft_map(coords), actions)) for actions in (1, 10, 100)]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[-1] == pytest.approx(length(coords, get("lkh").solve(coords, 0)), rel=1e-5)


@pytest.mark.parametrize("n", [4, 5, 60])
def test_no_time_is_a_tour_all_the_same(n: int) -> None:
    assert is_tour(search(points_of(n), *soft_map(points_of(n)), 0), n)
    assert is_tour(search(points_of(n), *soft_map(points_of(n)), 0, seconds=0.0), n)
    assert is_tour(get("softdist").variant("softdist", "solve", seconds=0.01).solve(points_of(n), 0), n)


def test_coincident_nodes() -> None:
    coords = np.repeat(points_of(7), 3, axis=0)
    for each in (coords, np.full((12, 2), 0.5)):
        nodes, apart = nearest_others(each, 5)
        assert not (nodes == np.arange(len(each))[:, None]).any()
        assert np.isfinite(apart).all()
        neighbours, heat = soft_map(each)
        np.testing.assert_allclose(heat.sum(axis=1), 1)
        for tour in (search(each, neighbours, heat, 10), merge(each, neighbours, heat), get("softdist").solve(each, 0)):
            assert is_tour(tour, len(each))


def test_maps_that_are_no_numbers_are_refused() -> None:
    coords = points_of(6)
    neighbours, heat = soft_map(coords)
    heat[2, 1] = np.nan
    for build in (lambda: search(coords, neighbours, heat, 1), lambda: merge(coords, neighbours, heat)):
        with pytest.raises(NeurouteError, match="not finite"):
            build()


def test_empty_maps_have_tours() -> None:
    coords = points_of(20)
    neighbours, heat = soft_map(coords)
    assert is_tour(search(coords, neighbours, 0 * heat, 10), 20)
    assert is_tour(merge(coords, neighbours[:, :1], 0 * heat[:, :1]), 20)


def test_merging_the_edges_of_a_tour_is_the_tour() -> None:
    tour = np.random.default_rng(1).permutation(30)
    neighbours = np.empty((30, 2), np.int64)
    neighbours[tour] = np.stack([np.roll(tour, -1), np.roll(tour, 1)], axis=1)
    assert as_cycle(merge(points_of(30), neighbours, np.ones((30, 2)))) == as_cycle(tour)
    found = search(points_of(30), neighbours, np.full((30, 2), 0.5), 0)
    assert as_cycle(found) == as_cycle(tour)


def test_merging_takes_the_best_edges_that_fit() -> None:
    """Against all pairs sorted by score, on a dense map: nothing is left to complete."""
    coords, n = points_of(12, 2), 12
    heat = np.random.default_rng(3).random((n, n))
    neighbours = np.tile(np.arange(n), (n, 1))
    pairs = sorted(
        ((heat[i, j] + heat[j, i]) / np.linalg.norm(coords[i] - coords[j]), i, j) for i in range(n) for j in range(i)
    )
    piece, degree, edges = list(range(n)), [0] * n, set()
    for _, i, j in reversed(pairs):
        if piece[i] != piece[j] and max(degree[i], degree[j]) < 2:
            old, new = piece[i], piece[j]
            piece = [new if p == old else p for p in piece]
            degree[i] += 1
            degree[j] += 1
            edges.add(frozenset((i, j)))
    tour = merge(coords, neighbours, heat).tolist()
    found = {frozenset((tour[i - 1], tour[i])) for i in range(n)}
    assert edges < found
    assert len(found - edges) == 1


def test_two_opt_takes_the_best_exchange() -> None:
    coords, n = points_of(25), 25
    tour = np.arange(n)

    def exchanged(tour: list[int]) -> list[int]:
        """The shortest tour that one exchange makes, by all of them."""
        options = [tour[:i] + tour[i:j][::-1] + tour[j:] for i in range(1, n) for j in range(i + 2, n + 1)]
        return min([tour, *options], key=lambda each: length(coords, np.array(each)))

    wanted = tour.tolist()
    for moves in (1, 2, 3):
        wanted = exchanged(wanted)
        assert as_cycle(two_opt(coords, tour, moves)) == as_cycle(wanted)
    best = two_opt(coords, tour, 1000)
    assert length(coords, best) == pytest.approx(length(coords, np.array(exchanged(best.tolist()))), abs=2e-6)
