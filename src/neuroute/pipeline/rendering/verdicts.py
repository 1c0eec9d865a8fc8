"""Verdicts on a paper's claims: one number each, by its form, behind a gate that says whether anything moves.

And the headlines of a run: them in short, with its best gaps, and what has nothing measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from neuroute.analysis.contrasts import Estimate, equivalence_power, holm
from neuroute.analysis.intervals import LEVEL
from neuroute.core.dotted import resolve
from neuroute.core.errors import NeurouteError
from neuroute.core.files import check_stated, read_json
from neuroute.core.lazy import pd
from neuroute.datasets.benchmarks import library
from neuroute.pipeline.plan.claims import WHY, Claim, Gate
from neuroute.pipeline.plan.paper import Paper
from neuroute.pipeline.plan.plan import Plan
from neuroute.pipeline.rendering.comparisons import Evidence, Finding, Unit, cells_of, findings
from neuroute.specs.evaluations import BenchmarkEvaluation

Verdict = Literal["supported", "contradicted", "inconclusive", "regime not sensitive", "not measured", "not judged"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)[:-1]
RULE = (
    "Each claim is one number, its form fixed before measuring: the relative difference of two gaps over the named "
    "cells. Supported: the 95 % interval lies on the claim's side; contradicted: on the other; else inconclusive. "
    "A claim of being best must beat every baseline. Resampling is paired by instance; seed variance is shrunk to that "
    "of its kind of network; headline claims share one Holm correction."
)
NO_VERDICT = (
    "No claim is judged at this scale: its networks are too small and too shortly trained. The numbers show that "
    "everything runs."
)
ALPHA = 1 - LEVEL
SHARE, EXPONENT = math.log(1 / 0.8), 0.1  # the effects whose power is told: a fifth of the gap, a tenth of a power

# -- the gate ----------------------------------------------------------------------------------------------------------

CUT_BY_UPDATES, CUT_BY_SIZE = 0.25, 0.30  # of the middle model's gap, with four times the samples; of the smallest's
Sensitivity = Literal["sensitive", "not sensitive", "unchecked"]


@dataclass(frozen=True)
class Regime:
    """Whether trainings of a paper at a scale move with what they are given: cuts of the gap as shares, if known."""

    by_updates: float | None = None
    by_size: float | None = None

    @property
    def sensitivity(self) -> Sensitivity:
        """In a word; unchecked where the scale lacks a run that it takes."""
        pairs = ((self.by_updates, CUT_BY_UPDATES), (self.by_size, CUT_BY_SIZE))
        if any(cut is not None and cut < least for cut, least in pairs):
            return "not sensitive"
        return "unchecked" if None in (self.by_updates, self.by_size) else "sensitive"

    @property
    def words(self) -> str:
        """The line above what is judged."""
        cuts = [
            f"{text} {'?' if cut is None else f'{100 * cut:.0f} %'} (least {100 * least:.0f} %)"
            for text, cut, least in (
                ("four times the samples cut the middle model's gap by", self.by_updates, CUT_BY_UPDATES),
                ("the largest model's is below the smallest's by", self.by_size, CUT_BY_SIZE),
            )
        ]
        return f"Regime {self.sensitivity}: {'; '.join(cuts)}."


def regime(gate: Gate | None, evidence: Evidence) -> Regime:
    """Read from tables what the gate asks for.

    Raises NeurouteError, in one line, if it names a cell that is not there.
    """
    if gate is None:
        return Regime()
    exponent, size = None, None
    try:
        of, table = gate.updates, evidence.table(gate.updates.table)
        cells = [cell for names, key, cell in cells_of(table) if key == of.column and of.of.items() <= names.items()]
        if len(cells) != 1:
            raise LookupError(f"gate: {of.table}: {len(cells)} cells of {of.column} where {of.of}; name one")
        if isinstance(cells[0].measured, float):
            exponent = 1 - 4 ** -cells[0].measured
        pretended = Claim(id="gate", claim="", where="", weight="detail", printed="supports", form="tendency",
                          compare=(gate.size,))  # fmt: skip
        (finding,) = findings(pretended, {name: evidence.table(name) for name in gate.size.table})
        ratio = math.nan if finding.estimate is None else finding.estimate.value  # NaN of a gap of 0
        size = None if math.isnan(ratio) else 1 - math.exp(-ratio)
    except LookupError as error:
        raise NeurouteError(str(error)) from None
    except NeurouteError as error:
        if str(error).startswith("claim 'gate'"):
            raise
    return Regime(exponent, size)


# -- verdicts ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Judged:
    """A claim with what was measured of it; without findings `missing` says why."""

    claim: Claim
    findings: tuple[Finding, ...] = ()
    missing: str = ""
    is_judged: bool = True  # not at scales whose trends mean nothing
    regime: Regime = Regime()
    p_of_family: float | None = None  # adjusted for the other headlines
    counted: int = 1  # headlines that it is tested together with: the undecided ones, by Holm

    @property
    def measured(self) -> list[Finding]:
        """The findings that have a number."""
        return [finding for finding in self.findings if finding.estimate is not None]

    @property
    def compares_trainings(self) -> bool:
        """Whether it sets trainings against each other, which the gate is about."""
        return any(finding.of_trainings for finding in self.measured)

    @property
    def p_for(self) -> float:
        """Of the claim: the largest of its findings, as all have to hold."""
        if not self.measured or any(finding.busy for finding in self.measured):
            return 1.0
        return max(self._p_for(finding.estimate) for finding in self.measured if finding.estimate)

    def _p_for(self, estimate: Estimate) -> float:
        if self.claim.margin is None:
            return estimate.p_above()
        margin = -math.log(1 - self.claim.margin)
        sides = [estimate] if self.claim.no_worse else [estimate, negative(estimate)]
        return max(side.p_above(-margin) for side in sides)

    @property
    def p_against(self) -> float:
        """Of its contrary: the smallest of its findings, and of a universal claim's cells, times their number."""
        there = [finding.estimate for finding in self.measured if finding.estimate and not finding.busy]
        margin = 0.0 if self.claim.margin is None else -math.log(1 - self.claim.margin)
        values = [negative(each).p_above(margin) for each in there]
        if margin and not self.claim.no_worse:
            values = [min(value, each.p_above(margin)) for value, each in zip(values, there, strict=True)]
        if self.claim.form == "universal":
            values += [negative(cell).p_above() for finding in self.measured for cell in finding.cells]
        return min(1.0, len(values) * min(values)) if values else 1.0

    @property
    def p(self) -> float:
        """Of what it is decided by: of an exception, where one is seen."""
        return self.p_against if self.is_against else min(self.p_for, self.p_against)

    @property
    def is_against(self) -> bool:
        """Whether its contrary is seen, alone."""
        return self.p_against <= ALPHA

    @property
    def verdict(self) -> Verdict:
        """Apply RULE."""
        if not self.is_judged:
            return "not judged"
        if not self.measured:
            return "not measured"
        if self.compares_trainings and self.regime.sensitivity == "not sensitive":
            return "regime not sensitive"
        if (self.p if self.p_of_family is None else self.p_of_family) > ALPHA:
            return "inconclusive"
        return "contradicted" if self.is_against else "supported"

    @property
    def weakest(self) -> Finding | None:
        """The finding that the verdict hangs on."""

        def place(finding: Finding) -> tuple[float, float]:
            estimate = finding.estimate or Estimate(0.0)
            return (0.0 if self.is_against else -self._p_for(estimate), estimate.value)

        return min(self.measured, key=place, default=None)

    @property
    def power(self) -> float | None:
        """The probability to decide for a claim whose effect is a fifth of the gap, or a tenth of a power.

        Of a level, if it is level.  None without a measured number.
        """
        if not self.measured:
            return None
        powers = []
        for finding in self.measured:
            estimate = finding.estimate or Estimate(0.0)
            if self.claim.margin is None:
                powers.append(estimate.power(EXPONENT if finding.unit == "exponent" else SHARE))
            elif self.claim.no_worse:
                powers.append(estimate.power(-math.log(1 - self.claim.margin)))
            else:
                powers.append(equivalence_power(estimate, -math.log(1 - self.claim.margin)))
        return min(powers)

    @property
    def signs(self) -> str:
        """How many cells lie on the claim's side."""
        cells = [cell for finding in self.measured for cell in finding.cells]
        return f"{sum(cell.value > 0 for cell in cells)} of {len(cells)}" if cells else ""

    @property
    def why(self) -> str:
        """Say what is missing, what leaves the claim open, and what it did not meet: baselines and cells."""
        absent = [finding.quantity.partition(" below ")[2] for finding in self.findings if finding.estimate is None]
        not_met = f"not measured: {', '.join(dict.fromkeys(absent))}" if self.measured and any(absent) else ""
        left_out = sum(finding.left_out for finding in self.measured)
        fewer = f"{left_out} printed pairs of cells not measured" if left_out else ""
        return "; ".join(filter(None, [self._open, not_met, fewer]))

    @property
    def _open(self) -> str:
        if not self.measured:
            return WHY[self.claim.why] if self.claim.why else self.missing or "not measured at this scale"
        if self.verdict == "regime not sensitive":
            return self.regime.words
        if self.verdict != "inconclusive" or self.weakest is None or self.weakest.estimate is None:
            return ""
        if self.weakest.busy:
            return f"times do not count, as the machine was busy ({self.weakest.busy})"
        if not self.weakest.estimate.terms:
            return f"no interval: it takes {self.weakest.lacks}"
        if self.p <= ALPHA:
            return "decided alone, not among all headline claims (Holm)"
        if self.claim.margin is not None:
            return "the interval holds the margin"
        low, high = self.weakest.estimate.interval() or (0.0, 0.0)
        return "the interval holds 0" if low <= 0 <= high else "one lies below 0, not at a level that counts all"

    @property
    def cost(self) -> str:
        """Say what it takes to decide with a probability of 0.8, if the number is what it seems."""
        finding = self.weakest
        if self.verdict != "inconclusive" or finding is None or finding.estimate is None:
            return ""
        if finding.busy:
            return "times again, on an idle machine"
        if not finding.estimate.terms:
            return finding.lacks
        distance = finding.estimate.value
        if self.claim.margin is not None:  # to the nearer margin, on whichever side of it
            margin = -math.log(1 - self.claim.margin)
            distance = margin + (distance if self.claim.no_worse else -abs(distance))
        counted = self.counted * (len(self.measured) if self.is_against else 1)
        source, times = replace(finding.estimate, value=distance).needed(ALPHA / counted)
        if not math.isfinite(times) or times > MOST:
            return f"more than {MOST} times the {source}"
        return f"{max(times, 1.1):.1f} times the {source}"


