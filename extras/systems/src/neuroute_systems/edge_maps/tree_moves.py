"""What a tree search of the TSP does to a tour: draw it, improve it by 2-opt, and act on it (Fu et al., 2021).

`tree_search` says how these follow each other.  A tour (n,) comes with `where` (n,), the place of each node.
"""

import math
from typing import NamedTuple

import numba
import numpy as np

ALPHA, BETA = 1.0, 10.0  # weight of exploration; of what an edge brought
DEPTH = 10  # edges that an action adds before it closes the tour
POOL = 10  # times n actions without a gain, until a new tour is drawn
EPS = 1e-9  # of a gain

M, FAILED, USED = range(3)  # of the counts: tries of all edges, actions since the last gain, actions
LENGTH, BEST = range(2)  # of the lengths
FRESH = -1  # as the number of failed actions: a new tour is due


class Edges(NamedTuple):
    """The candidates, one node's after the other's, and what is remembered of them."""

    first: np.ndarray  # (n + 1,) where each node's begin
    ends: np.ndarray  # (E,) where they lead
    twin: np.ndarray  # (E,) the same edge of the other end
    weight: np.ndarray  # (E,) float64
    tries: np.ndarray  # (E,) how often it was looked at
    total: np.ndarray  # (n,) of each node's weights, and of what its other edges brought


