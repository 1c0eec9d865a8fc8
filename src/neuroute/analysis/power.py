"""How many seeds and instances tell an effect from noise: the power of comparing two models' mean gaps.

Each model is trained with `seeds` seeds, and all are tested on the same instances.  A difference of mean gaps then has
the variance 2 seed_sd^2 / seeds + instance_sd^2 / instances: seed_sd is the spread of a model's mean gap over its
trainings, instance_sd that of the two models' difference over instances.  With no spread of seeds this is the paired
test, with infinitely many instances the t-test of two samples (Cohen, 1988, Sections 2.3 and 2.4).
"""

import math
from bisect import bisect_left

LEVEL, POWER = 0.05, 0.8  # of a test of both sides
MOST = 1000  # seeds


def standard_error(seed_sd: float, instance_sd: float, seeds: int, instances: float) -> float:
    """Return that of the difference of two models' mean gaps, in the unit of the spreads."""
    return math.sqrt(2 * seed_sd**2 / seeds + instance_sd**2 / instances)


def power(effect: float, seed_sd: float, instance_sd: float, seeds: int, instances: float) -> float:
    """Return the probability that a true difference of `effect` is found significant (LEVEL).

    Where seeds spread, t has the freedom of the seeds alone, 2 (seeds - 1): with one seed nothing is found.
    """
    error = standard_error(seed_sd, instance_sd, seeds, instances)
    if error == 0:
        return 1.0 if effect else LEVEL
    from scipy.stats import nct, t

    freedom = 2 * (seeds - 1) if seed_sd else instances - 1
    if freedom < 1:
        return 0.0
    if math.isinf(freedom):
        freedom = 1e9
    critical, shift = t.ppf(1 - LEVEL / 2, freedom), abs(effect) / error
    return float(nct.sf(critical, freedom, shift) + nct.sf(critical, freedom, -shift))  # cdf is NaN far out


def seeds_needed(effect: float, seed_sd: float, instance_sd: float, instances: float) -> int | None:
    """Return how many seeds of each model find `effect` with POWER; None if so few instances never do, or over MOST."""

    def is_enough(seeds: int) -> bool:
        return power(effect, seed_sd, instance_sd, seeds, instances) >= POWER

    return bisect_left(range(MOST + 1), True, lo=1, key=is_enough) if is_enough(MOST) else None


def least_effect(seed_sd: float, instance_sd: float, seeds: int, instances: float) -> float | None:
    """Return the smallest difference found with POWER; None with one seed where seeds spread."""
    if seed_sd and seeds < 2:
        return None
    if not seed_sd and not instance_sd:
        return 0.0
    from scipy.optimize import brentq

    def lacking(effect: float) -> float:
        return power(effect, seed_sd, instance_sd, seeds, instances) - POWER

    high = standard_error(seed_sd, instance_sd, seeds, instances)
    while lacking(high) < 0:
        high *= 2
    return float(brentq(lacking, 0, high))
