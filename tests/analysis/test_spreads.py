"""Intervals of differences hold the truth as often as they say, for made-up trainings whose spreads are known."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_ind

from neuroute.analysis.intervals import Spread, Term, half_width, of_trainings, pooled, resampled_gaps

KEPT = Path(__file__).parents[2] / "docs" / "measured" / "checks" / "interval_holds.csv"
REPEATS, RESAMPLES = 1500, 100
GAPS = (10.0, 12.0)  # true gaps in % of the two models
# trainings of each model; models in the pool, three trainings each; spread as a share of the gap; instances
CASES = [
    (1, 1, 24, 0.09, 200),
    (1, 1, 24, 0.16, 64),
    (1, 1, 2, 0.25, 64),
    (3, 3, 24, 0.09, 128),
    (6, 6, 24, 0.09, 128),
    (1, 3, 24, 0.09, 128),
    (1, 1, 24, 0.0, 64),
]
# Where trainings hardly spread and instances are few, these count twice: the interval is too long, never too short.
CAUTIOUS = (3, 3, 24, 0.01, 16)


def covers(rng: np.random.Generator, trainings: tuple[int, int], models: int, share: float, count: int) -> bool:
    """Whether one interval of made-up numbers holds the true difference."""
    pool = [rng.uniform(5, 20) * (1 + share * rng.normal(size=3)) for _ in range(models)]
    spread = pooled([gaps.tolist() for gaps in pool])
    reference = rng.normal(7, 0.3, count)
    common = rng.normal(0, 4, count)  # what makes an instance hard for both
    gaps, lengths = [], []
    for truth, k in zip(GAPS, trainings, strict=True):
        of_trainings_here = truth * (1 + share * rng.normal(size=k))
        each = of_trainings_here[:, None] + common + rng.normal(0, 3, (k, count))
        lengths.append((reference * (1 + each / 100)).mean(0))
        gaps.append((100 * ((reference * (1 + each / 100)).mean(1) / reference.mean() - 1)).tolist())
    samples = resampled_gaps(np.array(lengths), reference, RESAMPLES, int(rng.integers(2**31)))
    terms = [Term(float(np.var(samples[:, 1] - samples[:, 0], ddof=1)), count - 1)]
    terms += [of_trainings(each, spread) for each in gaps] if share else []
    difference = np.mean(gaps[1]) - np.mean(gaps[0])
    return abs(difference - (GAPS[1] - GAPS[0])) <= half_width(terms)


@pytest.mark.slow
@pytest.mark.parametrize("case", [*CASES, CAUTIOUS], ids=lambda case: "-".join(map(str, case)))
def test_intervals_hold_as_often_as_they_say(case: tuple[int, int, int, float, int]) -> None:
    a, b, models, share, count = case
    rng = np.random.default_rng(20261125)
    held = 100 * np.mean([covers(rng, (a, b), models, share, count) for _ in range(REPEATS)])
    assert 93 <= held <= (100 if case == CAUTIOUS else 97)
    assert f"{a} and {b},{models},{100 * share:.0f},{count},{held:.1f},{REPEATS}," in KEPT.read_text()


def test_own_spreads_give_welch() -> None:
    first, second = [10.0, 11.0, 12.5], [14.0, 13.0, 17.0, 15.0]
    unused = Spread(9.0, 1)
    half = half_width([of_trainings(gaps, unused) for gaps in (first, second)])
    expected = ttest_ind(second, first, equal_var=False).confidence_interval()
    assert half == pytest.approx((expected.high - expected.low) / 2)


def test_a_pool_is_in_error_once() -> None:
    spread = Spread(0.1, 3)
    half = half_width([of_trainings([10.0], spread), of_trainings([20.0], spread)])
    assert half == pytest.approx(3.182446 * math.hypot(1.0, 2.0))
    assert half_width([]) == half_width([Term(0.0, 3)]) == 0


def test_spreads_are_pooled_by_their_freedom() -> None:
    assert pooled([[9.0, 11.0], [8.0, 10.0, 12.0]]) == Spread(pytest.approx(math.sqrt((0.02 + 0.08) / 3)), 3)
