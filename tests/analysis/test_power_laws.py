"""The fits on the paper's printed numbers, and how they behave on few, noisy, zero and negative gaps.

Expected values: an independent check of the paper (scipy's curve_fit; Figure 2 from the parameters of Table 1 as
printed, in millions, and the three-decimal gaps of Table 12; compute fits from Table 18 with the FLOPs convention of
Table 17, zero gaps dropped).
"""

from importlib.resources import files

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import curve_fit

from neuroute.analysis import RESAMPLES
from neuroute.analysis import power_laws as laws
from neuroute.analysis.intervals import percentile_interval, resampled_gaps
from neuroute.evaluation.flops import solution_paper
from neuroute.pipeline.papers.scaling.tables import DecoderOnly

DEPTHS, WIDTHS = (6, 12, 24, 42), (128, 256, 512)
HEADS = {128: 8, 256: 16, 512: 16}
BEAMS = (1, 2, 4, 8, 16, 32, 64)
Shape = tuple[int, int]


def published(number: int, metric: str) -> dict[tuple[int, ...], float]:
    """(depth, width) or, in Table 18, (depth, width, beam) -> value."""
    with (files("neuroute.pipeline.papers.scaling") / "published" / f"table{number}.csv").open() as file:
        rows = pd.read_csv(file)
    found = {}
    for row in rows[(rows.metric == metric) & (rows.method == "Ours")].itertuples():
        given = dict(part.split("=") for part in row.method_params.split(";"))
        key = tuple(int(given[k]) for k in ("depth", "width", *(["beam"] if number == 18 else [])))
        found[key] = float(row.value)
    return found


@pytest.fixture(scope="module")
def millions() -> dict[tuple[int, ...], float]:
    return published(1, "params_m")


@pytest.fixture(scope="module")
def gaps() -> dict[tuple[int, ...], float]:
    return published(12, "gap_pct")


def curve(keys: list[Shape], x: dict, y: dict) -> laws.PowerLaw:
    return laws.fit([x[k] for k in keys], [y[k] for k in keys])


def test_global_fit_of_figure_2a(millions, gaps) -> None:
    law = curve(list(gaps), millions, gaps)
    assert law.r2 == pytest.approx(0.794, abs=5e-4)  # printed
    assert law.mape == pytest.approx(34.39, abs=5e-3)  # printed
    assert law.alpha == pytest.approx(0.5996929, rel=1e-4)
    assert law.x_c == pytest.approx(0.3169981, rel=1e-4)


def test_width_curves_of_figure_2b(millions, gaps) -> None:
    found = {d: curve([(d, w) for w in WIDTHS], millions, gaps) for d in DEPTHS}
    assert np.mean([f.r2 for f in found.values()]) == pytest.approx(0.989, abs=5e-4)  # printed
    assert np.mean([f.mape for f in found.values()]) == pytest.approx(4.09, abs=5e-3)  # printed
    expected = {6: 0.3485465, 12: 0.4028265, 24: 0.2555388, 42: 0.2422010}  # printed: 0.24-0.40
    assert {d: f.alpha for d, f in found.items()} == pytest.approx(expected, rel=1e-5)
    assert found[24].x_c == pytest.approx(0.00079757, rel=1e-4)


def test_depth_curves_of_figure_2c(millions, gaps) -> None:
    found = {w: curve([(d, w) for d in DEPTHS], millions, gaps) for w in WIDTHS}
    assert np.mean([f.r2 for f in found.values()]) == pytest.approx(0.988, abs=5e-4)  # printed
    assert np.mean([f.mape for f in found.values()]) == pytest.approx(9.68, abs=5e-3)  # printed
    expected = {128: 1.0501369, 256: 0.9790636, 512: 1.0047749}  # printed: 0.98-1.05
    assert {w: f.alpha for w, f in found.items()} == pytest.approx(expected, rel=1e-5)