MOST = 100  # times as many, beyond which no number is told


def negative(estimate: Estimate) -> Estimate:
    """The estimate of the opposite."""
    return replace(estimate, value=-estimate.value)


def judge_all(paper: Paper, evidence: Evidence, is_judged: bool = True) -> list[Judged]:
    """Look at what a paper claims; what is missing is said, not raised.

    Raises NeurouteError if a claim names cells that do not exist.
    """

    def judge(claim: Claim) -> Judged:
        if claim.why:
            return Judged(claim)
        try:
            if claim.function:
                of_function: Sequence[Finding] = resolve(paper.claim_function(claim))(evidence)
                return Judged(claim, tuple(of_function))
            tables = {name: evidence.table(name) for name in claim.tables}
        except NeurouteError as error:
            return Judged(claim, missing=f"not measured yet: {error}")
        return Judged(claim, tuple(findings(claim, tables, evidence.busy)))

    of_paper = regime(paper.stated.gate, evidence) if is_judged else Regime()
    return [replace(judge(claim), is_judged=is_judged, regime=of_paper) for claim in paper.claims()]


Claimed = Mapping[str, Sequence[Judged]]  # paper -> its claims


def with_holm(claimed: Claimed) -> dict[str, list[Judged]]:
    """Count the headlines of all papers that need no GPU as one family."""
    values = {id(each): each.p for of in claimed.values() for each in of if is_small_headline(each.claim)}
    adjusted = dict(zip(values, holm([*values.values()]), strict=True))

    def of_family(judged: Judged) -> Judged:
        if id(judged) not in values:
            return judged
        counted = sum(value >= values[id(judged)] for value in values.values())
        return replace(judged, p_of_family=adjusted[id(judged)], counted=counted)

    return {paper: [of_family(each) for each in of] for paper, of in claimed.items()}


