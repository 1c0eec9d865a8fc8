"""Tree search on a map that nothing has learnt: the softmax of minus the distance (Xia et al., 2024).

What a learnt map of edges is worth shows beside it.  The temperature is a share of the mean distance to the nearest
other node: 0.0067 on 500 uniform nodes.
"""

import numpy as np

from neuroute.solvers.base import Solver, installed_version
from neuroute.solvers.tree_search import search

HOW_TO_GET = "run `pip install numba scipy`"
NEAREST = 50  # other nodes that have a probability
TEMPERATURE = 0.3  # times the mean distance to the nearest other node
ACTIONS = 100  # a node


def version() -> str:
    return installed_version("numba", "softdist", HOW_TO_GET)


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


SOLVER = Solver("softdist", False, HOW_TO_GET, version, solve)
