"""A paper's claims against what was measured: differences with their intervals, and the verdict."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from neuroute.analysis.spreads import LEVEL, Spread, Term, half_width
from neuroute.plan.claims import Claim
from neuroute.rendering.cells import interval_cell
from neuroute.rendering.table import Cell, Format, Value, fixed

Verdict = Literal["supported", "contradicted", "inconclusive", "not measured", "not judged"]
VERDICTS: tuple[Verdict, ...] = ("supported", "contradicted", "inconclusive", "not measured")
RULE = (
    "A claim sets one side below another, often in several cells. It is supported if each 95 % interval of a measured "
    "difference lies above 0, contradicted if one lies below at a level that counts how many there are, inconclusive "
    "otherwise, and not measured where no cell is. Instances are drawn in pairs; trainings differ by their own spread "
    "where there are three or more, else by a pooled one, which is named. A verdict is on the models of this scale, "
    "not on those of the paper."
)
NO_VERDICT = (
    "No claim is judged at this scale: its networks are so small and so shortly trained that a trend says nothing of "
    "the paper's. What stands here shows that everything works."
)


def by_chance(verdicts: Mapping[Verdict, int]) -> str:
    """Say how many verdicts luck alone would decide."""
    looked_at = sum(verdicts.values()) - verdicts["not measured"]
    return (
        f"Of {looked_at} claims that are measured, chance alone would decide up to {(1 - LEVEL) * looked_at:.0f} if "
        "no difference were real."
    )


TWO_DECIMALS = fixed(2)
INSTANCES = "test instances (paired bootstrap)"


@dataclass(frozen=True)
class Side:
    """One of the two things that a claim compares."""

    label: str
    measured: float | None
    published: Value = None
    samples: NDArray[np.float64] | None = None  # (resamples,), paired with those of the other side


@dataclass(frozen=True)
class Finding:
    """A difference that a claim wants above 0, with both sides."""

    quantity: str  # in words: "gap of A less that of B, in points"
    difference: Cell
    sides: tuple[Side, ...]
    over: str  # what the interval is over
    at: str  # what the numbers were measured on
    format: Format = TWO_DECIMALS
    busy: str = ""  # of a claim about times: the load, where the machine was too busy
    terms: tuple[Term, ...] = ()  # whose sum is the variance of the difference, where the interval follows from them

    def sign(self, level: float = LEVEL) -> int:
        """On which side of 0 the interval of this level lies, 1 or -1; 0 if it holds 0 or there is none."""
        d = self.difference
        low, high = d.low, d.high
        if self.terms and isinstance(d.measured, float):
            half = half_width(self.terms, level)
            low, high = d.measured - half, d.measured + half
        if self.busy or low is None or high is None or low <= 0 <= high:
            return 0
        return 1 if low > 0 else -1

    @property
    def why(self) -> str:
        """Say why this difference decides nothing; nothing where it does."""
        if self.difference.measured is None:
            return "not measured at this scale"
        if self.busy:
            return f"times do not count, as the machine was busy ({self.busy})"
        if self.sign():
            return ""
        return "nothing to draw an interval from" if self.difference.low is None else "the interval holds 0"


@dataclass(frozen=True)
class Judged:
    """A claim with what was found; without findings `missing` says why."""

    claim: Claim
    findings: tuple[Finding, ...] = ()
    missing: str = ""
    is_judged: bool = True  # not at scales whose trends mean nothing

    @property
    def measured_findings(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.difference.measured is not None]

    @property
    def verdict(self) -> Verdict:
        """Apply RULE."""
        if not self.is_judged:
            return "not judged"
        if not self.measured_findings:
            return "not measured"
        if any(finding.sign(1 - (1 - LEVEL) / len(self.measured_findings)) < 0 for finding in self.measured_findings):
            return "contradicted"
        return "supported" if all(finding.sign() > 0 for finding in self.measured_findings) else "inconclusive"

    @property
    def why(self) -> str:
        """Say what is missing, or what of the measured differences leaves the claim open."""
        if not self.measured_findings:
            return self.missing or "not measured at this scale"
        reasons = [finding.why for finding in self.measured_findings if finding.why]
        if len(self.measured_findings) == 1:
            return "".join(reasons)
        signs = [finding.sign() for finding in self.measured_findings]
        return f"of {len(signs)} differences {signs.count(1)} above 0, {signs.count(-1)} below, {signs.count(0)} open"


@cache
def _spreads() -> list[dict[str, str]]:
    with (files("neuroute.rendering") / "spreads.csv").open() as file:
        return list(csv.DictReader(file))


def spread_of(network: str, problem: str, times: float) -> Spread:
    """Return the pooled spread of a class of networks over trainings, on test sets so many times the training's size.

    Where none was kept for trainings of that class, on that problem and as far from the training's size, that of others
    counts; beyond all of them the one that was farthest.
    """
    others = [(network, problem), (network, "tsp"), ("any", problem), ("any", "tsp")]
    rows = [row for kind in others for row in _spreads() if (row["network"], row["problem"]) == kind]
    row = next((row for row in rows if float(row["times"]) >= times), rows[-1])
    return Spread(float(row["share"]), int(row["freedom"]))


# -- sides and their differences --------------------------------------------------------------------------------------


def above(upper: Side, lower: Side, what: str, over: str, at: str, format: Format = TWO_DECIMALS) -> Finding:
    """Claim that the first side lies above the second."""
    gap = None if upper.measured is None or lower.measured is None else upper.measured - lower.measured
    samples = None if upper.samples is None or lower.samples is None else upper.samples - lower.samples
    difference = interval_cell(gap, samples, printed_difference(upper, lower))
    return Finding(f"{upper.label} less {lower.label}: {what}", difference, (upper, lower), over, at, format)


def printed_difference(upper: Side, lower: Side) -> float | None:
    """Subtract the printed numbers, where both sides have one."""
    a, b = upper.published, lower.published
    return a - b if isinstance(a, int | float) and isinstance(b, int | float) else None


def mean_interval(values: Sequence[float], published: Value = None) -> Cell:
    """Mean of independent values, with its 95 % interval by Student's t where there are two."""
    if not values:
        return Cell(None, published)
    mean = math.fsum(values) / len(values)
    if len(values) < 2:
        return Cell(mean, published)
    from scipy.stats import t

    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values))
    half = float(t.ppf(0.975, len(values) - 1)) * spread
    return Cell(mean, published, mean - half, mean + half)


def slope_interval(x: Sequence[float], y: Sequence[float], published: Value = None) -> Cell:
    """Slope of ln y on ln x by least squares, with its 95 % interval by Student's t where there are three points."""
    if len(set(x)) < 2:
        return Cell(None, published)
    from scipy.stats import linregress, t

    fit = linregress([math.log(v) for v in x], [math.log(v) for v in y])
    if len(x) < 3:
        return Cell(float(fit.slope), published)
    half = float(t.ppf(0.975, len(x) - 2)) * float(fit.stderr)
    return Cell(float(fit.slope), published, float(fit.slope) - half, float(fit.slope) + half)
