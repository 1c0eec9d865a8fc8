"""Gaps, the intervals around them, paired differences, and what seeds spread: statistics of all tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from neuroute.analysis import RESAMPLES

# -- How much longer solutions are than known ones, in per cent: one measure for evaluations, users and comparisons


def gap_pct(lengths: np.ndarray | float, reference: np.ndarray | float) -> float:
    """Return by how many per cent the mean length is above the mean of the references."""
    return float(100 * (np.mean(lengths) / np.mean(reference) - 1))


def gaps(lengths: np.ndarray, reference: np.ndarray, rounded: np.ndarray | None = None) -> dict[str, float]:
    """Return the gaps of lengths (count,) by the names that records have.

    `gap_pct` is of mean lengths, `gap_mean_of_ratios_pct` the mean of the instances' gaps, and `gap_rounded_pct` the
    same of lengths in a library's rounded distances, where they are given.
    """
    values = {"gap_pct": gap_pct(lengths, reference), "gap_mean_of_ratios_pct": gap_pct(lengths / reference, 1.0)}
    return values if rounded is None else values | {"gap_rounded_pct": gap_pct(rounded / reference, 1.0)}


# -- bootstrap: resamples of test instances, and intervals over them -------------------------------------------------

Array = NDArray[np.float64]
LEVEL = 0.95  # of all intervals
POWER = 0.8  # with which a difference is to be told
DIGITS = 9  # after the point, that count: the same tour, summed up from another node, differs further behind


@dataclass(frozen=True)
class Interval:
    """A percentile interval over bootstrap resamples."""

    low: float
    high: float
    resamples: int
    failed: int  # resamples without a fit


def resampled_gaps(lengths: ArrayLike, references: ArrayLike) -> Array:
    """Gaps (%) of bootstrap resamples of the test instances, paired: a resample draws the same ones for all models.

    lengths (models, count), references (count,) -> (resamples, models)
    """
    lengths, references = np.atleast_2d(np.asarray(lengths, float)), np.asarray(references, float)
    count = len(references)
    generator = np.random.default_rng(0)
    both = np.vstack([references, lengths]).T
    sums = np.empty((RESAMPLES, both.shape[1]))
    for first in range(0, RESAMPLES, 100):
        rows = min(100, RESAMPLES - first)
        draws = generator.integers(count, size=(rows, count)) + count * np.arange(rows)[:, None]
        weights = np.bincount(draws.ravel(), minlength=rows * count).reshape(rows, count)
        sums[first : first + rows] = weights.astype(float) @ both
    return 100 * (sums[:, 1:] / sums[:, :1] - 1)


def percentile_interval(values: Array) -> Interval:
    """95 % percentile interval over the finite values; NaN bounds when none is."""
    finite = values[np.isfinite(values)]
    failed = len(values) - len(finite)
    if not len(finite):
        return Interval(float("nan"), float("nan"), len(values), failed)
    low, high = np.quantile(finite, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(low), float(high), len(values), failed)


# -- Bootstrap of methods that were measured on the same instances: intervals of means, and of paired differences
# A resample draws instances with replacement, the same ones for all methods, since instances differ far more than
# methods do on one of them. Of a method's seeds one may be luckier than another on all instances alike: for orders
# and exponents they are drawn with replacement, too; means and differences have Student's t of them, since draws of
# few are too narrow.


def resampling_weights(generator: np.random.Generator, count: int) -> Array:
    """Return how often each of `count` is drawn, as shares (RESAMPLES, count)."""
    return generator.multinomial(count, np.full(count, 1 / count), size=RESAMPLES) / count


def resampled_instances(values: ArrayLike) -> Array:
    """Return the mean of each seed (resamples, seeds) of values (instances,) or (instances, seeds)."""
    table = np.asarray(values, float)
    table = table.reshape(len(table), -1)
    means: Array = resampling_weights(np.random.default_rng(0), len(table)) @ table
    return means


def mean_over_seeds(of_seeds: Array, stream: int = 0) -> Array:
    """Return the mean over seeds (resamples,) of `resampled_instances`, with what so few seeds leave open.

    That is Student's t, of one degree of freedom less than there are seeds, times the standard error of their mean; it
    is left out of a single one, where it is unknown.  `stream` tells the draws of several methods apart.
    """
    rows, count = of_seeds.shape
    means: Array = of_seeds.mean(1)
    if count == 1:
        return means
    luck: Array = np.random.default_rng([0, 1 + stream]).standard_t(count - 1, rows)
    means += luck * of_seeds.std(1, ddof=1) / np.sqrt(count)
    return means


def gaps_of_each_seed(lengths: ArrayLike, reference: ArrayLike) -> Array:
    """Return gaps in % (resamples, seeds), as ratios of mean lengths (instances, seeds) to a reference's."""
    gaps: Array = 100 * (resampled_instances(lengths) / resampled_instances(reference) - 1)
    return gaps
