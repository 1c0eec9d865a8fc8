"""Distances in the plane and on the earth as TSPLIB defines them (Reinelt, 1991): rounded, or as they are."""

import math

import numpy as np


def distances(a: np.ndarray, b: np.ndarray, edge_type: str, rounded: bool = True) -> np.ndarray:
    """Return the distances (k,) between the rows of a and b (k, 2); GEO's are whole however they are asked for."""
    if edge_type == "GEO":
        # TSPLIB's own constants: degrees.minutes, pi with five decimals, an idealised sphere.
        (lat_a, lon_a), (lat_b, lon_b) = (_radians(x).T for x in (a, b))
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


def _radians(x: np.ndarray) -> np.ndarray:
    degrees = np.trunc(x)
    return np.asarray(3.141592 * (degrees + 5.0 * (x - degrees) / 3.0) / 180.0)


def all_distances(coords: np.ndarray, edge_type: str) -> np.ndarray:
    """Return TSPLIB's distances (n, n) int64 between coordinates (n, 2)."""
    n = len(coords)
    ways = np.empty((n, n), dtype=np.int64)
    for i in range(n):
        ways[i] = distances(np.broadcast_to(coords[i], (n, 2)), coords, edge_type)
    np.fill_diagonal(ways, 0)
    return ways
