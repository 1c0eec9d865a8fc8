"""Contrasts of log gaps: their variances are those of Welch and Smyth, and intervals hold what they say."""

import csv
import math
from pathlib import Path
from statistics import variance

import numpy as np
import pytest
from scipy.stats import linregress, ttest_1samp, ttest_ind

from neuroute.analysis.contrasts import (
    ALIKE,
    IN_TWO_USES,
    Estimate,
    Gap,
    Spread,
    Term,
    contrast,
    equivalence_power,
    holm,
    law,
    mean_of,
    slope,
    spread_ratio,
)

KEPT = Path(__file__).parents[2] / "docs" / "measured" / "checks" / "verdicts.csv"
POOL = Spread(0.1, 40)


def gap(*values: float, run: str = "a", network: str = "A", noise: float = 0.0, drawn: str = "set") -> Gap:
    return Gap(values, np.array([noise, 0.0]), drawn, 100, network, "tsp", 1.0, run)


def of_trainings(estimate: Estimate) -> list[Term]:
    return [term for term in estimate.terms if term.source == "trainings"]


def of_kind(each: Gap) -> Spread | None:
    return POOL if each.network == "A" else None


def test_without_a_prior_the_own_spreads_give_welch() -> None:
    first, second = (4.0, 4.4, 5.0), (6.0, 7.0, 9.0, 8.0)
    estimate = contrast([(-1, gap(*first, run="a", network="B")), (1, gap(*second, run="b", network="B"))], of_kind)
    expected = ttest_ind(np.log(second), np.log(first), equal_var=False)
    assert estimate.interval() == pytest.approx(tuple(expected.confidence_interval()))
    assert estimate.p_above() == pytest.approx(expected.pvalue)
    assert estimate.trainings == 3


def test_own_spreads_are_moderated_by_that_of_their_kind() -> None:
    values = (4.0, 4.4, 5.0)
    (term,) = of_trainings(contrast([(1, gap(*values))], of_kind))
    assert term.variance == pytest.approx((8 * 0.1**2 + 2 * variance([*map(math.log, values)])) / 10 / 3)
    assert term.freedom == 10
    (alone,) = of_trainings(contrast([(1, gap(5.0))], of_kind))
    assert (alone.variance, alone.freedom) == (pytest.approx(0.01), 8)


def test_a_kind_that_was_trained_once_has_no_interval() -> None:
    pair = [(-1.0, gap(4.0)), (1.0, gap(5.0, run="b", network="B"))]
    estimate = contrast(pair, of_kind)
    assert estimate.value == pytest.approx(math.log(5 / 4))
    assert (estimate.interval(), estimate.p_above(), estimate.power(1.0)) == (None, 1.0, 0.0)


def test_a_training_is_alike_on_all_test_sets() -> None:
    near, far = gap(4.0, drawn="near"), gap(9.0, drawn="far")
    (term,) = of_trainings(contrast([(0.5, near), (0.5, far)], of_kind))
    assert term.variance == pytest.approx(0.01 * (ALIKE + (1 - ALIKE) / 2))
    seeds = [gap(4.0, 5.0, 6.0), gap(9.0, 8.0, 7.0, drawn="far")]
    (of_sum,) = of_trainings(contrast([(0.5, each) for each in seeds], of_kind))
    logs = [0.5 * (math.log(a) + math.log(b)) for a, b in zip(seeds[0].values, seeds[1].values, strict=True)]
    prior = 0.01 * (ALIKE + (1 - ALIKE) / 2)
    assert of_sum.variance == pytest.approx((8 * prior + 2 * variance(logs)) / 10 / 3)


def test_a_training_used_in_two_ways_is_a_pair() -> None:
    ways = [(-1.0, gap(4.0)), (1.0, gap(5.0))]
    (term,) = of_trainings(contrast(ways, of_kind))
    assert term.variance == pytest.approx(0.01 * 2 * (1 - IN_TWO_USES))
    greedy, searched = (4.0, 5.0, 6.0), (3.6, 4.7, 5.5)
    changes = np.log(greedy) - np.log(searched)
    for run in ("a", "a@stage1"):
        (of_pairs,) = of_trainings(contrast([(-1, gap(*searched)), (1, gap(*greedy, run=run))], of_kind))
        assert of_pairs.variance == pytest.approx((8 * term.variance + 2 * changes.var(ddof=1)) / 10 / 3)


def test_the_error_of_a_pool_is_not_made_up_for_by_many_models() -> None:
    models = [(1.0, gap(5.0, run=str(i))) for i in range(12)]
    assert contrast(models, lambda each: Spread(0.1, 6)).freedom == pytest.approx(6)
    assert contrast(models, of_kind).freedom == pytest.approx(40)
    assert contrast([(1.0, gap(5.0, 5.5, 6.0))], lambda each: Spread(0.1, 6)).freedom == pytest.approx(6)


def test_instances_are_pairs_on_one_test_set_alone() -> None:
    def of(drawn: str) -> Estimate:
        pair = [(-1, gap(10.0, noise=1.0)), (1, gap(10.0, run="b", noise=1.0, drawn=drawn))]
        return contrast(pair, lambda _: Spread(0.0, 9))

    same, apart = of("set"), of("other")
    assert same.error == 0
    assert apart.error == pytest.approx(0.1 * 2**0.5)
    assert apart.freedom == pytest.approx(2 * 99)


