"""The travelling salesman problem in the plane: length and form of closed tours."""

import numpy as np

from neuroute.core.errors import NeurouteError

FEWEST_NODES = 4  # below, every tour is optimal
FARTHEST = 1e12  # coordinates of which distances are still told apart


def tour_length(coords: np.ndarray, tours: np.ndarray) -> np.ndarray:
    """Euclidean length of closed tours (..., n) over coords (..., n, 2): float64 (...), whatever the inputs' types.

    Leading axes of coords broadcast against those of tours: one instance (n, 2) may serve many tours.
    """
    coords = np.broadcast_to(np.asarray(coords, dtype=np.float64), (*tours.shape, 2))
    points = np.take_along_axis(coords, tours[..., None].astype(np.int64), axis=-2)
    steps = points - np.roll(points, -1, axis=-2)
    return np.sqrt((steps * steps).sum(-1)).sum(-1)


def is_permutation(tours: np.ndarray) -> np.ndarray:
    """Whether each row of tours (count, n) visits every node once: bool (count,)."""
    return (np.sort(tours, axis=-1) == np.arange(tours.shape[-1])).all(-1)


def canonical(tours: np.ndarray) -> np.ndarray:
    """The same closed tours (count, n), each from node 0 on towards the smaller of its two neighbours."""
    n = tours.shape[-1]
    start = (tours == 0).argmax(-1)
    tours = np.take_along_axis(tours, (start[:, None] + np.arange(n)) % n, axis=-1)
    backwards = np.concatenate([tours[:, :1], tours[:, :0:-1]], axis=-1)
    return np.where(tours[:, 1:2] > tours[:, -1:], backwards, tours)


def check_coordinates(coords: np.ndarray, where: str) -> None:
    """Refuse instances (..., n, 2) that are no TSP; `where` says where they come from.

    Raises NeurouteError for a wrong shape, fewer than 4 nodes, values that are not finite or too large, and points that
    all coincide.
    """
    if coords.ndim < 2 or coords.shape[-1] != 2:
        raise NeurouteError(f"{where}: coordinates of shape {coords.shape}; give two numbers per node, (..., n, 2)")
    if coords.shape[-2] < FEWEST_NODES:
        raise NeurouteError(f"{where}: an instance needs at least {FEWEST_NODES} nodes, got {coords.shape[-2]}")
    if not np.isfinite(coords).all():
        bad = np.argwhere(~np.isfinite(coords))[0]
        raise NeurouteError(f"{where}: node {bad[-2]} has a coordinate that is not a finite number; correct it")
    if (coords == coords[..., :1, :]).all(axis=(-2, -1)).any():
        raise NeurouteError(f"{where}: all nodes lie on one point; give at least two different points")
    if np.abs(coords).max() > FARTHEST:
        raise NeurouteError(f"{where}: coordinates beyond 1e12 lose their distances in floating point; rescale")
