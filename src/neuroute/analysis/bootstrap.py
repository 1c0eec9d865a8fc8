"""Bootstrap: resamples of test instances, and intervals over them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from neuroute.analysis import RESAMPLES

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """A percentile interval over bootstrap resamples."""

    low: float
    high: float
    resamples: int
    failed: int  # resamples without a fit


def resampled_gaps(lengths: ArrayLike, references: ArrayLike, resamples: int = RESAMPLES, seed: int = 0) -> Array:
    """Gaps (%) of bootstrap resamples of the test instances, paired: a resample draws the same ones for all models.

    lengths (models, count), references (count,) -> (resamples, models)
    """
    lengths, references = np.atleast_2d(np.asarray(lengths, float)), np.asarray(references, float)
    count = len(references)
    generator = np.random.default_rng(seed)
    both = np.vstack([references, lengths]).T
    sums = np.empty((resamples, both.shape[1]))
    for first in range(0, resamples, 100):
        rows = min(100, resamples - first)
        draws = generator.integers(count, size=(rows, count)) + count * np.arange(rows)[:, None]
        weights = np.bincount(draws.ravel(), minlength=rows * count).reshape(rows, count)
        sums[first : first + rows] = weights.astype(float) @ both
    return 100 * (sums[:, 1:] / sums[:, :1] - 1)


def percentile_interval(values: Array, level: float = 0.95) -> Interval:
    """Percentile interval over the finite values; NaN bounds when none is."""
    finite = values[np.isfinite(values)]
    failed = len(values) - len(finite)
    if not len(finite):
        return Interval(float("nan"), float("nan"), len(values), failed)
    low, high = np.quantile(finite, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), len(values), failed)