def test_log_scale_gives_other_exponents(millions, gaps) -> None:
    keys = [(d, 256) for d in DEPTHS]
    x, y = [millions[k] for k in keys], [gaps[k] for k in keys]
    assert laws.fit(x, y, "linear").alpha == pytest.approx(0.98, abs=0.005)
    assert laws.fit(x, y, "log-log").alpha == pytest.approx(0.82, abs=0.005)
    everything = laws.fit([millions[k] for k in gaps], list(gaps.values()), "log-log")
    assert everything.alpha == pytest.approx(0.471, abs=5e-4)


def test_bivariate_law_of_equations_5_and_6(millions, gaps) -> None:
    depth, width = (np.array([k[i] for k in gaps], float) for i in (0, 1))
    y = np.array(list(gaps.values()))
    law = laws.fit_bivariate(depth, width, y)
    assert (law.beta_u, law.beta_v) == pytest.approx((0.8853009, 0.5942935), rel=1e-6)
    assert (law.r2, law.mape) == pytest.approx((0.9669570, 8.4326361), rel=1e-6)
    beta_n, beta_a = laws.size_and_shape_exponents(law.beta_u, law.beta_v)
    assert (beta_n, beta_a) == pytest.approx((0.4931981, 0.3921028), rel=1e-6)  # printed: 0.5, 0.4
    assert (2**-beta_n, 2**-beta_a) == pytest.approx((0.71, 0.76), abs=0.005)  # printed
    direct = laws.fit_bivariate([millions[k] for k in gaps], depth / width, y)
    assert (direct.beta_u, direct.beta_v) == pytest.approx((0.4954974, 0.3954288), rel=1e-6)
    assert law(6, 128) == pytest.approx(law.constant * 6**-law.beta_u * 128**-law.beta_v)


COMPUTE = {  # log-log, linear, rounding interval of the log-log exponent
    (6, 128): (1.0550298, 0.9841590, 1.0531648, 1.0569076),  # the paper prints 0.82
    (6, 256): (1.3963016, 1.0120746, 1.3852617, 1.4078792),
    (6, 512): (1.3653703, 1.1633340, 1.3513467, 1.3802610),  # 1.34
    (12, 128): (1.2946926, 1.0679204, 1.2851307, 1.3046682),
    (12, 256): (1.5220970, 1.2251432, 1.4800002, 1.5745952),
    (12, 512): (1.4793524, 1.2893813, 1.4330197, 1.5367462),
    (24, 128): (1.5176360, 1.2315461, 1.4744977, 1.5713060),
    (24, 256): (1.6228896, 1.3157933, 1.5415499, 1.7517058),
    (24, 512): (1.8370342, 1.3940754, 1.7369169, 1.9984227),
    (42, 128): (1.6546676, 1.2878539, 1.5659612, 1.7946203),  # 1.71
    (42, 256): (1.6871905, 1.5711085, 1.5892157, 1.8451297),
    (42, 512): (1.8915733, 1.6978636, 1.8174633, 1.9848671),
}


@pytest.mark.parametrize(("shape", "expected"), COMPUTE.items())
def test_compute_fits_of_table_18(shape: Shape, expected: tuple[float, ...]) -> None:
    gap = published(18, "gap_pct")
    greedy = solution_paper(DecoderOnly(*shape, HEADS[shape[1]]).decision, 100) / 1e9
    x = np.array([beam * greedy for beam in BEAMS])
    y = np.array([gap[(*shape, b)] for b in BEAMS])
    assert laws.fit(x, y, "log-log").alpha == pytest.approx(expected[0], rel=1e-6)
    assert laws.fit(x[y > 0], y[y > 0], "linear").alpha == pytest.approx(expected[1], rel=1e-5)
    assert laws.rounding_interval(x, y, 0.00005) == pytest.approx(expected[2:], rel=1e-6)


