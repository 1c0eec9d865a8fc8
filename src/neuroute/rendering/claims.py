"""A paper's claims against what was measured: differences with their intervals, and the verdict."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from statistics import fmean, stdev
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from neuroute.analysis.intervals import LEVEL, MOST, Spread, Term, half_width, seeds_needed
from neuroute.plan.claims import Claim
from neuroute.rendering.cells import FEWEST, interval_cell
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


def in_short(scale: str, verdicts: Mapping[Verdict, int]) -> str:
    """Say how many claims there are at a scale, and what became of them."""
    words = ", ".join(f"{verdict} {verdicts[verdict]}" for verdict in VERDICTS if verdict in verdicts)
    if "not judged" in verdicts:
        words = "shown, not judged, as its networks are small"
    return f"{sum(verdicts.values())} claims at scale {scale}: {words}"


TWO_DECIMALS = fixed(2)
NEEDED = 2.8  # standard errors that a difference must have to be found with probability 0.8: 1.96 + 0.84
LACKS = f"gaps of two models, each on {FEWEST} instances or more"  # not of solvers, no times
INSTANCES = "test instances (paired bootstrap)"
INSTANCES_APART = "test instances of each (bootstrap)"  # of two test sets


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
    lacks: str = LACKS  # what it takes to have an interval, where there is none
    terms: tuple[Term, ...] = ()  # whose sum is the variance of the difference, where the interval follows from them
    log_ratio: float | None = None  # of which the terms are, where the difference is of a ratio

    def sign(self, level: float = LEVEL) -> int:
        """On which side of 0 the interval of this level lies, 1 or -1; 0 if it holds 0 or there is none."""
        d = self.difference
        low, high = d.low, d.high
        middle = d.measured if self.log_ratio is None else self.log_ratio
        if self.terms and isinstance(middle, float):
            half = half_width(self.terms, level)
            low, high = middle - half, middle + half
        if self.busy or low is None or high is None or low <= 0 <= high:
            return 0
        return 1 if low > 0 else -1

    @property
    def size(self) -> float:
        """The difference in its standard errors; 0 without an interval."""
        d = self.difference
        if not isinstance(d.measured, float) or d.low is None or d.high is None or d.low >= d.high:
            return 0.0
        return abs(d.measured) / (d.high - d.low)

    @property
    def cost(self) -> str:
        """Say what it takes to decide, if the difference is what it seems; nothing where it is decided."""
        if not self.why or self.difference.measured is None:
            return ""
        if self.busy:
            return "times again, on an idle machine"
        if self.difference.low is None:
            return self.lacks
        if not self.terms or self.log_ratio is not None or not isinstance(self.difference.measured, float):
            return "more trainings of each model" if self.lacks == LACKS else self.lacks
        instances = [term for term in self.terms if not term.trainings]
        trainings = [term.variance * term.trainings for term in self.terms if term.trainings]
        count = min((term.freedom + 1 for term in instances), default=math.inf)
        spread = math.sqrt(count * math.fsum(term.variance for term in instances)) if instances else 0.0
        if trainings:
            seed_sd = math.sqrt(math.fsum(trainings) / 2)
            seeds = seeds_needed(self.difference.measured, seed_sd, spread, count)
            return (
                f"{seeds:,} trainings of each" if seeds else f"more than {MOST:,} trainings, or more instances, of each"
            )
        needed = (NEEDED * spread / abs(self.difference.measured)) ** 2 if self.difference.measured else math.inf
        return f"{math.ceil(needed):,} instances" if needed < 1e6 else "never: no difference is seen"

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
    def cost(self) -> str:
        """Say what it takes to decide the hardest of the open differences; nothing where the claim is decided."""
        if self.verdict != "inconclusive":
            return ""
        open_ones = [finding for finding in self.measured_findings if finding.why]
        if not open_ones:  # one lies below 0, but not at the level of as many
            return "more trainings, or more instances, of each"
        return min(open_ones, key=lambda f: f.size).cost

    @property
    def why(self) -> str:
        """Say what is missing, or what of the measured differences leaves the claim open, and whom it did not meet."""
        if not self.measured_findings:
            return self.missing or "not measured at this scale"
        signs = [finding.sign() for finding in self.measured_findings]
        counts = f"{signs.count(1)} above 0, {signs.count(-1)} below, {signs.count(0)} open"
        said = f"of {len(signs)} differences {counts}" if len(signs) > 1 else self.measured_findings[0].why
        return "; ".join(filter(None, [said, self.absent and f"not measured: {', '.join(self.absent)}"]))

    @property
    def absent(self) -> list[str]:
        """The labels of sides that no finding has a number of: of a superlative the rivals that were not there."""
        sides = [side for finding in self.findings for side in finding.sides]
        there = {side.label for side in sides if side.measured is not None}
        return [label for label in dict.fromkeys(side.label for side in sides) if label not in there]


def tally(claims: Sequence[Judged]) -> dict[Verdict, int]:
    """How many claims have each verdict; where none is judged, how many there are."""
    is_judged = all(each.verdict != "not judged" for each in claims)
    return {v: sum(c.verdict == v for c in claims) for v in (VERDICTS if is_judged else ("not judged",))}


def told_in_short(scale: str, claims: Sequence[Judged]) -> str:
    """Say what became of all claims: on the report's first page, in README and on the page of what reproduces."""
    short = f"{in_short(scale, tally(claims))}."
    return f"{short} {headlines_decided(claims)}." if all(c.verdict != "not judged" for c in claims) else short


def headlines_decided(claims: Sequence[Judged]) -> str:
    """Say how many of the headline claims that need no GPU are supported or contradicted."""
    headlines = [each for each in claims if each.claim.weight == "headline"]
    small = [each for each in headlines if not each.claim.gpu]
    decided = sum(each.verdict in ("supported", "contradicted") for each in small)
    share = f" ({100 * decided / len(small):.0f} %)" if small else ""
    return f"{len(headlines)} are headlines, {len(small)} of them need no GPU; of these {decided}{share} are decided"


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


def mean_interval(values: Sequence[float]) -> Cell:
    """Mean of independent values, with its 95 % interval by Student's t where there are two."""
    if len(values) < 2:
        return Cell(values[0] if values else None)
    from scipy.stats import t

    mean = fmean(values)
    half = float(t.ppf(0.975, len(values) - 1)) * stdev(values) / math.sqrt(len(values))
    return Cell(mean, None, mean - half, mean + half)


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
