"""A paper's claims against what was measured: differences with their intervals, and the verdict."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from neuroute.analysis.spreads import ENOUGH, LEVEL, Spread, Term, half_width, of_trainings
from neuroute.core.dotted import resolve
from neuroute.core.errors import NeurouteError
from neuroute.plan.claims import Claim, Comparison
from neuroute.plan.paper import Paper
from neuroute.rendering.cells import interval_cell
from neuroute.rendering.study import Study
from neuroute.rendering.table import Behind, Cell, Format, Table, Value, fixed

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
    def measured(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.difference.measured is not None]

    @property
    def verdict(self) -> Verdict:
        """Apply RULE."""
        if not self.is_judged:
            return "not judged"
        if not self.measured:
            return "not measured"
        if any(finding.sign(1 - (1 - LEVEL) / len(self.measured)) < 0 for finding in self.measured):
            return "contradicted"
        return "supported" if all(finding.sign() > 0 for finding in self.measured) else "inconclusive"

    @property
    def why(self) -> str:
        """Say what is missing, or what of the measured differences leaves the claim open."""
        if not self.measured:
            return self.missing or "not measured at this scale"
        left = [finding.why for finding in self.measured if finding.why]
        if len(self.measured) == 1:
            return "".join(left)
        signs = [finding.sign() for finding in self.measured]
        return f"of {len(signs)} differences {signs.count(1)} above 0, {signs.count(-1)} below, {signs.count(0)} open"


def judge_all(paper: Paper, study_of: Callable[[str], Study], is_judged: bool = True) -> list[Judged]:
    """Look at what a paper claims; what is missing is said, not raised.

    study_of: name of an artifact -> it; raises NeurouteError where this scale does not draw it.
    Raises NeurouteError if a claim names cells that do not exist.
    """

    @cache
    def table_of(name: str) -> Table:
        study = study_of(name)
        table: Table = resolve(study.artifact.function)(study)
        return table

    def judge(claim: Claim) -> Judged:
        try:
            if claim.function:
                found: Finding = resolve(paper.claim_function(claim))(study_of(claim.artifact))
                return Judged(claim, (found,))
            tables = {name: table_of(name) for each in claim.compare for name in each.table}
        except NeurouteError as error:
            return Judged(claim, missing=f"not measured yet: {error}")
        return Judged(claim, tuple(compare(claim, tables)), claim.unjudged)

    return [replace(judge(claim), is_judged=is_judged) for claim in paper.claims()]


# -- comparisons of cells ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Entry:
    """A cell, and the names by which a comparison picks it."""

    names: Mapping[str, str]  # table, column, and the labels of its row
    cell: Cell


def compare(claim: Claim, tables: Mapping[str, Table]) -> Iterator[Finding]:
    """Yield the differences that a claim wants above 0; tables: by name.

    Raises NeurouteError if a comparison names a cell that is not there, or two by one name.
    """
    for comparison in claim.compare:
        of_tables = (
            _Entry({"table": name, "column": key} | labels, cell)
            for name in comparison.table
            for labels, key, cell in tables[name].cells()
        )
        entries = [entry for entry in of_tables if _is_meant(comparison, entry.names)]
        for lower, upper in comparison.pairs:
            where = f"claim '{claim.id}': {', '.join(comparison.table)}"
            sides = [_side(comparison, entries, name, where) for name in (lower, upper)]
            both = [key for key in sides[0] if key in sides[1]]
            if not both:
                raise NeurouteError(f"{where}: '{lower}' and '{upper}' have no column or row in common")
            if comparison.mean:
                cells = [[side[key] for key in both] for side in sides]
                yield _difference(comparison, (lower, upper), "means", *_means(*cells))
            else:
                for key in both:
                    yield _difference(comparison, (lower, upper), ", ".join(key), *(side[key] for side in sides))


def _is_meant(comparison: Comparison, names: Mapping[str, str]) -> bool:
    patterns = comparison.column or ("*",)
    is_of = all(names.get(label) == value for label, value in comparison.of.items())
    return is_of and any(fnmatchcase(names["column"], pattern) for pattern in patterns)


def _side(comparison: Comparison, entries: Sequence[_Entry], value: str, where: str) -> dict[tuple[str, ...], Cell]:
    """The cells whose label `by` has a value, by what else tells them apart."""
    place = [name for name in ("table", "column") if name != comparison.by]
    cells: dict[tuple[str, ...], Cell] = {}
    for entry in entries:
        if entry.names.get(comparison.by) == value:
            key = tuple(entry.names[name] for name in (*place, *comparison.each))
            if key in cells:
                raise NeurouteError(f"{where}: {comparison.by} '{value}' names several cells of {', '.join(key)}")
            cells[key] = entry.cell
    if not cells:
        raise NeurouteError(f"{where}: no cell whose {comparison.by} is '{value}'")
    return cells


def _means(lower: Sequence[Cell], upper: Sequence[Cell]) -> tuple[Cell, Cell]:
    """Average the cells of which both sides have numbers."""

    def numbers(cells: Sequence[Cell], name: str) -> list[float | None]:
        return [_number(getattr(cell, name)) for cell in cells]

    def mean(cells: Sequence[Cell], name: str) -> float | None:
        of_both = zip(numbers(cells, name), numbers(lower, name), numbers(upper, name), strict=True)
        values = [value for value, a, b in of_both if value is not None and a is not None and b is not None]
        return math.fsum(values) / len(values) if values else None

    def mean_cell(cells: Sequence[Cell]) -> Cell:
        of_gaps = _mean_behind([cell.behind for cell in cells if cell.measured is not None])
        return Cell(mean(cells, "measured"), mean(cells, "published"), at=cells[0].at, behind=of_gaps)

    return mean_cell(lower), mean_cell(upper)


def _mean_behind(of: Sequence[Behind | None]) -> Behind | None:
    there = [each for each in of if each is not None]
    if not there or len(there) < len(of):
        return None
    gaps = tuple(math.fsum(gaps) / len(there) for gaps in zip(*(each.gaps for each in there), strict=False))
    samples = np.mean([each.samples for each in there], axis=0)
    instances, times = min(each.instances for each in there), max(each.times for each in there)
    return replace(there[0], gaps=gaps, samples=samples, instances=instances, times=times)


def _difference(comparison: Comparison, labels: tuple[str, str], of: str, lower: Cell, upper: Cell) -> Finding:
    a, b = lower.measured, upper.measured
    gap = float(b) - float(a) if isinstance(a, int | float) and isinstance(b, int | float) else None
    sides = tuple(
        Side(label, _number(cell.measured), cell.published)
        for label, cell in zip(labels[::-1], (upper, lower), strict=True)
    )
    terms, over = _terms(upper.behind, lower.behind, comparison.one_training) if gap is not None else ((), "")
    half = half_width(terms) if terms and gap is not None else None
    bounds = (None, None) if half is None or gap is None else (gap - half, gap + half)
    difference = Cell(gap, printed_difference(*sides), *bounds)
    at = lower.at if lower.at == upper.at else f"{upper.at}; {lower.at}"
    return Finding(f"{labels[1]} less {labels[0]}: {of}", difference, sides, over, at, terms=terms)


def _number(value: Value) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _terms(upper: Behind | None, lower: Behind | None, one_training: bool) -> tuple[tuple[Term, ...], str]:
    """The variances of a difference of two gaps, and what they are over, in words; none without instances."""
    if upper is None or lower is None:
        return (), ""
    variance = float(np.var(upper.samples - lower.samples, ddof=1))
    terms = [Term(variance, min(upper.instances, lower.instances) - 1)]
    if one_training:
        return tuple(terms), f"{INSTANCES}, of one training"
    words = []
    for side in (upper, lower):
        spread = spread_of(side.network, side.problem, side.times)
        terms.append(of_trainings(side.gaps, spread))
        own = len(side.gaps) >= ENOUGH
        words.append(f"{len(side.gaps)} trainings" if own else f"trainings, {100 * spread.share:.0f} % of a gap")
    return tuple(terms), f"{INSTANCES} and {' and '.join(dict.fromkeys(words))} (Student's t)"


@cache
def _spreads() -> list[dict[str, str]]:
    with (files("neuroute.rendering") / "spreads.csv").open() as file:
        return list(csv.DictReader(file))


def spread_of(network: str, problem: str, times: float) -> Spread:
    """The pooled spread of a class of networks over trainings, on test sets so many times the training's size.

    Of a class that was never trained several times: that of all path networks.  Beyond the largest measured ratio its.
    """
    rows = _spreads()
    of_network = [row for row in rows if row["network"] == network] or [row for row in rows if row["network"] == "any"]
    of_problem = [row for row in of_network if row["problem"] == problem] or of_network
    by_times = sorted(of_problem, key=lambda row: float(row["times"]))
    row = next((row for row in by_times if float(row["times"]) >= times), by_times[-1])
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
