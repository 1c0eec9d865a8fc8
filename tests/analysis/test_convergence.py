"""Spikes and failures of a training log."""

import math

import pytest

from neuroute.analysis.convergence import first_failure, largest_rise


@pytest.mark.parametrize(
    ("losses", "rise"),
    [([], 1), ([2.0], 1), ([4.0, 3.0, 1.0], 1), ([4.0, 2.0, 3.0, 1.0, 5.0, 0.9], 5), ([1.0, math.nan, 0.5], math.inf)],
)
def test_largest_rise_is_over_the_least_so_far(losses: list[float], rise: float) -> None:
    assert largest_rise(losses) == rise


def test_a_peak_rises_over_the_least_mean_before_it() -> None:
    assert largest_rise([4.0, 2.0, 2.0], [5.0, 3.0, 9.0]) == 4.5
    assert largest_rise([4.0, 2.0], [5.0, math.inf]) == math.inf


def test_first_failure_is_the_first_loss_that_is_no_number() -> None:
    assert first_failure([1.0, 2.0]) is None
    assert first_failure([1.0, math.inf, 1.0, math.nan]) == 1
    assert first_failure([math.nan]) == 0
