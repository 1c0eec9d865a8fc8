"""Distances as TSPLIB defines them (Reinelt, 1991), rounded or as they are; instances scaled to the unit square."""

import math
from dataclasses import replace

import numpy as np

from neuroute.problems.vrp import Vrp


def distances(a: np.ndarray, b: np.ndarray, edge_type: str, rounded: bool = True) -> np.ndarray:
    """Return the distances (k,) between the rows of a and b (k, 2); GEO's are whole however they are asked for."""
    if edge_type == "GEO":
        # TSPLIB's own constants: degrees.minutes, pi with five decimals, an idealised sphere.
        degrees = np.trunc(points := np.stack([a, b]))
        radians = 3.141592 * (degrees + 5.0 * (points - degrees) / 3.0) / 180.0
        (lat_a, lat_b), (lon_a, lon_b) = np.moveaxis(radians, -1, 0)
        q1, q2, q3 = np.cos(lon_a - lon_b), np.cos(lat_a - lat_b), np.cos(lat_a + lat_b)
        arc = np.arccos(0.5 * ((1 + q1) * q2 - (1 - q1) * q3))
        return np.asarray(np.floor(6378.388 * arc + 1.0))
    plain: np.ndarray = np.hypot(*(a - b).T)
    if edge_type == "ATT":
        plain = plain / math.sqrt(10.0)
        nearest: np.ndarray = np.floor(plain + 0.5)
        return nearest + (nearest < plain) if rounded else plain
    if not rounded or edge_type == "EXACT_2D":
        return plain
    return np.asarray(np.ceil(plain) if edge_type == "CEIL_2D" else np.floor(plain + 0.5))


def all_distances(coords: np.ndarray, edge_type: str) -> np.ndarray:
    """Return TSPLIB's distances (n, n) int64 between coordinates (n, 2)."""
    n = len(coords)
    ways = np.empty((n, n), dtype=np.int64)
    for i in range(n):
        ways[i] = distances(np.broadcast_to(coords[i], (n, 2)), coords, edge_type)
    np.fill_diagonal(ways, 0)
    return ways


HORIZON = 3.0  # when the depot closes in the instances that networks learn from
FILLED = 0.5  # of the unit square's side at least: networks learn from instances that fill it, and see scale
LATE = 1e-3  # by how much, of the unit square, solutions may be late: solvers compute on integer grids


def frame(coords: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return an offset (..., 1, 2) and extent (..., 1, 1) of instances (..., n, 2), and whether the square has them.

    Both axes have one offset, as published, unless that leaves an instance in a corner: eastings and northings.
    """
    low, high = (f(coords, axis=(-2, -1), keepdims=True) for f in (np.min, np.max))
    extent = np.ptp(coords, axis=-2, keepdims=True).max(axis=-1, keepdims=True)
    corner = (extent > 0) & (extent < FILLED * (high - low))
    offset = np.where(corner, coords.min(axis=-2, keepdims=True), low)
    return offset, np.where(corner, extent, high - low), (low >= 0) & (high <= 1)


def scale_points(coords: np.ndarray, per_axis: bool = False) -> np.ndarray:
    """Return coordinates (n, 2) in the unit square, by one scale for both axes, or by one of each."""
    low, size = (coords.min(0), np.ptp(coords, axis=0)) if per_axis else frame(coords)[:2]
    scaled: np.ndarray = (coords - low) / np.where(size > 0, size, 1)
    return scaled


def fills_unit_square(coords: np.ndarray) -> bool:
    """Return whether coordinates (n, 2) lie in the unit square and fill it."""
    _, size, inside = frame(coords)
    return bool((inside & (size >= FILLED)).all())


def closing_in_reach(vrp: Vrp) -> np.ndarray | None:
    """Return the windows (count, 1 + V, 2), none closing later than twice the time in which one vehicle can serve all.

    No solution needs more.  A depot that never closes would set the scale, of which lateness is forgiven a share.
    """
    if vrp.windows is None or vrp.service is None:
        return vrp.windows
    out = np.sqrt(((vrp.coords.astype(np.float64) - vrp.coords[:, :1]) ** 2).sum(-1))
    latest = vrp.windows[..., 0].max(1) + vrp.service.sum(1, dtype=np.float64) + 2 * out.sum(1)
    windows: np.ndarray = np.minimum(vrp.windows, 2 * latest[:, None, None])
    return windows.astype(vrp.windows.dtype)


def square(vrp: Vrp) -> tuple[np.ndarray, np.ndarray]:
    """Return the offset (count, 1, 2) and the scale (count, 1, 1) that bring instances into the unit square."""
    windows, (low, size, inside) = closing_in_reach(vrp), frame(vrp.coords)
    size = size if windows is None else np.maximum(size, windows[:, :1, 1:] / HORIZON)
    stays = inside & (size >= FILLED)
    return np.where(stays, 0.0, low), np.where(stays, 1.0, size)


def in_unit_square(vrp: Vrp, dtype: type[np.floating], scale: float | None = None) -> Vrp:
    """Return the instances with coordinates and times of a type.

    One that fills the unit square stays as it is; others are moved and scaled into it, times and limits too, by one
    scale that also brings the depot's closing to 3 or below.  `scale`: instead, all are divided by it, and stay where
    they are.
    """
    windows, service = closing_in_reach(vrp), vrp.service
    low, size = square(vrp)
    if scale is not None:
        low, size = np.zeros_like(low), np.full_like(size, scale)
    return replace(
        vrp,
        coords=((vrp.coords - low) / size).astype(dtype),
        limit=None if vrp.limit is None else vrp.limit / size[:, 0, 0],
        windows=None if windows is None else (windows / size).astype(dtype),
        service=None if service is None else (service / size[:, 0]).astype(dtype),
    )
