"""The factor that coordinates are best stretched by: found in a sweep, interpolated between sizes (pens, Section 4.2).

Lengths are means over held-out instances, on the original scale, so that those of different factors compare.
"""

import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from neuroute.core.errors import NeurouteError
from neuroute.core.files import check_stated

Array = NDArray[np.float64]

FEWEST_FACTORS = 3  # fewer points determine no parabola
NEAR = 1.1  # times the shortest length: beyond, a sweep is no parabola any more (RoPE falls apart all at once)
FLAT = 1e-9  # of the mean length: a parabola that rises less than this over the sweep is rounding


@dataclass(frozen=True)
class Parabola:
    """a x^2 + b x + c through the lengths about a sweep's shortest, by least squares, and the factor that follows."""

    a: float
    b: float
    c: float
    best: float  # the vertex where it is interior, else the swept factor with the shortest length
    interior: bool  # whether the parabola has its minimum between the smallest and the largest fitted factor
    low: float  # the smallest and the largest fitted factor
    high: float

    def __call__(self, factors: ArrayLike) -> Array:
        x = np.asarray(factors, np.float64)
        return (self.a * x + self.b) * x + self.c


def check_factors(factors: ArrayLike, what: str) -> None:
    """Refuse a sweep that can have no minimum; `what` says whose it is.

    Raises NeurouteError for fewer than three different factors, and for one that is not above 0.
    """
    x = np.asarray(factors, np.float64)
    wrong = x[~(np.isfinite(x) & (x > 0))]
    if len(wrong):
        raise NeurouteError(f"{what}: factor {wrong[0]:g}; coordinates are stretched by factors above 0")
    if len(np.unique(x)) < FEWEST_FACTORS:
        raise NeurouteError(
            f"{what}: {len(np.unique(x))} different factors are too few for a minimum; give at least {FEWEST_FACTORS}"
        )


def fit_parabola(factors: ArrayLike, lengths: ArrayLike, what: str = "rescaling") -> Parabola:
    """Fit the mean lengths (f,) of a sweep's factors (f,), in any order: those at most a tenth above the shortest.

    The paper does not say over which factors it fits.  Where fewer than three lengths are that near, the three shortest
    are fitted.
    Where the best swept factors tie, the one nearest to 1 is taken: no stretching without a gain.
    Raises NeurouteError, which begins with `what`, for what `check_factors` refuses, and lengths that are not finite.
    """
    x, y = np.asarray(factors, np.float64), np.asarray(lengths, np.float64)
    check_factors(x, what)
    if not np.isfinite(y).all():
        raise NeurouteError(
            f"{what}: the mean length at factor {x[~np.isfinite(y)][0]:g} is not a finite number; leave this factor out"
        )
    shortest = x[y == y.min()]
    x, y = _near(x, y)
    middle, half = (x.max() + x.min()) / 2, (x.max() - x.min()) / 2
    scaled = (x - middle) / half  # to [-1, 1], so that the three columns hardly correlate
    curvature, slope, level = np.linalg.lstsq(np.vander(scaled, 3), y, rcond=None)[0]
    a, b = curvature / half**2, slope / half
    c = level - (b - a * middle) * middle
    opens_upwards = curvature > FLAT * abs(y).mean()
    vertex = -slope / (2 * curvature) if opens_upwards else np.inf
    interior = bool(abs(vertex) <= 1)
    best = middle + vertex * half if interior else shortest[np.argmin(abs(shortest - 1))]
    return Parabola(
        float(a), float(b - 2 * a * middle), float(c), float(best), interior, float(x.min()), float(x.max())
    )


def _near(x: Array, y: Array) -> tuple[Array, Array]:
    """Factors and lengths about the shortest: all that are near it, or the three different factors that are nearest."""
    order = np.argsort(y, kind="stable")
    enough = next(k for k in range(FEWEST_FACTORS, len(x) + 1) if len(np.unique(x[order[:k]])) >= FEWEST_FACTORS)
    nearest = order[: max(enough, int((y <= NEAR * y.min()).sum()))]
    return x[nearest], y[nearest]


def factor_for(n: int, sizes: ArrayLike, best: ArrayLike) -> float:
    """The factor for an instance of n nodes, from those of the swept sizes (k,), ascending.

    Linear in the number of nodes between two sizes (pens, Table 3); beyond the sizes that of the nearest one.
    """
    return float(np.interp(n, np.asarray(sizes, np.float64), np.asarray(best, np.float64)))


def read_best(path: Path | None, what: str) -> tuple[NDArray[np.int64], Array]:
    """Sizes (k,) and the best factor of each (k,), from the arrays of a rescaling evaluation.

    `what` is the id of the run, or of the evaluation, that needs them.
    Raises NeurouteError when they are not there, or are something else.
    """
    mend = f"`neuroute evaluate {'/'.join(what.split('/')[:2])}/rescaling` measures them"
    if path is None or not path.is_file():
        where = f" ({path})" if path else ""
        raise NeurouteError(f"{what}: the model's best scaling factors are missing{where}; {mend}")
    check_stated(path, mend)
    try:
        with np.load(path, allow_pickle=False) as file:
            sizes, best = np.asarray(file["rescaling/sizes"], np.int64), np.asarray(file["rescaling/best"], float)
    except (OSError, ValueError, TypeError, KeyError, IndexError, EOFError, zipfile.BadZipFile):
        sizes, best = np.empty(0, np.int64), np.empty(0)
    usable = sizes.ndim == 1 and sizes.shape == best.shape and len(sizes) > 0
    if not (usable and (np.diff(sizes) > 0).all() and np.isfinite(best).all() and (best > 0).all()):
        raise NeurouteError(
            f"{path}: holds no best scaling factors (`rescaling/sizes`, `rescaling/best`); delete it, and {mend}"
        )
    return sizes, best
