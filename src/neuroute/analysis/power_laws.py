"""Power laws of the optimality gap (scaling, Eq. 2-7), and intervals of their exponents.

Gaps are in percent.  A law is fitted by least squares on one of two scales, which weigh the points differently and
can give clearly different exponents: `linear` (the residuals of the gap itself, as in the paper's Figure 2) or
`log-log` (the residuals of its logarithm, as in its Eq. 6).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from neuroute.analysis.intervals import Array, Interval, percentile_interval

Scale = Literal["linear", "log-log"]


class FitError(ValueError):
    """These points determine no law; the message says why, in words fit for a figure's note."""


@dataclass(frozen=True)
class PowerLaw:
    """Gap(x) = (x_c / x)^alpha (scaling, Eq. 2-4)."""

    alpha: float
    x_c: float  # in the unit of x; infinite or zero when alpha is about zero
    log_one: float  # ln Gap(1) = alpha ln x_c
    r2: float  # on the linear scale, whichever scale was fitted
    mape: float  # mean absolute percentage error, %, over the positive gaps
    dropped: int  # points that do not count: of no finite gap or no positive x, on the log-log scale of no positive gap

    def __call__(self, x: ArrayLike) -> Array:
        return np.asarray(np.exp(self.log_one - self.alpha * np.log(np.asarray(x, float))))


@dataclass(frozen=True)
class BivariateLaw:
    """Gap(u, v) = constant u^-beta_u v^-beta_v; the constant is u_c^beta_u v_c^beta_v (scaling, Eq. 5 and 6)."""

    beta_u: float
    beta_v: float
    constant: float
    r2: float
    mape: float
    points: int
    dropped: int  # gaps <= 0, which have no logarithm

    def __call__(self, u: ArrayLike, v: ArrayLike) -> Array:
        u, v = np.asarray(u, float), np.asarray(v, float)
        return np.asarray(np.exp(np.log(self.constant) - self.beta_u * np.log(u) - self.beta_v * np.log(v)))


@dataclass(frozen=True)
class ShiftedPowerLaw:
    """Gap(t) = alpha_t t^-beta_t + gamma with gamma >= 0 (scaling, Eq. 7)."""

    alpha: float
    beta: float
    gamma: float  # %

    def __call__(self, t: ArrayLike) -> Array:
        return self.alpha * np.asarray(t, float) ** -self.beta + self.gamma


def _quality(y: Array, fitted: Array) -> tuple[float, float]:
    """R^2, and the mean of |fitted - y| / y in percent over the positive y."""
    spread, positive = ((y - y.mean()) ** 2).sum(), y > 0
    r2 = float(1 - ((y - fitted) ** 2).sum() / spread) if spread > 0 else float("nan")
    return r2, float(100 * np.mean(np.abs(fitted - y)[positive] / y[positive]))