def is_small_headline(claim: Claim) -> bool:
    """Whether it is a headline that two cores can look at."""
    return claim.weight == "headline" and not claim.gpu


# -- in words ----------------------------------------------------------------------------------------------------------


def in_unit(value: float | None, unit: Unit) -> float | None:
    """A log ratio as how much less the lower side's gap is, in %; exponents stay."""
    if value is None or not math.isfinite(value):
        return None
    return 100 * -math.expm1(-value) if unit == "share" else value


def number(value: float | None, unit: Unit) -> str:
    """With its unit: "19 %", "0.15"."""
    value = in_unit(value, unit)
    if value is None:
        return ""
    return f"{value:.2f}" if unit != "share" else f"{value:.0f} %" if abs(value) >= 0.95 else f"{value:.1f} %"


def effect(finding: Finding | None) -> str:
    """A measured number with its interval."""
    if finding is None or finding.estimate is None:
        return ""
    ends = finding.estimate.interval()
    interval = f" [{', '.join(number(end, finding.unit).removesuffix(' %') for end in ends)}]" if ends else ""
    return f"{number(finding.estimate.value, finding.unit)}{interval}"


def tally(claims: Sequence[Judged]) -> dict[Verdict, int]:
    """How many claims have each verdict; where none is judged, how many there are."""
    is_judged = all(each.verdict != "not judged" for each in claims)
    return {v: sum(c.verdict == v for c in claims) for v in (VERDICTS if is_judged else ("not judged",))}


