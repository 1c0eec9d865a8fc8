"""Resampling over instances and seeds: what is paired cancels.  Power, against textbook values and draws."""

import math

import numpy as np
import pytest
from scipy.stats import ttest_1samp, ttest_ind

from neuroute.analysis.intervals import (
    POWER,
    difference_interval,
    least_effect,
    mean_interval,
    power,
    resampled_means,
    seeds_needed,
    shares_better,
)

HARD = np.random.default_rng(0).normal(10, 5, 60)  # instances differ much


def test_what_instances_share_cancels_in_a_difference() -> None:
    found = difference_interval(HARD + 0.5, HARD)
    assert (found.low, found.high) == pytest.approx((0.5, 0.5))
    assert mean_interval(HARD).high - mean_interval(HARD).low > 1


def test_the_interval_of_a_mean_is_as_wide_as_its_standard_error_says() -> None:
    found, error = mean_interval(HARD), HARD.std() / np.sqrt(len(HARD))
    assert found.low < HARD.mean() < found.high
    assert found.high - found.low == pytest.approx(2 * 1.96 * error, rel=0.1)


def test_seeds_are_drawn_too() -> None:
    lucky = HARD[:, None] + np.array([-1.0, 1.0])  # on all instances alike
    assert resampled_means(HARD[:, None].repeat(2, 1)) == pytest.approx(resampled_means(HARD))
    both = resampled_means(lucky, 0) - resampled_means(lucky, 1)
    assert both.min() < -1 < 1 < both.max()  # two methods draw their seeds apart


def test_a_difference_over_few_seeds_has_students_t() -> None:
    luck = np.array([-1.0, 0.2, 0.5, 1.4])  # on all instances alike
    found = difference_interval(HARD[:, None] + luck, HARD)
    expected = ttest_1samp(luck, 0).confidence_interval()
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=0.2)
    several, fewer = np.random.default_rng(0).normal(0, 1, 12), np.random.default_rng(1).normal(5, 2, 9)
    both = difference_interval(HARD[:, None] + several, HARD[:, None] + fewer)
    welch = ttest_ind(several, fewer, equal_var=False).confidence_interval()
    assert (both.low, both.high) == pytest.approx((welch.low, welch.high), abs=0.3)


def test_shares_add_up_and_say_who_wins() -> None:
    shares = shares_better([HARD, HARD + 1, HARD, HARD + np.random.default_rng(1).normal(0, 3, 60)])
    assert shares + shares.T == pytest.approx(np.ones((4, 4)))
    assert shares[0, 1] == 1
    assert shares[0, 2] == 0.5
    assert shares_better([HARD, HARD + 1e-13])[0, 1] == 0.5  # the same tours, summed up from another node
    assert 0.01 < shares[0, 3] < 0.99


def test_what_is_no_pair_is_refused() -> None:
    with pytest.raises(ValueError, match="60 and 59 instances"):
        difference_interval(HARD, HARD[1:])


@pytest.mark.parametrize(("d", "of_each"), [(1.0, 17), (0.8, 26), (0.5, 64)])
def test_seeds_of_two_samples_are_those_of_the_tables(d: float, of_each: int) -> None:
    """Cohen (1988), Table 2.4.1: two-sided 5 %, power 0.80."""
    assert seeds_needed(d, 1.0, 0.0, math.inf) == of_each


def test_without_a_spread_of_seeds_it_is_the_paired_test() -> None:
    """d = 0.5 takes 34 pairs (two-sided 5 %, power 0.80)."""
    assert power(0.5, 0.0, 1.0, 1, 34) >= POWER > power(0.5, 0.0, 1.0, 1, 33)


def test_power_is_the_share_of_draws_that_are_significant() -> None:
    rng, seeds, effect = np.random.default_rng(0), 4, 1.5
    a, b = rng.normal(effect, 1, (20_000, seeds)), rng.normal(0, 1, (20_000, seeds))
    pooled = np.sqrt((a.var(1, ddof=1) + b.var(1, ddof=1)) / seeds)
    found = np.abs(a.mean(1) - b.mean(1)) / pooled > 2.446912  # t, 0.975, 6 degrees of freedom
    assert power(effect, 1.0, 0.0, seeds, math.inf) == pytest.approx(found.mean(), abs=0.01)


def test_the_least_effect_has_the_power() -> None:
    least = least_effect(0.6, 4.0, 3, 1000)
    assert least is not None
    assert power(least, 0.6, 4.0, 3, 1000) == pytest.approx(POWER, abs=1e-6)
    finer = least_effect(0.6, 4.0, 4, 1000)
    assert finer is not None
    assert finer < least


def test_a_large_effect_takes_two_seeds() -> None:
    assert seeds_needed(15.0, 1.0, 0.0, math.inf) == 2
    assert power(50.0, 1.0, 0.0, 3, math.inf) == 1


def test_without_any_spread_every_difference_is_told() -> None:
    assert least_effect(0.0, 0.0, 1, 100) == 0
    assert power(0.001, 0.0, 0.0, 1, 100) == 1
    assert seeds_needed(0.001, 0.0, 0.0, 100) == 1


def test_one_seed_finds_nothing_where_seeds_spread() -> None:
    assert power(10.0, 0.6, 4.0, 1, 1000) == 0
    assert least_effect(0.6, 4.0, 1, 1000) is None


def test_too_few_instances_are_never_enough() -> None:
    assert seeds_needed(0.1, 0.5, 4.0, 100) is None  # the instances' error alone is 0.4