TIME = {  # alpha_t, beta_t on the linear scale; beta_t, gamma on the relative scale; t = beam x Table 12's minutes
    (6, 128): (0.1615318, 0.9841588, 1.0543665, 0),
    (6, 256): (0.1989808, 1.0120747, 1.6415084, 0),
    (6, 512): (0.3539977, 1.1633340, 1.3609001, 0),
    (12, 128): (0.1360498, 1.0679206, 1.2980913, 0),
    (12, 256): (0.1746708, 1.2251460, 1.5247096, 0),
    (12, 512): (0.3872344, 1.2893814, 1.4766321, 0),
    (24, 128): (0.1342339, 1.2315459, 1.5142088, 0),
    (24, 256): (0.2902622, 1.3157923, 1.6144903, 0),
    (24, 512): (0.6957968, 1.3943895, 1.8219449, 0),
    (42, 128): (0.1730025, 1.2878543, 1.6674318, 2.5523e-6),
    (42, 256): (0.6232409, 1.5712167, 3.1547701, 1.1441e-4),
    (42, 512): (2.0878850, 1.6982906, 2.9397191, 2.0980e-4),
}


@pytest.mark.parametrize(("shape", "expected"), TIME.items())
def test_time_fits(shape: Shape, expected: tuple[float, ...]) -> None:
    gap, seconds = published(18, "gap_pct"), published(12, "time_s")[shape]
    t, y = np.array(BEAMS) * seconds / 60, np.array([gap[(*shape, b)] for b in BEAMS])
    linear, relative = laws.fit_shifted(t, y), laws.fit_shifted(t, y, relative=True)
    assert (linear.alpha, linear.beta) == pytest.approx(expected[:2], rel=2e-3)
    assert linear.gamma == 0
    assert relative.beta == pytest.approx(expected[2], rel=1e-5)
    assert relative.gamma == pytest.approx(expected[3], rel=1e-3)
    assert (relative.gamma == 0) == (expected[3] == 0)


def test_linear_fit_is_curve_fit_with_noise_zero_and_negative_gaps() -> None:
    generator = np.random.default_rng(1)
    x = np.geomspace(1, 60, 9)
    y = 2 * x**-0.7 + generator.normal(0, 0.1, 9)
    y[6], y[8] = 0.0, -0.05
    (c, alpha), _ = curve_fit(lambda x, c, a: c * x**-a, x, y, p0=(2, 0.7))
    law = laws.fit(x, y)
    assert (np.exp(law.log_one), law.alpha) == pytest.approx((c, alpha), rel=1e-5)
    assert np.isfinite(law.mape)
    of_positive = laws.fit(x[y > 0], y[y > 0], "log-log")
    assert laws.fit(x, y, "log-log").alpha == pytest.approx(of_positive.alpha)


def test_points_that_do_not_count_are_counted() -> None:
    x, y = [1, 2, 4, 8, 16, -1], [1.0, 0.5, 0.25, np.nan, 0.0, 3.0]
    for scale, dropped in (("log-log", 3), ("linear", 2)):
        assert laws.fit(x, y, scale).dropped == dropped
        assert laws.fit(x[:3], y[:3], scale).dropped == 0
    assert laws.fit(x, y, "log-log").alpha == pytest.approx(1)


def test_two_points_are_met_exactly_on_both_scales() -> None:
    for scale in ("linear", "log-log"):
        law = laws.fit([1, 4], [1.0, 0.25], scale)
        assert (law.alpha, law.x_c) == pytest.approx((1, 1))
        assert law([1, 2, 4]) == pytest.approx([1, 0.5, 0.25])


@pytest.mark.parametrize("scale", ["linear", "log-log"])
@pytest.mark.parametrize("y", [[0.0, 0.0, 0.0], [1.0, 0.0, -1.0], [-1.0, -2.0, -3.0]])
def test_too_few_positive_gaps_say_so(y: list[float], scale: laws.Scale) -> None:
    with pytest.raises(laws.FitError, match="of 3 gaps are positive"):
        laws.fit([1, 2, 3], y, scale)