def _log_log(x: Array, gaps: Array) -> tuple[Array, Array]:
    """Ordinary least squares of ln gap on ln x for each row of gaps (rows, points) -> (ln Gap(1), alpha), each (rows,).

    Gaps <= 0 get no weight; rows with fewer than two distinct x left give NaN.
    """
    weight = (gaps > 0).astype(float)
    log_x = np.broadcast_to(np.log(x), gaps.shape)
    log_y = np.log(np.where(gaps > 0, gaps, 1.0))
    count = weight.sum(1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean_x, mean_y = (weight * log_x).sum(1) / count, (weight * log_y).sum(1) / count
        dx = weight * (log_x - mean_x[:, None])
        spread = (dx**2).sum(1)
        slope = (dx * (log_y - mean_y[:, None])).sum(1) / np.where(spread > 1e-12, spread, np.nan)
    return mean_y - slope * mean_x, -slope


def _linear(x: Array, gaps: Array) -> tuple[Array, Array]:
    """Least squares of the gap itself for each row: Levenberg-Marquardt on (ln Gap(1), alpha) from the log-log fit.

    The same minimum as `scipy.optimize.curve_fit`, for all rows at once.  All gaps count, negative ones too.
    """
    shift = np.log(x).mean()  # centred, so that the two parameters hardly correlate
    u = np.log(x) - shift
    a, alpha = _log_log(np.exp(u), gaps)
    damping = np.full(len(gaps), 1e-3)

    def residuals(a: Array, alpha: Array) -> tuple[Array, Array]:
        fitted = np.exp(a[:, None] - alpha[:, None] * u)
        return gaps - fitted, fitted

    with np.errstate(all="ignore"):
        error, fitted = residuals(a, alpha)
        cost = (error**2).sum(1)
        for _ in range(200):
            j_a, j_alpha = fitted, -u * fitted
            aa, ab, bb = (j_a**2).sum(1), (j_a * j_alpha).sum(1), (j_alpha**2).sum(1)
            g_a, g_alpha = (j_a * error).sum(1), (j_alpha * error).sum(1)
            aa, bb = aa * (1 + damping), bb * (1 + damping)
            det = aa * bb - ab**2
            step_a, step_alpha = (bb * g_a - ab * g_alpha) / det, (aa * g_alpha - ab * g_a) / det
            new_error, new_fitted = residuals(a + step_a, alpha + step_alpha)
            new_cost = (new_error**2).sum(1)
            better = new_cost <= cost
            moved = better & (np.abs(step_a) + np.abs(step_alpha) > 1e-12)
            a, alpha = np.where(better, a + step_a, a), np.where(better, alpha + step_alpha, alpha)
            error, fitted = np.where(better[:, None], new_error, error), np.where(better[:, None], new_fitted, fitted)
            cost = np.where(better, new_cost, cost)
            damping = np.where(better, damping / 5, damping * 5)
            if not (moved | (~better & (damping < 1e8) & np.isfinite(cost))).any():
                break
    return a + alpha * shift, alpha


def fit(x: ArrayLike, gaps: ArrayLike, scale: Scale = "linear") -> PowerLaw:
    """Fit Eq. 2, 3 or 4 to points x (any positive unit) and gaps (%).

    `log-log` drops gaps <= 0; `linear` keeps them.  `dropped` says how many points do not count.  Raises FitError with
    fewer than two positive gaps at two different x: no law goes through such points.
    """
    every_x, every_y = np.asarray(x, float), np.asarray(gaps, float)
    counts = np.isfinite(every_y) & (every_x > 0)
    at, y = every_x[counts], every_y[counts]
    used = y > 0 if scale == "log-log" else np.isfinite(y)
    if len(np.unique(at[y > 0])) < 2:
        raise FitError(f"{int((y > 0).sum())} of {len(y)} gaps are positive, a power law needs two")
    log_one, alpha = (float(v[0]) for v in (_log_log if scale == "log-log" else _linear)(at, y[None]))
    if not (np.isfinite(log_one) and np.isfinite(alpha)):
        raise FitError(f"least squares on the {scale} scale found no minimum")
    with np.errstate(all="ignore"):
        x_c = float(np.exp(np.float64(log_one) / alpha)) if alpha else float("nan")
    fitted = np.exp(log_one - alpha * np.log(at))
    return PowerLaw(alpha, x_c, log_one, *_quality(y[used], fitted[used]), len(every_y) - int(used.sum()))


def fit_bivariate(u: ArrayLike, v: ArrayLike, gaps: ArrayLike) -> BivariateLaw:
    """Fit Eq. 5 (u = depth, v = width) or Eq. 6 (u = parameters, v = depth / width) on the log-log scale.

    Raises FitError when fewer than three positive gaps, or points on one line, leave the exponents open.
    """
    u, v, y = (np.asarray(values, float) for values in (u, v, gaps))
    used = y > 0
    design = np.column_stack([np.ones(used.sum()), -np.log(u[used]), -np.log(v[used])])
    if used.sum() < 3 or np.linalg.matrix_rank(design) < 3:
        raise FitError(f"{int(used.sum())} of {len(y)} gaps are positive, a law in two variables needs three")
    c, beta_u, beta_v = (float(b) for b in np.linalg.lstsq(design, np.log(y[used]), rcond=None)[0])
    fitted = np.exp(design @ [c, beta_u, beta_v])
    quality = _quality(y[used], fitted)
    return BivariateLaw(beta_u, beta_v, float(np.exp(c)), *quality, int(used.sum()), int((~used).sum()))


def size_and_shape_exponents(beta_d: float, beta_w: float) -> tuple[float, float]:
    """(beta_n, beta_a) of Eq. 6 from Eq. 5, with A = D / W and N proportional to D W^2."""
    return (beta_d + beta_w) / 3, (2 * beta_d - beta_w) / 3


def fit_shifted(t: ArrayLike, gaps: ArrayLike, *, relative: bool = False) -> ShiftedPowerLaw:
    """Fit Eq. 7 by least squares of the gap, or (`relative`) of the gap's relative error, which sees the small gaps.

    For a given beta the law is linear in alpha and gamma, so only beta is searched.  Raises FitError with fewer than
    three positive gaps.  Gaps <= 0 are dropped when `relative`.
    """
    t, y = np.asarray(t, float), np.asarray(gaps, float)
    used = y > 0 if relative else np.isfinite(y)
    if (y > 0).sum() < 3 or len(np.unique(t[used])) < 3:
        raise FitError(f"{int((y > 0).sum())} of {len(y)} gaps are positive, a shifted power law needs three")
    unit = float(np.exp(np.log(t).mean()))  # in this unit t^-beta stays near one
    s, z = t[used] / unit, y[used]
    weight = 1 / z if relative else np.ones_like(z)

    from scipy.optimize import minimize_scalar, nnls

    def best(beta: float) -> tuple[Array, float]:
        """((alpha, gamma), root of the sum of squares)"""
        return nnls(np.stack([s**-beta * weight, weight], axis=1), z * weight)

    grid = np.geomspace(1e-3, 20, 300)
    i = int(np.argmin([best(beta)[1] for beta in grid]))
    low, high = grid[max(i - 1, 0)], grid[min(i + 1, len(grid) - 1)]
    beta = float(minimize_scalar(lambda b: best(b)[1], bounds=(low, high), method="bounded", options={"xatol": 1e-9}).x)
    (alpha, gamma), _ = best(beta)
    return ShiftedPowerLaw(float(alpha * unit**beta), beta, float(gamma))


def rounding_interval(x: ArrayLike, gaps: ArrayLike, half_unit: float) -> tuple[float, float]:
    """Smallest and largest log-log exponent of the gaps that round to `printed` (half_unit: 0.00005 at four decimals).

    Exact: the exponent is linear in each ln gap.  Zero gaps are dropped.
    """
    x, y = np.asarray(x, float), np.asarray(gaps, float)
    x, y = x[y > 0], y[y > 0]
    is_small = np.log(x) < np.log(x).mean()
    up = np.where(is_small, y + half_unit, np.maximum(y - half_unit, 1e-12))
    down = np.where(is_small, np.maximum(y - half_unit, 1e-12), y + half_unit)
    return fit(x, down, "log-log").alpha, fit(x, up, "log-log").alpha


def resampled_exponents(x: ArrayLike, gaps: Array, scale: Scale = "linear") -> Array:
    """Fit alpha to each row of resampled gaps (resamples, points) at x (points,) -> (resamples,); NaN without a fit."""
    x = np.asarray(x, float)
    if len(np.unique(x)) < 2:
        return np.full(len(gaps), np.nan)
    return (_log_log if scale == "log-log" else _linear)(x, gaps)[1]


def bootstrap_bivariate(u: ArrayLike, v: ArrayLike, gaps: Array) -> Mapping[str, Interval]:
    """Intervals of beta_u and beta_v of `fit_bivariate` over resampled gaps (resamples, points)."""
    exponents = []
    for row in gaps:
        try:
            law = fit_bivariate(u, v, row)
            exponents.append((law.beta_u, law.beta_v))
        except FitError:
            exponents.append((np.nan, np.nan))
    values = np.array(exponents)
    return {"beta_u": percentile_interval(values[:, 0]), "beta_v": percentile_interval(values[:, 1])}


def predict(design: ArrayLike, gaps: ArrayLike, at: ArrayLike) -> tuple[float, float, float]:
    """Return the gap of a model that a law was not fitted to: low, middle and high (Student's t, 95 %, of one model).

    design: (models, coefficients) of the regression of ln gap; gaps: (models,) in %; at: (coefficients,) of the other.
    Raises FitError where no more models than coefficients have positive gaps.
    """
    from scipy.stats import t

    positive = np.asarray(gaps, float) > 0
    x, y, there = np.asarray(design, float)[positive], np.log(np.asarray(gaps, float)[positive]), np.asarray(at, float)
    freedom = len(y) - x.shape[1]
    if freedom < 1:
        raise FitError(f"{len(y)} positive gaps")
    coefficients = np.linalg.lstsq(x, y, rcond=None)[0]
    variance = ((y - x @ coefficients) ** 2).sum() / freedom * (1 + there @ np.linalg.pinv(x.T @ x) @ there)
    middle, half = there @ coefficients, t.ppf(0.975, freedom) * variance**0.5
    low, centre, high = np.exp([middle - half, middle, middle + half])
    return float(low), float(centre), float(high)
