"""Bootstrap of methods that were measured on the same instances: intervals of means, and of paired differences.

A resample draws instances with replacement, the same ones for all methods, since instances differ far more than methods
do on one of them.  Of a method's seeds one may be luckier than another on all instances alike: for orders and exponents
they are drawn with replacement, too; means and differences have Student's t of them, since draws of few are too narrow.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from neuroute.analysis import RESAMPLES
from neuroute.analysis.bootstrap import Array, Interval, percentile_interval


def resampled_means(values: ArrayLike, stream: int = 0, resamples: int = RESAMPLES, seed: int = 0) -> Array:
    """Return means (resamples,) of values (instances,) or (instances, seeds).

    Equal `seed`: the same instances are drawn; `stream` tells the draws of seeds of several methods apart.
    """
    of_seeds = resampled_instances(values, resamples, seed)
    weights = _weights(np.random.default_rng([seed, 1 + stream]), *of_seeds.shape)
    means: Array = (of_seeds * weights).sum(1)
    return means


def resampled_instances(values: ArrayLike, resamples: int = RESAMPLES, seed: int = 0) -> Array:
    """Return the mean of each seed (resamples, seeds) of values (instances,) or (instances, seeds)."""
    table = np.asarray(values, float)
    table = table.reshape(len(table), -1)
    means: Array = _weights(np.random.default_rng(seed), resamples, len(table)) @ table
    return means


def mean_over_seeds(of_seeds: Array, stream: int = 0, seed: int = 0) -> Array:
    """Return the mean over seeds (resamples,) of `resampled_instances`, with what so few seeds leave open.

    That is Student's t, of one degree of freedom less than there are seeds, times the standard error of their mean; it
    is left out of a single one, where it is unknown.  `stream` tells the draws of several methods apart.
    """
    rows, count = of_seeds.shape
    means: Array = of_seeds.mean(1)
    if count == 1:
        return means
    luck: Array = np.random.default_rng([seed, 1 + stream]).standard_t(count - 1, rows)
    means += luck * of_seeds.std(1, ddof=1) / np.sqrt(count)
    return means


def resampled_gaps_of_seeds(lengths: ArrayLike, reference: ArrayLike, stream: int = 0) -> Array:
    """Return gaps in % (resamples,), as ratios of mean lengths (instances, seeds) to those of a reference (instances,).

    `stream` tells the draws of seeds of several methods apart.
    """
    gaps: Array = 100 * (resampled_means(lengths, stream) / resampled_means(reference) - 1)
    return gaps


def gaps_of_each_seed(lengths: ArrayLike, reference: ArrayLike) -> Array:
    """Return gaps in % (resamples, seeds), as ratios of mean lengths (instances, seeds) to a reference's."""
    gaps: Array = 100 * (resampled_instances(lengths) / resampled_instances(reference) - 1)
    return gaps


def mean_interval(values: ArrayLike, level: float = 0.95) -> Interval:
    """Return the percentile interval of the mean of values (instances,) or (instances, seeds)."""
    return percentile_interval(mean_over_seeds(resampled_instances(values)), level)


def difference_interval(first: ArrayLike, second: ArrayLike, level: float = 0.95) -> Interval:
    """Return the percentile interval of mean(first) - mean(second), paired over instances; seeds may be of any number.

    Raises ValueError if they are not of the same instances.
    """
    if len(np.asarray(first)) != len(np.asarray(second)):
        raise ValueError(f"{len(np.asarray(first))} and {len(np.asarray(second))} instances are not pairs")
    here, there = (mean_over_seeds(resampled_instances(each), stream) for stream, each in enumerate((first, second)))
    return percentile_interval(here - there, level)


def shares_better(methods: Sequence[ArrayLike]) -> Array:
    """Return (methods, methods): in which share of resamples the row's mean is below the column's; ties count half.

    Each method's values are (instances,) or (instances, seeds).
    """
    means = np.array([resampled_means(values, stream) for stream, values in enumerate(methods)])
    below = (means[:, None] < means[None]).mean(-1)
    return np.asarray(below + 0.5 * (means[:, None] == means[None]).mean(-1))


def _weights(generator: np.random.Generator, resamples: int, count: int) -> Array:
    """Return how often each of `count` is drawn, as shares (resamples, count)."""
    return generator.multinomial(count, np.full(count, 1 / count), size=resamples) / count
