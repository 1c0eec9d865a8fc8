"""Instances as networks take them: coordinates and times in the unit square."""

from dataclasses import replace

import numpy as np

from neuroute.problems.vrp import Vrp

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


def in_unit_square(vrp: Vrp, dtype: type[np.floating], scale: float | None = None) -> Vrp:
    """Return the instances with coordinates and times of a type.

    One that fills the unit square stays as it is; others are moved and scaled into it, times and limits too, by one
    scale that also brings the depot's closing to 3 or below.  `scale`: instead, all are divided by it, and stay where
    they are.
    """
    windows, service = vrp.windows, vrp.service
    low, size, inside = frame(vrp.coords)
    size = size if windows is None else np.maximum(size, windows[:, :1, 1:] / HORIZON)
    stays = inside & (size >= FILLED)
    low, size = np.where(stays, 0.0, low), np.where(stays, 1.0, size)
    if scale is not None:
        low, size = np.zeros_like(low), np.full_like(size, scale)
    return replace(
        vrp,
        coords=((vrp.coords - low) / size).astype(dtype),
        limit=None if vrp.limit is None else vrp.limit / size[:, 0, 0],
        windows=None if windows is None else (windows / size).astype(dtype),
        service=None if service is None else (service / size[:, 0]).astype(dtype),
    )
