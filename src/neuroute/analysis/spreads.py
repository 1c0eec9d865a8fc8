"""Intervals of differences between models: what the test instances and the trainings leave open, by Student's t.

docs/concepts/verdicts.md says what is assumed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from neuroute.analysis.bootstrap import Array

LEVEL = 0.95
ENOUGH = 3  # trainings, from which on their own spread counts


@dataclass(frozen=True)
class Spread:
    """Standard deviation of a model's gap over its trainings, as a share of the gap, with its degrees of freedom."""

    share: float
    freedom: int


@dataclass(frozen=True)
class Term:
    """An estimated variance of a difference, with its degrees of freedom."""

    variance: float
    freedom: float
    pool: Spread | None = None  # terms of one pool are in error together
    trainings: int = 0  # whose mean's variance it is; 0: of instances


@dataclass(frozen=True)
class Behind:
    """What stands behind a measured gap, for its difference from another."""

    gaps: tuple[float, ...]  # in %, of each training
    samples: Array  # (resamples,) of their mean; of test sets with as many instances the same are drawn
    instances: int
    network: str  # the class of the model
    problem: str
    times: float  # nodes of the test set over those of the training


def pooled(models: Iterable[Sequence[float]]) -> Spread:
    """Pool the spreads of models, each as the gaps of its trainings, two or more."""
    groups = [(gaps, math.fsum(gaps) / len(gaps)) for gaps in models]
    freedom = sum(len(gaps) - 1 for gaps, _ in groups)
    squares = math.fsum((gap / mean - 1) ** 2 for gaps, mean in groups for gap in gaps)
    return Spread(math.sqrt(squares / freedom), freedom)


def of_trainings(gaps: Sequence[float], spread: Spread) -> Term:
    """Return the variance of a model's mean gap, by its own spread if trainings are ENOUGH, else a pooled one."""
    mean = math.fsum(gaps) / len(gaps)
    if len(gaps) < ENOUGH:
        return Term((spread.share * mean) ** 2 / len(gaps), spread.freedom, spread, len(gaps))
    variance = math.fsum((gap - mean) ** 2 for gap in gaps) / (len(gaps) - 1)
    return Term(variance / len(gaps), len(gaps) - 1, trainings=len(gaps))


def half_width(terms: Sequence[Term], level: float = LEVEL) -> float:
    """Return half the interval of a difference with this variance in sum (Welch, 1947; Satterthwaite, 1946)."""
    pools: dict[object, list[Term]] = {}
    for i, term in enumerate(terms):
        pools.setdefault(term.pool or i, []).append(term)
    of_pools = [(math.fsum(term.variance for term in pool), pool[0].freedom) for pool in pools.values()]
    variance = math.fsum(each for each, _ in of_pools)
    if not variance:
        return 0.0
    from scipy.stats import t

    freedom = variance**2 / math.fsum(each**2 / freedom for each, freedom in of_pools)
    return float(t.ppf((1 + level) / 2, freedom)) * math.sqrt(variance)
