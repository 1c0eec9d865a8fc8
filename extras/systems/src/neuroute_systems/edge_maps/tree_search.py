"""Monte-Carlo tree search for the TSP on a map of how likely edges are (Fu et al., 2021).

A state is a tour drawn by the map, and 2-opt on candidate edges.  An action cuts an edge of it and goes on, as Lin and
Kernighan do, to other ends by what edges have brought so far; the first that shortens the tour is taken, and where none
of many does, a new tour is drawn.  What edges brought is remembered for all states of an instance.

As published but for these: only of candidates is it known what each brought and how often it was tried, so memory is
O(n k); of other edges a node knows what they brought together.  Draws are exact, where the published code has steps of
1/1000; distances are not rounded; the budget is in actions, of which the published seconds hold as many as the machine
makes, or in seconds.
"""

import time

import numpy as np

from neuroute.solvers.base import Solver, check_map, installed_version
from neuroute_systems.edge_maps.tree_moves import FRESH, Edges, run

SCALE = 100.0  # of a probability, as a weight
LEAST = 1e-4  # of a probability that makes a candidate
LOOK = 10  # times n actions, from one look at the clock to the next


class Search:
    """The search of one instance, which goes on where it was."""

    def __init__(self, coords: np.ndarray, neighbours: np.ndarray, heat: np.ndarray, seed: int) -> None:
        """coords (n, 2), neighbours (n, k), heat (n, k): probabilities, symmetric or not, of edges to neighbours.

        Raises NeurouteError for a map that is not finite.
        """
        check_map(heat)
        n = len(coords)
        self.points = np.ascontiguousarray(coords, dtype=np.float64)
        first, ends, twin, probabilities = candidates(neighbours, heat)
        weight, tries = SCALE * probabilities, np.zeros(len(ends), np.int64)
        total = np.add.reduceat(np.append(weight, 0.0), first[:-1]) * (np.diff(first) > 0)
        self.edges = Edges(first, ends, twin, weight, tries, total)
        self.tour, self.where, self.best = np.arange(n), np.arange(n), np.arange(n)
        self.counts, self.lengths = np.array([0, FRESH, 0]), np.array([np.inf, np.inf])
        self.random = np.array([(seed + 1) * 0x9E3779B97F4A7C15 % 2**64 | 1], np.uint64)

    def run(self, actions: int) -> None:
        """Draw a tour, if none is there, and take so many actions more."""
        run(self.points, self.edges, self.tour, self.where, self.best, self.counts, self.lengths, self.random, actions)


def search(
    coords: np.ndarray,
    neighbours: np.ndarray,
    heat: np.ndarray,
    actions: int,
    seed: int = 0,
    seconds: float | None = None,
) -> np.ndarray:
    """Return the best tour (n,) within so many actions a node; or within so many seconds, however many these are.

    The first tour is drawn and improved by 2-opt whatever time there is.  See `Search`.
    """
    began, state = time.perf_counter(), Search(coords, neighbours, heat, seed)
    if seconds is None:
        state.run(actions * len(coords))
        return state.best
    state.run(0)
    while time.perf_counter() - began < seconds:
        state.run(LOOK * len(coords))
    return state.best


def candidates(neighbours: np.ndarray, heat: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the edges whose probability, the mean of both directions, is at least LEAST; a node's likeliest first.

    As `Edges` has them, and their probabilities (E,).
    """
    n, k = neighbours.shape
    tail, head, half = np.repeat(np.arange(n), k), neighbours.ravel(), heat.ravel().astype(np.float64) / 2
    keep = tail != head
    pairs = np.concatenate([tail[keep] * n + head[keep], head[keep] * n + tail[keep]])
    edges, place = np.unique(pairs, return_inverse=True)
    probabilities = np.bincount(place, np.tile(half[keep], 2), len(edges))
    likely = probabilities >= LEAST
    edges, probabilities = edges[likely], probabilities[likely]
    order = np.lexsort((edges % n, -probabilities, edges // n))
    edges, probabilities = edges[order], probabilities[order]
    by_name = np.argsort(edges)
    twin = by_name[np.searchsorted(edges[by_name], edges % n * n + edges // n)]
    first = np.searchsorted(edges // n, np.arange(n + 1))
    return first, edges % n, twin, probabilities


# -- tree search on a map that nothing has learnt: the softmax of minus the distance (Xia et al., 2024) --------------
# What a learnt map of edges is worth shows beside it. The temperature is a share of the mean distance to the
# nearest other node: 0.0067 on 500 uniform nodes.

HOW_TO_GET = "run `pip install numba scipy`"
NEAREST = 50  # other nodes that have a probability
TEMPERATURE = 0.3  # times the mean distance to the nearest other node
ACTIONS = 100  # a node


def nearest_others(coords: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the k nearest other nodes (n, k) of coords (n, 2), of all where there are fewer; and how far they are."""
    from scipy.spatial import cKDTree  # a third of a second, which few processes need

    n = len(coords)
    k = min(k, n - 1)
    apart, nodes = (np.asarray(part) for part in cKDTree(coords).query(coords, k + 1))
    # Among coincident nodes a node need not be the first, nor among those that were found: then the last one goes.
    itself = nodes == np.arange(n)[:, None]
    itself[~itself.any(axis=1), -1] = True
    return nodes[~itself].reshape(n, k), apart[~itself].reshape(n, k)


def soft_map(coords: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return neighbours (n, k) and their probabilities (n, k); uniform where nodes coincide."""
    nodes, apart = nearest_others(np.asarray(coords, dtype=np.float64), NEAREST)
    mean = apart[:, 0].mean() or apart.mean() or 1.0
    heat = np.exp((apart.min(axis=1, keepdims=True) - apart) / (TEMPERATURE * mean))
    return nodes, heat / heat.sum(axis=1, keepdims=True)


def solve(coords: np.ndarray, seed: int, actions: int = ACTIONS, seconds: float | None = None) -> np.ndarray:
    """Return the tour (n,) of coords (n, 2) that a tree search of so many actions a node finds, or seconds."""
    return search(coords, *soft_map(coords), actions, seed, seconds)


SOLVER = Solver("softdist", False, HOW_TO_GET, installed_version("numba", "softdist", HOW_TO_GET), solve)
