"""Contrasts of log gaps: estimates with the variance that test instances and trainings leave, by Student's t.

A contrast is a sum of c ln(gap) over measured gaps.  docs/concepts/verdicts.md says what is assumed, and shows how
often its intervals hold.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, variance
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from neuroute.analysis.intervals import LEVEL, POWER

PRIOR_FREEDOM = 8  # degrees of freedom that a pooled spread counts for, at most (Smyth, 2004, Section 5)
# Correlations of a training's luck, where one training does not tell it; docs/concepts/verdicts.md has measured ones.
ALIKE = 0.8  # on two test sets
IN_TWO_USES = 0.7  # of two uses on one test set
Source = Literal["instances", "trainings", "cells"]


@dataclass(frozen=True)
class Gap:
    """A measured gap, as contrasts need it.

    Attributes:
        values: in %, of each training.
        errors: loadings of the mean's error on draws of test instances: their products are covariances.
        drawn: names the draws; gaps of one name share them, gaps of two are independent.
        instances: that were drawn.
        network: class of the model, "" of none.
        problem: its key.
        times: nodes of the test set over those of the training.
        run: whose trainings these are; its gaps on several test sets vary together.
    """

    values: tuple[float, ...]
    errors: NDArray[np.float64]
    drawn: str
    instances: int
    network: str
    problem: str
    times: float
    run: str

    @property
    def log(self) -> float:
        """Mean over trainings; -inf where one of them is not above 0."""
        return fmean(math.log(value) for value in self.values) if min(self.values) > 0 else -math.inf


@dataclass(frozen=True)
class Spread:
    """Standard deviation of ln gap over trainings of one model, with its degrees of freedom."""

    share: float
    freedom: int


SpreadOf = Callable[[Gap], Spread | None]  # the pooled one of its kind of network; None where none was trained twice


@dataclass(frozen=True)
class Term:
    """An estimated variance, its degrees of freedom, and what it is over."""

    variance: float
    freedom: float
    source: Source


@dataclass(frozen=True)
class Estimate:
    """A number with its uncertainty; without terms it has no interval."""

    value: float
    terms: tuple[Term, ...] = ()
    trainings: int = 0  # the least that a gap in it is the mean of

    @property
    def error(self) -> float:
        """The standard error."""
        return math.sqrt(math.fsum(term.variance for term in self.terms))

    @property
    def freedom(self) -> float:
        """Degrees of freedom of the sum of variances (Satterthwaite, 1946)."""
        squares = math.fsum(term.variance**2 / term.freedom for term in self.terms)
        return self.error**4 / squares if squares else math.inf

    def interval(self, level: float = LEVEL) -> tuple[float, float] | None:
        """Its two-sided interval; None where there is none."""
        if not self.terms:
            return None
        half = _t().ppf((1 + level) / 2, min(self.freedom, 1e9)) * self.error
        return float(self.value - half), float(self.value + half)

    def p_above(self, bound: float = 0.0) -> float:
        """Twice the probability of so large a value if the truth is the bound, at most 1; 1 without an interval."""
        if not self.terms:
            return 1.0
        if not self.error:
            return float(self.value <= bound)
        return min(1.0, 2 * float(_t().sf((self.value - bound) / self.error, min(self.freedom, 1e9))))

    def power(self, effect: float) -> float:
        """The probability that a true value of `effect` is told from 0 at LEVEL, on this side."""
        if not self.terms:
            return 0.0
        if not self.error:
            return 1.0
        from scipy.stats import nct

        freedom = min(self.freedom, 1e6)
        return float(nct.sf(_t().ppf((1 + LEVEL) / 2, freedom), freedom, effect / self.error))

    def less(self, other: Estimate) -> Estimate:
        """The difference from an independent estimate; without an interval where one has none."""
        terms = self.terms + other.terms if self.terms and other.terms else ()
        return Estimate(self.value - other.value, terms, min(self.trainings, other.trainings))

    def needed(self, alpha: float) -> tuple[Source, float]:
        """What most of the variance is over, and how many times as many decide with POWER, if the value is true."""
        from scipy.stats import norm

        by_source: dict[Source, float] = defaultdict(float)
        for term in self.terms:
            by_source[term.source] += term.variance
        source = max(by_source, key=lambda each: by_source[each])
        standard = self.value / float(norm.ppf(1 - alpha / 2) + norm.ppf(POWER))
        left = standard**2 - (self.error**2 - by_source[source])
        return source, by_source[source] / left if left > 0 else math.inf


def contrast(parts: Iterable[tuple[float, Gap]], spread_of: SpreadOf, *, continued: bool = False) -> Estimate:
    """Estimate the sum of c ln(gap) over parts (c, gap).

    continued: each training of one side goes on from one of the other, and so they are pairs, with a spread of their
    own.  There is no interval where a gap is not above 0, is of nothing that is drawn, or of one training of a kind
    never trained twice.
    """
    of_gap: dict[int, tuple[float, Gap]] = {}
    for weight, gap in parts:
        of_gap[id(gap)] = (of_gap.get(id(gap), (0.0, gap))[0] + weight, gap)
    there = [(weight, gap) for weight, gap in of_gap.values() if abs(weight) > 1e-12]
    value = math.fsum(weight * gap.log for weight, gap in there)
    fewest = min((len(gap.values) for _, gap in there), default=0)
    if not math.isfinite(value):
        return Estimate(math.nan, (), fewest)
    of_trainings = _of_pairs(there) if continued else _of_trainings(there, spread_of)
    if of_trainings is None:
        return Estimate(value, (), fewest)
    return Estimate(value, (*_of_instances(there), *of_trainings), fewest)


def _of_instances(parts: Sequence[tuple[float, Gap]]) -> Iterable[Term]:
    by_draws: dict[str, list[tuple[float, Gap]]] = defaultdict(list)
    for weight, gap in parts:
        by_draws[gap.drawn].append((weight, gap))
    for same in by_draws.values():
        errors = sum(weight * gap.errors / fmean(gap.values) for weight, gap in same)
        count = min(gap.instances for _, gap in same)
        yield Term(float(np.sum(np.square(errors))), max(count - 1, 1), "instances")


def _of_trainings(parts: Sequence[tuple[float, Gap]], spread_of: SpreadOf) -> list[Term] | None:
    """A model's own spread, moderated by that of its kind."""
    by_run: dict[str, list[tuple[float, Gap]]] = defaultdict(list)
    for weight, gap in parts:
        by_run[gap.run.partition("@")[0]].append((weight, gap))  # checkpoints of a stage are of the same trainings
    terms: list[Term] = []
    of_pool: dict[Spread, list[tuple[float, float]]] = defaultdict(list)  # variances, degrees of freedom
    for same in by_run.values():
        count = min(len(gap.values) for _, gap in same)
        logs = [math.fsum(weight * math.log(gap.values[k]) for weight, gap in same) for k in range(count)]
        spreads = [spread_of(gap) for _, gap in same]
        there = [spread for spread in spreads if spread is not None]
        if len(there) == len(same):
            prior = _prior(same, there)
            pool = min(there, key=lambda spread: spread.freedom)
            freedom = min(PRIOR_FREEDOM, pool.freedom)
            squares = freedom * prior + (count - 1) * (variance(logs) if count > 1 else 0.0)
            of_pool[pool].append((squares / (freedom + count - 1) / count, freedom + count - 1))
        elif count > 1:
            terms.append(Term(variance(logs) / count, count - 1, "trainings"))
        else:
            return None
    for pool, each in of_pool.items():
        total = math.fsum(of for of, _ in each)
        freedom_of_sum = total**2 / (math.fsum(of**2 / freedom for of, freedom in each) or 1.0)
        # The pool's error is one for all its models, whose own trainings it mostly holds: no more freedom than it has.
        terms.append(Term(total, max(1.0, min(freedom_of_sum, pool.freedom)), "trainings"))
    return [term for term in terms if term.variance]