@numba.njit(cache=True)
def draw(random: np.ndarray) -> float:
    """Return a number from 0 to 1, without 1: xorshift64* (Vigna, 2016)."""
    x = random[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    random[0] = x
    return float((x * np.uint64(2685821657736338717)) >> np.uint64(11)) / 9007199254740992.0


@numba.njit(cache=True, inline="always")
def _apart(points: np.ndarray, a: int, b: int) -> float:
    x, y = points[a, 0] - points[b, 0], points[a, 1] - points[b, 1]
    return math.sqrt(x * x + y * y)


@numba.njit(cache=True)
def _reverse(tour: np.ndarray, where: np.ndarray, a: int, b: int) -> None:
    """Reverse the stretch from place a to place b, past the end if b is before a."""
    n = len(tour)
    for _ in range(((b - a) % n + 1) // 2):
        u, v = tour[a], tour[b]
        tour[a], where[v], tour[b], where[u] = v, a, u, b
        a = a + 1 if a + 1 < n else 0
        b = b - 1 if b else n - 1


@numba.njit(cache=True)
def _slot(edges: Edges, a: int, b: int) -> int:
    """Return where the edge from a to b is among the candidates; -1 if it is none."""
    for slot in range(edges.first[a], edges.first[a + 1]):
        if edges.ends[slot] == b:
            return slot
    return -1


@numba.njit(cache=True)
def _reward(edges: Edges, a: int, b: int, more: float) -> None:
    slot = _slot(edges, a, b)
    if slot >= 0:
        edges.weight[slot] += more
        edges.weight[edges.twin[slot]] += more
    edges.total[a] += more
    edges.total[b] += more


@numba.njit(cache=True)
def _count(edges: Edges, slot: int) -> None:
    if slot >= 0:
        edges.tries[slot] += 1
        edges.tries[edges.twin[slot]] += 1


@numba.njit(cache=True)
def _draw_tour(edges: Edges, tour: np.ndarray, where: np.ndarray, random: np.ndarray) -> None:
    """Fill a tour from node 0: each node among all that are left, by e to its weight, which is 0 off the candidates."""
    n, first, ends, weight = len(tour), edges.first, edges.ends, edges.weight
    for i in range(n):
        tour[i] = where[i] = i
    for step in range(1, n):
        here, top, many = tour[step - 1], 0.0, 0
        for slot in range(first[here], first[here + 1]):
            if where[ends[slot]] >= step:
                many += 1
                top = max(top, weight[slot])
        mass = (n - step - many) * math.exp(-top)
        for slot in range(first[here], first[here + 1]):
            if where[ends[slot]] >= step:
                mass += math.exp(weight[slot] - top)
        mark, next_node = draw(random) * mass, -1
        for slot in range(first[here], first[here + 1]):
            if where[ends[slot]] >= step:
                mark -= math.exp(weight[slot] - top)
                if mark < 0 or many == n - step:
                    next_node = ends[slot]
                if mark < 0:
                    break
        while next_node < 0:
            other = tour[step + int(draw(random) * (n - step))]
            if _slot(edges, here, other) < 0:
                next_node = other
        place, moved = where[next_node], tour[step]
        tour[step], where[next_node], tour[place], where[moved] = next_node, step, moved, place


@numba.njit(cache=True)
def _length(points: np.ndarray, tour: np.ndarray) -> float:
    length = _apart(points, tour[-1], tour[0])
    for i in range(len(tour) - 1):
        length += _apart(points, tour[i], tour[i + 1])
    return length


@numba.njit(cache=True)
def _two_opt(
    points: np.ndarray, edges: Edges, tour: np.ndarray, where: np.ndarray, counts: np.ndarray, length: float
) -> float:
    """Take the first improving exchange of each node's candidate edges, until a sweep finds none; return the length."""
    n, first, ends, improves = len(tour), edges.first, edges.ends, True
    while improves:
        improves = False
        for a in range(n):
            for slot in range(first[a], first[a + 1]):
                c = ends[slot]
                b, d = tour[(where[a] + 1) % n], tour[(where[c] + 1) % n]
                if c == b or d == a:
                    continue
                counts[M] += 1
                _count(edges, slot)
                _count(edges, _slot(edges, b, d))
                gain = _apart(points, a, b) + _apart(points, c, d) - _apart(points, a, c) - _apart(points, b, d)
                if gain > EPS:
                    if 2 * ((where[c] - where[b]) % n + 1) <= n:
                        _reverse(tour, where, where[b], where[c])
                    else:
                        _reverse(tour, where, where[d], where[a])
                    more = BETA * (math.exp(gain / length) - 1)
                    _reward(edges, a, c, more)
                    _reward(edges, b, d, more)
                    length -= gain
                    improves = True
                    break
    return length


@numba.njit(cache=True)
def _act(
    points: np.ndarray,
    edges: Edges,
    tour: np.ndarray,
    where: np.ndarray,
    counts: np.ndarray,
    random: np.ndarray,
    work: tuple[np.ndarray, np.ndarray, np.ndarray],
    length: float,
) -> float:
    """Take one action from a random edge; return what it gains, 0 where the tour stays.

    The tour without that edge is a path from b to a, along `way`.  Each step joins b to a candidate c, cuts c off its
    predecessor and reverses what lies before: the path then begins at the predecessor.
    """
    first, ends, weight, tries = edges.first, edges.ends, edges.weight, edges.tries
    potential, stretches, added = work
    n, way, steps = len(tour), 1, 0
    place = int(draw(random) * n)
    a, b = tour[place], tour[(place + 1) % n]
    gain, closed = _apart(points, a, b), 0.0
    counts[M] += 1
    explore = math.sqrt(math.log(counts[M] + 1.0))
    while steps < DEPTH:
        after, mass, mean = tour[(where[b] + way) % n], 0.0, edges.total[b] / (n - 1)
        begin = first[b]
        for slot in range(begin, first[b + 1]):
            z = 0.0
            if ends[slot] != a and ends[slot] != after:
                z = weight[slot] / mean + ALPHA * explore / math.sqrt(tries[slot] + 1.0)
                z = z if z >= 1 else 0.0
            potential[slot - begin] = z
            mass += z
        if mass == 0:
            break
        mark, slot = draw(random) * mass, begin
        for j in range(first[b + 1] - begin):
            if potential[j] > 0:
                slot = begin + j
                mark -= potential[j]
                if mark < 0:
                    break
        _count(edges, slot)
        c = ends[slot]
        p = tour[(where[c] - way) % n]
        gain += _apart(points, p, c) - _apart(points, b, c)
        added[steps, 0], added[steps, 1] = b, c
        if 2 * ((way * (where[p] - where[b])) % n + 1) <= n:  # what lies before c, or the rest and the other way
            u, v = (where[b], where[p]) if way > 0 else (where[p], where[b])
        else:
            u, v = (where[c], where[a]) if way > 0 else (where[a], where[c])
            way = -way
        _reverse(tour, where, u, v)
        stretches[steps, 0], stretches[steps, 1] = u, v
        steps += 1
        b = p
        closed = gain - _apart(points, a, b)
        if closed > EPS:
            more = BETA * (math.exp(closed / length) - 1)
            for i in range(steps):
                _reward(edges, added[i, 0], added[i, 1], more)
            _reward(edges, a, b, more)
            return closed
    for i in range(steps - 1, -1, -1):
        _reverse(tour, where, stretches[i, 0], stretches[i, 1])
    return 0.0


@numba.njit(cache=True)
def run(
    points: np.ndarray,
    edges: Edges,
    tour: np.ndarray,
    where: np.ndarray,
    best: np.ndarray,
    counts: np.ndarray,
    lengths: np.ndarray,
    random: np.ndarray,
    actions: int,
) -> None:
    n = len(tour)
    most = 1
    for node in range(n):
        most = max(most, edges.first[node + 1] - edges.first[node])
    work = np.empty(most), np.empty((DEPTH, 2), np.int64), np.empty((DEPTH, 2), np.int64)
    while True:
        if counts[FAILED] == FRESH:
            _draw_tour(edges, tour, where, random)
            length = _length(points, tour)
            lengths[LENGTH] = _two_opt(points, edges, tour, where, counts, length)
            counts[FAILED] = 0
        while actions > 0 and counts[FAILED] < POOL * n:
            actions -= 1
            gain = _act(points, edges, tour, where, counts, random, work, lengths[LENGTH])
            counts[USED] += 1
            counts[FAILED] = 0 if gain > 0 else counts[FAILED] + 1
            lengths[LENGTH] -= gain
        if lengths[LENGTH] < lengths[BEST]:
            lengths[BEST] = lengths[LENGTH]
            best[:] = tour
        if actions <= 0:
            return
        counts[FAILED] = FRESH
