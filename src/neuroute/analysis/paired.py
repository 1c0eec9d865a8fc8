"""Bootstrap of methods that were measured on the same instances: intervals of means, and of paired differences.

A resample draws instances with replacement, the same ones for all methods, since instances differ far more than methods
do on one of them; and of each method its seeds, of which one may be luckier than another on all instances alike.
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
    table = np.asarray(values, float)
    table = table.reshape(len(table), -1)
    of_instances = _weights(np.random.default_rng(seed), resamples, table.shape[0])
    of_seeds = _weights(np.random.default_rng([seed, 1 + stream]), resamples, table.shape[1])
    means: Array = ((of_instances @ table) * of_seeds).sum(1)
    return means


def resampled_gaps_of_seeds(lengths: ArrayLike, reference: ArrayLike, stream: int = 0) -> Array:
    """Return gaps in % (resamples,), as ratios of mean lengths (instances, seeds) to those of a reference (instances,).

    `stream` tells the draws of seeds of several methods apart.
    """
    gaps: Array = 100 * (resampled_means(lengths, stream) / resampled_means(reference) - 1)
    return gaps


def mean_interval(values: ArrayLike, level: float = 0.95) -> Interval:
    """Return the percentile interval of the mean of values (instances,) or (instances, seeds)."""
    return percentile_interval(resampled_means(values), level)


def difference_interval(first: ArrayLike, second: ArrayLike, level: float = 0.95) -> Interval:
    """Return the percentile interval of mean(first) - mean(second), paired over instances; seeds may be of any number.

    Raises ValueError if they are not of the same instances.
    """
    if len(np.asarray(first)) != len(np.asarray(second)):
        raise ValueError(f"{len(np.asarray(first))} and {len(np.asarray(second))} instances are not pairs")
    return percentile_interval(resampled_means(first, 0) - resampled_means(second, 1), level)


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