def _prior(parts: Sequence[tuple[float, Gap]], spreads: Sequence[Spread]) -> float:
    """The variance of one training's part: its luck is alike in all uses on a test set, and on all test sets."""
    by_set: dict[str, list[float]] = defaultdict(list)
    for (weight, gap), spread in zip(parts, spreads, strict=True):
        by_set[gap.drawn].append(weight * spread.share)

    def of_sum(shares: Sequence[float], alike: float) -> float:
        return alike * math.fsum(shares) ** 2 + (1 - alike) * math.fsum(share**2 for share in shares)

    # Without its sign a difference of two test sets counts as their sum, which only widens the interval.
    return of_sum([math.sqrt(of_sum(shares, IN_TWO_USES)) for shares in by_set.values()], ALIKE)


def _of_pairs(parts: Sequence[tuple[float, Gap]]) -> list[Term] | None:
    """The spread of a contrast over trainings that go on from one another."""
    count = min(len(gap.values) for _, gap in parts)
    if count < 2:
        return None
    logs = [math.fsum(weight * math.log(gap.values[k]) for weight, gap in parts) for k in range(count)]
    return [Term(variance(logs) / count, count - 1, "trainings")]


def mean_of(values: Sequence[float]) -> Estimate:
    """Estimate the mean of independent values; without an interval where there is one."""
    terms = (Term(variance(values) / len(values), len(values) - 1, "cells"),) if len(values) > 1 else ()
    return Estimate(fmean(values), terms)


