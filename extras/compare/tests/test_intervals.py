"""Resampling over instances and seeds: what is paired cancels."""

import numpy as np
import pytest
from scipy.stats import ttest_1samp, ttest_ind

from neuroute_compare.summary import (
    difference_interval,
    mean_interval,
    resampled_means,
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
