"""A paper's claims against what was measured: two sides, their difference with its interval, and the verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from neuroute.core.dotted import resolve
from neuroute.core.errors import NeurouteError
from neuroute.plan.claims import Claim
from neuroute.plan.objects import Dataset, Decoding
from neuroute.rendering.cells import MEAN_OF_GAPS, interval_cell, resampled, resampled_mean_of_gaps
from neuroute.rendering.columns import described
from neuroute.rendering.study import Study
from neuroute.rendering.table import Cell, Format, Value, fixed

Verdict = Literal["agrees", "does not", "cannot be seen", "not judged"]
VERDICTS: tuple[Verdict, ...] = ("agrees", "does not", "cannot be seen")
FEWEST = 6  # paired instances: fewer all lie on one side by chance more often than in 5 % (sign test)
RULE = (
    "A claim sets one side above another. It agrees here if the 95 % interval of their difference lies above 0, does "
    f"not if it lies below, and cannot be seen if the interval holds 0, if fewer than {FEWEST} instances would decide, "
    "if it is about times and the machine was busy, or if this scale does not measure it. Intervals cover what each "
    "claim says they are over, not the spread between training seeds. A verdict is on the models of this scale, not on "
    "those of the paper."
)
NO_VERDICT = (
    "No claim is judged at this scale: its networks are so small and so shortly trained that a trend says nothing of "
    "the paper's. What stands here shows that everything works."
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
    """What is claimed to be above 0, with both sides."""

    quantity: str  # in words: "gap of A less that of B, in points"
    difference: Cell
    sides: tuple[Side, ...]
    over: str  # what the interval is over
    at: str  # what the numbers were measured on
    format: Format = TWO_DECIMALS
    busy: str = ""  # of a claim about times: the load, where the machine was too busy

    @property
    def verdict(self) -> Verdict:
        """Apply RULE."""
        low, high = self.difference.low, self.difference.high
        if self.busy or low is None or high is None or low <= 0 <= high:
            return "cannot be seen"
        return "agrees" if low > 0 else "does not"

    @property
    def why(self) -> str:
        """Say why a claim cannot be seen; nothing where it can."""
        if self.verdict != "cannot be seen":
            return ""
        if self.difference.measured is None:
            return "not measured at this scale"
        if self.busy:
            return f"times do not count, as the machine was busy ({self.busy})"
        return "too few to tell by" if self.difference.low is None else "the interval holds 0"


@dataclass(frozen=True)
class Judged:
    """A claim with what was found; without a finding `why` says what is missing."""

    claim: Claim
    finding: Finding | None
    why: str = ""
    is_judged: bool = True  # not at scales whose trends mean nothing

    @property
    def verdict(self) -> Verdict:
        if not self.is_judged:
            return "not judged"
        return self.finding.verdict if self.finding else "cannot be seen"


def judge(claim: Claim, study: Study) -> Judged:
    """Look at a claim in the measurements of its artifact, if its scale judges; what is missing is said, not raised."""
    try:
        finding: Finding = resolve(claim.function)(study)
    except NeurouteError as error:
        return Judged(claim, None, f"not measured yet: {error}", study.scale.verdicts)
    return Judged(claim, finding, finding.why, study.scale.verdicts)


# -- sides and their differences --------------------------------------------------------------------------------------


def gap_side(
    study: Study, label: str, run: str, dataset: Dataset, published: Value, decoding: Decoding | str = "greedy"
) -> Side:
    """Gap of a model in %, as ratio of means, with its resamples over the test instances, if they are enough."""
    gap, lengths = study.gap(run, dataset, decoding), study.lengths(run, dataset, decoding)
    samples = resampled(*lengths) if gap is not None and lengths and dataset.count >= FEWEST else None
    return Side(label, gap, published, samples)


def mean_of_gaps_side(
    study: Study, label: str, run: str, dataset: Dataset, published: Value, decoding: Decoding | str = "greedy"
) -> Side:
    """Mean of the instances' gaps of a model in %, otherwise as `gap_side`."""
    gap = study.value(MEAN_OF_GAPS, run, dataset, decoding)
    enough = gap is not None and dataset.count >= FEWEST
    return Side(label, gap, published, resampled_mean_of_gaps(study, run, dataset, decoding) if enough else None)


def less(better: Side, worse: Side, dataset: Dataset, what: str = "gap") -> Finding:
    """Claim that the first gap (%) is the smaller one, on a test set."""
    return above(worse, better, f"{what}, in points", INSTANCES, described(dataset))


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
