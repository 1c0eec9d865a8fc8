"""The best scaling factor: known parabolas, sweeps without a minimum, interpolation, and files that are none."""

from pathlib import Path

import numpy as np
import pytest
from refusals import one_line

from neuroute.analysis.rescaling import factor_for, fit_parabola, read_best

FACTORS = np.array([1.0, 1.2, 1.5, 2.0, 2.5, 3.0])


def test_an_exact_parabola_is_recovered() -> None:
    lengths = 0.7 * FACTORS**2 - 2.8 * FACTORS + 75.0
    fit = fit_parabola(FACTORS, lengths)
    assert (fit.a, fit.b, fit.c) == pytest.approx((0.7, -2.8, 75.0), rel=1e-9)
    assert fit.best == pytest.approx(2.0, rel=1e-9)
    assert fit.interior
    np.testing.assert_allclose(fit(FACTORS), lengths, rtol=1e-12)


def test_the_fit_is_that_of_least_squares_in_any_order() -> None:
    rng = np.random.default_rng(1)
    lengths = 0.3 * (FACTORS - 1.8) ** 2 + 7.7 + rng.normal(0, 0.01, len(FACTORS))
    expected = np.polyfit(FACTORS, lengths, 2)
    order = rng.permutation(len(FACTORS))
    fit = fit_parabola(FACTORS[order], lengths[order])
    np.testing.assert_allclose([fit.a, fit.b, fit.c], expected, rtol=1e-9)
    assert fit.best == pytest.approx(-expected[1] / (2 * expected[0]))
    assert fit.best not in FACTORS


@pytest.mark.parametrize(
    ("lengths", "best"),
    [
        (-((FACTORS - 1.8) ** 2) + 10, 3.0),  # concave: the vertex is the longest
        ((FACTORS - 4.0) ** 2 + 10, 3.0),  # the minimum lies beyond the sweep
        ((FACTORS - 0.5) ** 2 + 10, 1.0),  # before it
        (2 * FACTORS + 10, 1.0),  # a line
        (np.full(6, 7.7), 1.0),  # the factor changes nothing
    ],
    ids=["concave", "beyond", "before", "line", "flat"],
)
def test_without_a_minimum_inside_the_best_swept_factor_is_taken(lengths: np.ndarray, best: float) -> None:
    fit = fit_parabola(FACTORS, lengths)
    assert not fit.interior
    assert fit.best == best
    np.testing.assert_allclose(fit(FACTORS), lengths, rtol=1e-9)


def test_ties_fall_on_no_stretching() -> None:
    assert fit_parabola([0.5, 1.0, 2.0, 3.0], [4.0, 4.0, 4.0, 4.0]).best == 1.0
    assert fit_parabola([0.5, 1.5, 3.0], [4.0, 5.0, 4.0]).best == 0.5


def test_factors_between_sizes() -> None:
    sizes, best = np.array([100, 250, 10_000]), np.array([1.1, 1.3, 3.1])
    assert [factor_for(n, sizes, best) for n in sizes] == best.tolist()
    assert factor_for(175, sizes, best) == pytest.approx(1.2)
    assert factor_for(5125, sizes, best) == pytest.approx(2.2)
    assert factor_for(51, sizes, best) == 1.1
    assert factor_for(20_000, sizes, best) == 3.1
    assert factor_for(7, [1000], [1.7]) == 1.7


def save(path: Path, **arrays: np.ndarray) -> None:
    np.savez(path, **{f"rescaling/{name}": array for name, array in arrays.items()})  # type: ignore[arg-type]


def test_the_best_factors_are_read(tmp_path: Path) -> None:
    save(tmp_path / "r.npz", sizes=np.array([100, 500]), best=np.array([1.0, 2.5]))
    sizes, best = read_best(tmp_path / "r.npz", "pens/pens_a")
    assert sizes.tolist() == [100, 500]
    assert sizes.dtype == np.int64
    assert best.tolist() == [1.0, 2.5]


@pytest.mark.parametrize("what", ["pens/pens_a", "pens/pens_a/uniform"])
def test_missing_factors_say_what_to_run(what: str, tmp_path: Path) -> None:
    for path in (None, tmp_path / "none.npz"):
        with one_line(f"^{what}: the model's best scaling factors are missing", "`neuroute evaluate pens/pens_a/resc"):
            read_best(path, what)