def test_trainings_that_go_on_from_others_are_pairs() -> None:
    before, after = (10.0, 12.0, 15.0), (9.0, 11.2, 13.9)
    estimate = contrast([(1, gap(*before)), (-1, gap(*after, run="b"))], of_kind, continued=True)
    expected = ttest_1samp(np.log(before) - np.log(after), 0).confidence_interval()
    assert estimate.interval() == pytest.approx((expected.low, expected.high))
    assert contrast([(1, gap(2.0)), (-1, gap(1.0))], of_kind, continued=True).interval() is None


def test_a_gap_of_zero_has_no_ratio() -> None:
    estimate = contrast([(-1, gap(0.0)), (1, gap(1.0, run="b"))], of_kind)
    assert (estimate.interval(), estimate.p_above()) == (None, 1.0)


def test_means_and_slopes_by_student() -> None:
    values = [1.0, 2.0, 4.0]
    assert mean_of(values).interval() == pytest.approx(tuple(ttest_1samp(values, 0).confidence_interval()))
    assert mean_of([3.0]).interval() is None
    sizes, times = [10.0, 100.0, 1000.0, 2000.0], [1.0, 30.0, 50.0, 90.0]
    fit, estimate = linregress(np.log(sizes), np.log(times)), slope(sizes, times)
    assert (estimate.value, estimate.error, estimate.freedom) == pytest.approx((fit.slope, fit.stderr, 2))
    assert slope(sizes[:2], times[:2]).interval() is None


def test_a_law_has_what_models_differ_from_it_by() -> None:
    x = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    logs = 2 - 0.3 * x + np.array([0.05, -0.02, 0.01, -0.06, 0.02])
    gaps = [gap(*np.exp(log + np.array([-0.1, 0.0, 0.1])), run=str(i)) for i, log in enumerate(logs)]
    estimate = law(np.stack([np.ones(5), x], 1), gaps, (0, -1), of_kind)
    fit = linregress(x, logs)
    assert (estimate.value, estimate.error, estimate.freedom) == pytest.approx((-fit.slope, fit.stderr, 3))
    assert estimate.terms[0].source == "trainings"


def test_spreads_around_one_line_and_around_several() -> None:
    rng = np.random.default_rng(2)
    x, groups = np.array([1.0, 2, 3, 4] * 3) + np.repeat([0.0, 2, 4], 4), [[*range(k, k + 4)] for k in (0, 4, 8)]
    laws, noise, held = np.repeat([3.0, 2.5, 2.0], 4) - 0.2 * x, 0.1, 0
    off = np.polyfit(x, laws, 1, full=True)[1][0] / 10  # per degree of freedom, what one line misses
    for i in range(400):
        y = laws + noise * rng.normal(size=12)
        estimate = spread_ratio(x, y, groups)
        low, high = estimate.interval() or (0.0, 0.0)
        held += low <= 0.5 * math.log(1 + off / noise**2) <= high
        if i == 0:
            one = np.polyfit(x, y, 1, full=True)[1][0] / 10
            each = sum(np.polyfit(x[on], y[on], 1, full=True)[1][0] for on in groups) / 6
            assert estimate.value == pytest.approx(0.5 * math.log(one / each))
            assert estimate.freedom == pytest.approx(6)
    assert 90 <= 100 * held / 400 <= 98.5


def test_power_and_what_it_takes() -> None:
    estimate = Estimate(0.28, (Term(0.01, 1e6, "trainings"),))
    assert estimate.power(0.0) == pytest.approx(0.025, abs=1e-3)
    assert estimate.power(0.28) == pytest.approx(0.8, abs=5e-3)
    assert estimate.needed(0.05) == ("trainings", pytest.approx(1.0, abs=5e-3))
    assert estimate.needed(0.001)[1] > 1.5
    assert equivalence_power(estimate, 0.1) == 0
    assert equivalence_power(estimate, 1.0) == pytest.approx(1.0)
    both = Estimate(0.1, (Term(0.01, 1e6, "trainings"), Term(0.04, 1e6, "instances")))
    assert both.needed(0.05) == ("instances", math.inf)  # trainings alone leave it open


def test_holm_counts_the_family() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([1.0, 0.5]) == [1.0, 1.0]


@pytest.mark.slow
@pytest.mark.parametrize("sets", [1, 4])
def test_intervals_hold_as_often_as_they_say(sets: int) -> None:
    rng, held, repeats = np.random.default_rng(1), 0, 2000
    for _ in range(repeats):
        both = []
        for sign, run, level in ((-1.0, "a", 8.0), (1.0, "b", 10.0)):
            common = rng.normal(size=3)
            for i in range(sets):
                deviates = 0.6**0.5 * common + 0.4**0.5 * rng.normal(size=3)
                both.append((sign / sets, gap(*level * np.exp(0.1 * deviates), run=run, drawn=str(i))))
        low, high = contrast(both, of_kind).interval() or (0.0, 0.0)
        held += low <= math.log(10 / 8) <= high
    assert 93 <= 100 * held / repeats <= 98


def test_the_kept_simulation_holds_what_the_page_says() -> None:
    with KEPT.open() as file:
        rows = list(csv.DictReader(file))
    assert {row["form"] for row in rows} == {"tendency", "superlative", "universal", "level", "law"}
    assert all(int(row["repeats"]) >= 600 for row in rows)
    assert min(float(row["held_pct"]) for row in rows if row["held_pct"]) > 90
    assert max(float(row["wrong_pct"]) for row in rows) < 9