def slope(x: Sequence[float], y: Sequence[float]) -> Estimate:
    """Estimate the slope of ln y on ln x by least squares; without an interval below three points."""
    logs = np.log(np.asarray(x, float)), np.log(np.asarray(y, float))
    return regression(np.stack([np.ones(len(x)), logs[0]], 1), logs[1], [0.0, 1.0])


def regression(design: ArrayLike, y: ArrayLike, weights: Sequence[float]) -> Estimate:
    """Estimate a combination of the coefficients of least squares, (points, coefficients) and (points,)."""
    x, values = np.asarray(design, float), np.asarray(y, float)
    inverse = np.linalg.pinv(x)  # (coefficients, points)
    coefficients, c = inverse @ values, np.asarray(weights, float)
    freedom = len(values) - np.linalg.matrix_rank(x)
    if freedom < 1:
        return Estimate(float(c @ coefficients))
    square = float(np.sum((values - x @ coefficients) ** 2)) / freedom
    return Estimate(float(c @ coefficients), (Term(square * float(np.sum((c @ inverse) ** 2)), freedom, "cells"),))


def law(design: ArrayLike, gaps: Sequence[Gap], weights: Sequence[float], spread_of: SpreadOf) -> Estimate:
    """Estimate a combination of the coefficients of ln gap on a design, with models as random effects.

    design (models, coefficients).  Models differ from the law by their trainings and by themselves, which the residual
    variance holds.  The test instances, which all share, add theirs.
    """
    estimate = regression(design, [gap.log for gap in gaps], weights)
    c = np.asarray(weights, float) @ np.linalg.pinv(np.asarray(design, float))
    of_trainings = contrast(zip(c.tolist(), gaps, strict=True), spread_of)
    if not estimate.terms or not of_trainings.terms:
        return replace(estimate, terms=(), trainings=of_trainings.trainings)
    models = tuple(replace(term, source="trainings") for term in estimate.terms)
    instances = tuple(term for term in of_trainings.terms if term.source == "instances")
    return Estimate(estimate.value, (*models, *instances), of_trainings.trainings)


def spread_ratio(x: ArrayLike, y: ArrayLike, groups: Sequence[Sequence[int]]) -> Estimate:
    """Estimate ln of y's spread around one line in x over that around a line of each group, each by degree of freedom.

    x, y: (models,); groups: positions of models, of which each may stand in several.  The groups' lines are taken to
    hold, so that their residual is the noise, which both spreads share: the variance is that of two quadratic forms of
    one normal vector (delta method), of as many degrees of freedom as the groups' lines leave.
    """
    x, y = np.asarray(x, float), np.asarray(y, float)

    def residual(lines: Sequence[Sequence[int]]) -> tuple[NDArray[np.float64], int]:
        """The form (models, models) whose value is the pooled residual variance, and its degrees of freedom."""
        form, freedom = np.zeros((len(x), len(x))), 0
        for on in lines:
            design = np.stack([np.ones(len(on)), x[list(on)]], 1)
            form[np.ix_(on, on)] += np.eye(len(on)) - design @ np.linalg.pinv(design)
            freedom += len(on) - 2
        return form / freedom, freedom

    (one, _), (each, freedom) = residual([range(len(x))]), residual(groups)
    around_one, noise = float(y @ one @ y), float(y @ each @ y)
    off = max(0.0, float(y @ one @ one @ y) - noise * float(np.sum(one**2)))  # by what the one line misses
    of_one = (2 * noise**2 * float(np.sum(one**2)) + 4 * noise * off) / around_one**2
    of_both = of_one + 2 * float(np.sum(each**2)) - 4 * noise * float(np.sum(one * each)) / around_one
    return Estimate(0.5 * math.log(around_one / noise), (Term(max(of_both, 0.0) / 4, freedom, "trainings"),))


def equivalence_power(estimate: Estimate, margin: float) -> float:
    """The probability that an interval lies within a margin on both sides of a truth that is level."""
    if not estimate.terms or not estimate.error:
        return float(bool(estimate.terms))
    t = _t()
    freedom = min(estimate.freedom, 1e6)
    return max(0.0, 2 * float(t.cdf(margin / estimate.error - t.ppf((1 + LEVEL) / 2, freedom), freedom)) - 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p values of one family (Holm, 1979), in their order."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, least = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = least
    return adjusted


def _t() -> Any:
    from scipy.stats import t

    return t
