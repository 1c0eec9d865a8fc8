"""How a network's last-layer states tell the best next node from the others (scaling, Appendix H.1-H.3).

States are (nodes, width); row 0 is the optimal next node, the rest follow in any order.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def principal_components(states: ArrayLike, components: int = 2) -> tuple[Array, Array]:
    """States (nodes, width) projected on the directions of their largest variance.

    Returns points (nodes, components), and the shares of the total variance (components,).

    A direction's sign is arbitrary: it is chosen so that row 0 has no negative coordinate, which makes projections of
    different networks comparable.  States that are all equal explain nothing and fall on the origin.
    """
    x = np.asarray(states, float)
    x = x - x.mean(axis=0)
    u, singular, _ = np.linalg.svd(x, full_matrices=False)
    points = (u * singular)[:, :components]
    points = points * np.where(points[0] < 0, -1.0, 1.0)
    variance = singular**2
    total = variance.sum()
    return points, variance[:components] / total if total > 0 else np.zeros(points.shape[1])


def cosine_similarity(states: ArrayLike) -> Array:
    """Similarity of each pair of states (nodes, width): (nodes, nodes), from -1 to 1; a zero state is like none."""
    x = np.asarray(states, float)
    norms = np.linalg.norm(x, axis=-1, keepdims=True)
    unit = np.divide(x, norms, out=np.zeros_like(x), where=norms > 0)
    return np.asarray(np.clip(unit @ unit.T, -1.0, 1.0))


def separation(states: ArrayLike) -> Array:
    """How far the optimal node lies from the others: states (..., nodes, width), at least 3 nodes -> (...).

    Its distance to their centroid over their own mean distance to it.  1: it lies as the others do; infinite: they
    coincide.  Neither scaling, moving nor turning all states changes it.
    """
    x = np.asarray(states, float)
    if x.shape[-2] < 3:
        raise ValueError(f"separation needs at least 3 nodes, got {x.shape[-2]}")
    others = x[..., 1:, :]
    centre = others.mean(axis=-2, keepdims=True)
    spread = np.linalg.norm(others - centre, axis=-1).mean(axis=-1)
    distance = np.linalg.norm(x[..., 0, :] - centre[..., 0, :], axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(distance / spread)