def test_equal_x_and_collinear_designs_say_so() -> None:
    with pytest.raises(laws.FitError):
        laws.fit([2, 2], [1, 0.5])
    with pytest.raises(laws.FitError):
        laws.fit_bivariate([1, 2, 4], [1, 2, 4], [1, 0.5, 0.2])
    with pytest.raises(laws.FitError):
        laws.fit_shifted([1, 2, 3], [1, 0.5, -0.2])


def test_shifted_law_finds_its_floor() -> None:
    t = np.array([1, 2, 4, 8, 16, 32.0])
    law = laws.fit_shifted(t, 3 * t**-1.2 + 0.05)
    assert (law.alpha, law.beta, law.gamma) == pytest.approx((3, 1.2, 0.05), rel=1e-4)
    assert law.gamma != 0
    assert laws.fit_shifted(t, 3 * t**-1.2).gamma == pytest.approx(0, abs=1e-6)


def test_resampled_gaps_are_paired_and_centred_on_the_gap() -> None:
    generator = np.random.default_rng(0)
    references = generator.uniform(7, 8, 400)
    first = references * (1 + generator.uniform(0, 0.1, 400))
    gaps = resampled_gaps(np.stack([first, first + 0.01 * references]), references)
    assert gaps.shape == (RESAMPLES, 2)
    assert gaps[:, 1] - gaps[:, 0] == pytest.approx(1.0)  # the second model is 1% longer on every instance
    assert gaps[:, 0].mean() == pytest.approx(100 * (first.mean() / references.mean() - 1), abs=0.05)
    again = resampled_gaps(np.stack([first, first + 0.01 * references]), references)
    assert (gaps == again).all()


def test_bootstrap_interval_covers_the_fit_and_counts_failures() -> None:
    generator = np.random.default_rng(5)
    x = np.array([1.0, 2, 4, 8])
    samples = x**-0.8 * (1 + generator.normal(0, 0.02, (200, 4)))
    for scale in ("linear", "log-log"):
        interval = percentile_interval(laws.resampled_exponents(x, samples, scale))
        assert interval.low < 0.8 < interval.high
        assert interval.failed == 0
        none = percentile_interval(laws.resampled_exponents(x, -samples, scale))
        assert none.failed == 200
        assert np.isnan(none.low)


def test_bootstrap_of_the_bivariate_law() -> None:
    generator = np.random.default_rng(5)
    d, w = np.repeat([1.0, 2, 4], 2), np.tile([8.0, 16], 3)
    found = laws.bootstrap_bivariate(d, w, d**-0.9 * w**-0.5 * np.exp(generator.normal(0, 0.01, (50, 6))))
    assert found["beta_u"].low < 0.9 < found["beta_u"].high
    assert found["beta_v"].low < 0.5 < found["beta_v"].high


def test_a_law_foretells_a_model_that_it_was_not_fitted_to() -> None:
    """Its interval holds the truth in 95 % of draws."""
    rng = np.random.default_rng(0)
    design = np.column_stack([np.ones(12), *rng.random((2, 12))])
    logs = design @ [1.0, -0.8, -0.3]
    low, middle, high = laws.predict(design[:-1], np.exp(logs[:-1]), design[-1])
    assert low == pytest.approx(middle) == pytest.approx(high) == pytest.approx(np.exp(logs[-1]))
    inside = 0
    for _ in range(2000):
        gaps = np.exp(logs + 0.1 * rng.standard_normal(12))
        low, _, high = laws.predict(design[:-1], gaps[:-1], design[-1])
        inside += bool(low < gaps[-1] < high)
    assert inside / 2000 == pytest.approx(0.95, abs=0.015)
    with pytest.raises(laws.FitError, match="3 positive gaps"):
        laws.predict(design[:4], [1.0, 2.0, -1.0, 3.0], design[-1])