def in_short(scale: str, verdicts: Mapping[Verdict, int]) -> str:
    """Say how many claims there are at a scale, and what became of them."""
    words = ", ".join(f"{verdict} {verdicts[verdict]}" for verdict in VERDICTS if verdict in verdicts)
    if "not judged" in verdicts:
        words = "shown, not judged, as its networks are small"
    return f"{sum(verdicts.values())} claims at scale {scale}: {words}"


def told_in_short(scale: str, claims: Sequence[Judged]) -> str:
    """Say what became of all claims: on the report's first page, in README and on the page of what reproduces."""
    short = f"{in_short(scale, tally(claims))}."
    if any(each.verdict == "not judged" for each in claims):
        return short
    heads = [each for each in claims if each.claim.weight == "headline"]
    small = [each for each in heads if is_small_headline(each.claim)]
    decided = sum(each.verdict in ("supported", "contradicted") for each in small)
    answered = f"{decided} of these got a clear answer (supported or contradicted)"
    return f"{short} Of {len(heads)} headline claims {len(small)} need no GPU; {answered}."


def by_chance(verdicts: Mapping[Verdict, int]) -> str:
    """Say how many verdicts luck alone would decide."""
    judged = sum(verdicts.get(verdict, 0) for verdict in ("supported", "contradicted", "inconclusive"))
    return f"Of {judged} judged claims chance alone would decide up to {ALPHA * judged:.0f}; of headline claims none."


# -- headlines: verdicts and numbers of a whole run in a few lines -----------------------------------------------------


def headlines(plan: Plan) -> list[str]:
    """Return what the report says in short, a line for each of the first papers of which gaps are recorded, and which
    tables have nothing measured, why, and how to mend it.

    Raises NeurouteError if the report's summary is missing or broken, or records were edited.
    """
    summary = read_json(plan.summary, "run `neuroute report`", "numbers", "claims", "coverage")
    numbers, lines = summary["numbers"], list[str]()
    if summary["claims"]:
        lines.append(in_short(summary["scale"], summary["verdicts"]))
    lines.append(
        f"{numbers['measured']:,} cells measured, {numbers['beside_printed']:,} of them beside printed numbers"
    )
    # Those of which nothing is printed come last.
    papers = sorted(plan.papers, key=lambda paper: plan.papers[paper].optional)
    gaps = (_best_gap(plan, paper) for paper in papers)
    return [*lines, *[line for line in gaps if line][:3], *_nothing_measured(plan, summary["coverage"])]


def _nothing_measured(plan: Plan, coverage: Mapping[str, Mapping[str, Mapping[str, int]]]) -> Iterator[str]:
    """Yield a line for each reason that tables have no number of their own."""
    names: dict[str, list[str]] = {}
    for artifact in plan.artifacts.values():
        cells = coverage.get(artifact.paper, {}).get(artifact.name)
        if not cells or cells["measured"]:
            continue
        reason, needs = f"its notes say why ({plan.artifact_stem(artifact.id)}.md)", plan.needs[artifact.id]
        tests = [need for need in needs if isinstance(need, BenchmarkEvaluation)]
        if tests and len(tests) == len(needs):
            titles = dict.fromkeys(library(need.benchmark).title for need in tests)
            reason = (
                f"no instance of {' or '.join(titles)} was found; run again with internet access, or set "
                "`benchmarks_dir` in config.yaml to a folder with copies"
            )
        names.setdefault(reason, []).append(artifact.id)
    for reason, of in names.items():
        yield f"Nothing measured in {', '.join(of)}: {reason}"


def _best_gap(plan: Plan, paper: str) -> str:
    """The least gap of the models that most are compared with; nothing where none is measured."""
    files = {plan.evaluation_file(e.id): e.id for e in plan.evaluations.values() if plan.runs[e.run].paper == paper}
    tables = []
    for file in filter(Path.exists, files):
        check_stated(file, f"evaluate it again: `neuroute evaluate {files[file]}`")
        rows = pd.read_csv(file, dtype=str, keep_default_na=False)
        tables.append(rows[(rows.metric == "gap_pct") & (rows.reference != "none") & (rows.value != "")])
    if not any(map(len, tables)):
        return ""
    gaps = pd.concat(tables).drop_duplicates(["test", "decoding", "run"], keep="last")
    compared = max((rows for _, rows in gaps.groupby(["test", "decoding"], sort=False)), key=len)
    best = min(compared.to_dict("records"), key=lambda row: (float(row["value"]), row["run"]))
    weights = f" with {best['weights']}" if best["weights"] else ""
    of = f", the best of {len(compared)} models" if len(compared) > 1 else ""
    return (
        f"{best['run']}{weights}: {float(best['value']):.2f} % above {best['reference']} on {best['n_instances']} "
        f"instances of {best['test']} ({best['decoding']}){of}"
    )
