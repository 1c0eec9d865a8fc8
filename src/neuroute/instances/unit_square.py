"""Instances as networks take them: coordinates and times in the unit square."""

from dataclasses import replace

import numpy as np

from neuroute.problems.vrp import Vrp

HORIZON = 3.0  # when the depot closes in the instances that networks learn from
FILLED = 0.5  # of the unit square's side at least: networks learn from instances that fill it, and see scale
LATE = 1e-3  # by how much, of the unit square, solutions may be late: solvers compute on integer grids


def fills_unit_square(low: np.ndarray, high: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return whether instances stay as they are, by their least and largest coordinate and their extent."""
    fills: np.ndarray = (low >= 0) & (high <= 1) & (size >= FILLED)
    return fills


def scale_points(coords: np.ndarray, per_axis: bool = False) -> np.ndarray:
    """Return coordinates (n, 2) in the unit square, float32, by one offset and one scale for both axes."""
    low, high = (coords.min(0), coords.max(0)) if per_axis else (coords.min(), coords.max())
    scaled: np.ndarray = (coords - low) / np.where(high > low, high - low, 1)
    return scaled.astype(np.float32)


def in_unit_square(vrp: Vrp, dtype: type[np.floating], scale: float | None = None) -> Vrp:
    """Return the instances with coordinates and times of a type.

    One that fills the unit square stays as it is; others are moved and scaled into it, times and limits too, by one
    scale that also brings the depot's closing to 3 or below.  `scale`: instead, all are divided by it, and stay where
    they are.
    """
    low, high = (f(vrp.coords, axis=(1, 2)) for f in (np.min, np.max))
    size = high - low if vrp.windows is None else np.maximum(high - low, vrp.windows[:, 0, 1] / HORIZON)
    stays = fills_unit_square(low, high, size)
    size, low = np.where(stays, 1.0, size), np.where(stays, 0.0, low)
    if scale is not None:
        size, low = np.full(len(vrp), scale), np.zeros(len(vrp))
    windows, service = vrp.windows, vrp.service
    return replace(
        vrp,
        coords=((vrp.coords - low[:, None, None]) / size[:, None, None]).astype(dtype),
        limit=None if vrp.limit is None else vrp.limit / size,
        windows=None if windows is None else (windows / size[:, None, None]).astype(dtype),
        service=None if service is None else (service / size[:, None]).astype(dtype),
    )
