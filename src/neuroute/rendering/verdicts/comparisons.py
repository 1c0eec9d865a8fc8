"""Claims that compare cells of tables: the cells that a comparison names, and their differences."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from statistics import fmean, variance
from typing import Protocol

import numpy as np

from neuroute.analysis.intervals import ENOUGH, Behind, Spread, Term, half_width, of_trainings
from neuroute.core.dotted import resolve
from neuroute.core.errors import NeurouteError
from neuroute.plan.claims import Claim, Comparison
from neuroute.plan.paper import Paper
from neuroute.rendering.cells import FEWEST, MEANS
from neuroute.rendering.claims import (
    INSTANCES,
    INSTANCES_APART,
    Finding,
    Judged,
    Side,
    mean_interval,
    printed_difference,
    spread_of,
)
from neuroute.rendering.study import Study
from neuroute.rendering.table import Cell, Table, Value, snake

# -- what claims are judged by: a paper's tables, drawn from records or kept, and whether their times count ----------

_STANDS_HERE = re.compile(r"(, here [^,]*| \([^()]*\bhere\))$")


class Evidence(Protocol):
    """Tables of one paper at one scale."""

    def table(self, name: str) -> Table:
        """Return a table.  Raises NeurouteError where it is not there."""

    def busy(self, name: str) -> str:
        """Say why the times of a table do not count; nothing where they do."""


@dataclass(frozen=True)
class DrawnTables:
    """Tables as they are drawn from records."""

    study_of: Callable[[str], Study]  # by name; raises NeurouteError where this scale does not draw it

    @cached_property
    def _tables(self) -> dict[str, Table]:
        return {}

    def table(self, name: str) -> Table:
        """Draw a table, once.  Raises NeurouteError where records are missing."""
        if name not in self._tables:
            study = self.study_of(name)
            self._tables[name] = resolve(study.artifact.function)(study)
        return self._tables[name]

    def busy(self, name: str) -> str:
        """Say how busy the machine was; nothing where times count."""
        return self.study_of(name).busy()


def cells_of(table: Table) -> Iterator[tuple[dict[str, str], str, Cell]]:
    """Yield the labels of each cell's row, as the CSV names them, its column's key, and the cell.

    What a label adds on its end of what stands for it here, as in "bs16 (6 here)", is left out.
    """
    names = [snake(name) for name in table.labels]
    for row in table.rows:
        labels = [_STANDS_HERE.sub("", str(label)) for label in row.labels]
        for column, cell in zip(table.columns, row.cells, strict=True):
            yield dict(zip(names, labels, strict=True)), column.key, replace(cell, at=cell.at or column.at)


MEAN = "Mean of *"  # label of a row that is of no single instance
Entry = tuple[Mapping[str, str], Cell]  # names by which a comparison picks a cell: table, column, labels of its row
Sides = dict[tuple[str, ...], Cell]
ONES = "instances (paired)"
MORE_PAIRS = "more sizes or problems that both solve"


def judge_all(paper: Paper, evidence: Evidence, is_judged: bool = True) -> list[Judged]:
    """Look at what a paper claims; what is missing is said, not raised.

    Raises NeurouteError if a claim names cells that do not exist.
    """

    def judge(claim: Claim) -> Judged:
        try:
            if claim.function:
                finding: Finding = resolve(paper.claim_function(claim))(evidence)
                return Judged(claim, (finding,))
            tables = {name: evidence.table(name) for each in claim.compare for name in each.table}
        except NeurouteError as error:
            return Judged(claim, missing=f"not measured yet: {error}")
        return Judged(claim, tuple(compare(claim, tables, evidence.busy)), claim.unjudged)

    return [replace(judge(claim), is_judged=is_judged) for claim in paper.claims()]


def compare(
    claim: Claim, tables: Mapping[str, Table], busy: Callable[[str], str] = lambda table: ""
) -> Iterator[Finding]:
    """Yield the differences that a claim wants above 0; tables: by name; busy: why the times of one do not count.

    Raises NeurouteError if a comparison names a cell that is not there, or two by one name.
    """
    for comparison in claim.compare:
        of_tables = (
            ({"table": name, "column": key} | labels, cell)
            for name in comparison.table
            for labels, key, cell in cells_of(tables[name])
        )
        entries = [(names, cell) for names, cell in of_tables if _is_meant(comparison, names)]
        for lower, upper in comparison.pairs:
            where = f"claim '{claim.id}': {', '.join(comparison.table)}"
            sides = [_side(comparison, entries, name, where) for name in (lower, upper)]
            both = [key for key in sides[0] if key in sides[1]]
            if not both:
                raise NeurouteError(f"{where}: '{lower}' and '{upper}' have no column or row in common; correct it")
            if comparison.over:
                yield from _over_instances(comparison, (lower, upper), *sides)
            elif comparison.ratio:
                ratio = _ratio(comparison, (lower, upper), [(sides[0][key], sides[1][key]) for key in both])
                is_time = any("time" in name for name in (*comparison.column, lower))
                yield replace(ratio, busy=next(filter(None, map(busy, comparison.table)), "") if is_time else "")
            elif comparison.mean:
                cells = [[side[key] for key in both] for side in sides]
                yield _difference(comparison, (lower, upper), "means", *_means(*cells))
            else:
                for key in both:
                    yield _difference(comparison, (lower, upper), ", ".join(key), *(side[key] for side in sides))


def _is_meant(comparison: Comparison, names: Mapping[str, str]) -> bool:
    patterns = comparison.column or ("*",)
    is_of = all(names.get(label) == value for label, value in comparison.of.items())
    is_like = all(fnmatchcase(names.get(label, ""), pattern) for label, pattern in comparison.like.items())
    is_mean = bool(comparison.over) and fnmatchcase(names[comparison.over], MEAN)
    return is_of and is_like and not is_mean and any(fnmatchcase(names["column"], pattern) for pattern in patterns)


def _side(comparison: Comparison, entries: Sequence[Entry], value: str, where: str) -> Sides:
    """The cells whose label `by` has a value, by what else tells them apart."""
    place = [name for name in ("table", "column") if name != comparison.by]
    cells: Sides = {}
    for names, cell in entries:
        if names.get(comparison.by) == value:
            labels = (*place, *comparison.each, *filter(None, [comparison.over]))
            key = tuple(names[label] for label in labels)
            if key in cells:
                raise NeurouteError(f"{where}: {comparison.by} '{value}' names several cells of {', '.join(key)}")
            cells[key] = cell
    if not cells:
        raise NeurouteError(f"{where}: no cell whose {comparison.by} is '{value}'; correct it")
    return cells


def _means(lower: Sequence[Cell], upper: Sequence[Cell]) -> tuple[Cell, Cell]:
    """Average the cells of which both sides have numbers."""
    both = [_are_numbers(a.measured, b.measured) for a, b in zip(lower, upper, strict=True)]

    def numbers(cells: Sequence[Cell], name: str) -> list[float | None]:
        return [_number(getattr(cell, name)) for cell in cells]

    def mean(cells: Sequence[Cell], name: str) -> float | None:
        of_both = zip(numbers(cells, name), numbers(lower, name), numbers(upper, name), strict=True)
        values = [value for value, a, b in of_both if value is not None and a is not None and b is not None]
        return fmean(values) if values else None

    def mean_cell(cells: Sequence[Cell]) -> Cell:
        of_gaps = _mean_behind([cell.behind for cell, is_of_both in zip(cells, both, strict=True) if is_of_both])
        return Cell(mean(cells, "measured"), mean(cells, "published"), at=cells[0].at, behind=of_gaps)

    return mean_cell(lower), mean_cell(upper)


def _mean_behind(of: Sequence[Behind | None]) -> Behind | None:
    there = [each for each in of if each is not None]
    if not there or len(there) < len(of):
        return None
    gaps = tuple(fmean(gaps) for gaps in zip(*(each.gaps for each in there), strict=False))
    samples = np.mean([each.samples for each in there], axis=0)
    instances, times = min(each.instances for each in there), max(each.times for each in there)
    network = there[0].network.removesuffix(MEANS) + MEANS * (len(there) > 1)
    return replace(there[0], network=network, gaps=gaps, samples=samples, instances=instances, times=times)


def _difference(comparison: Comparison, labels: tuple[str, str], of: str, lower: Cell, upper: Cell) -> Finding:
    a, b = lower.measured, upper.measured
    gap = float(b) - float(a) if isinstance(a, int | float) and isinstance(b, int | float) else None
    sides = _both_sides(labels, lower, upper)
    is_paired = upper.at == lower.at  # of other test sets what is drawn together has nothing in common
    terms, over = _terms(comparison, upper.behind, lower.behind, is_paired) if gap is not None else ((), "")
    half = half_width(terms) if terms and gap is not None else None
    bounds = (None, None) if half is None or gap is None else (gap - half, gap + half)
    difference = Cell(gap, printed_difference(*sides), *bounds)
    at = lower.at if lower.at == upper.at else f"{upper.at}; {lower.at}"
    return Finding(f"{labels[1]} less {labels[0]}: {of}", difference, sides, over, at, terms=terms)


def _both_sides(labels: tuple[str, str], lower: Cell, upper: Cell) -> tuple[Side, Side]:
    """The upper one first."""
    below, above = labels
    return (
        Side(above, _number(upper.measured), upper.published),
        Side(below, _number(lower.measured), lower.published),
    )


def _ratio(comparison: Comparison, labels: tuple[str, str], pairs: Sequence[tuple[Cell, Cell]]) -> Finding:
    """Compare times or memory by the mean of their log ratios, which has Student's t over the pairs; in %."""

    def logs(values: Iterable[tuple[Value, Value]]) -> list[float]:
        numbers = [(_number(a), _number(b)) for a, b in values]
        return [math.log(b / a) for a, b in numbers if a and b]

    def percent(log_ratio: Value) -> float | None:
        return 100 * math.expm1(log_ratio) if isinstance(log_ratio, float) else None

    here = logs((a.measured, b.measured) for a, b in pairs)
    mean = mean_interval(here)
    terms = (Term(variance(here) / len(here), len(here) - 1),) if len(here) > 1 else ()
    in_print = mean_interval(logs((a.published, b.published) for a, b in pairs))
    difference = Cell(percent(mean.measured), percent(in_print.measured), percent(mean.low), percent(mean.high))
    sides = _both_sides(labels, *_means(*zip(*pairs, strict=True)))
    over = f"{' and '.join(('columns', *comparison.each))} (Student's t of the log ratio)"
    what, at = f"{labels[1]} more than {labels[0]}, in %", pairs[0][0].at
    log_ratio = _number(mean.measured)
    return Finding(what, difference, sides, over, at, lacks=MORE_PAIRS, terms=terms, log_ratio=log_ratio)


def _over_instances(comparison: Comparison, labels: tuple[str, str], lower: Sides, upper: Sides) -> Iterator[Finding]:
    """Compare means over the printed instances that both sides have solved."""
    for group in dict.fromkeys(key[:-1] for key in lower):
        pairs = [
            (lower[key], upper[key])
            for key in lower
            if key[:-1] == group and key in upper and _are_numbers(lower[key].published, upper[key].published)
        ]
        solved = [(a, b) for a, b in pairs if _are_numbers(a.measured, b.measured)]
        finding = _difference(comparison, labels, ", ".join(group), *_means(*zip(*pairs, strict=True)))
        terms, over = _terms_over_instances(solved, comparison.one_training)
        gap, half = finding.difference.measured, half_width(terms) if terms else 0.0
        if terms and isinstance(gap, float):
            finding = replace(finding, difference=replace(finding.difference, low=gap - half, high=gap + half))
        at = f"{len(solved)} of {len(pairs)} instances that are printed" if solved else ""
        yield replace(finding, terms=terms, over=over, at=at)


def _terms_over_instances(solved: Sequence[tuple[Cell, Cell]], one_training: bool) -> tuple[tuple[Term, ...], str]:
    """The variances of a mean difference of single instances; none where these are too few."""
    if len(solved) < FEWEST:
        return (), ""
    gaps = [[float(cell.measured or 0) for cell in side] for side in zip(*solved, strict=True)]
    differences = [b - a for a, b in zip(*gaps, strict=True)]
    terms = [Term(variance(differences) / len(solved), len(solved) - 1)]
    if one_training:
        return tuple(terms), f"{ONES}, of one training"
    models = [[cell.behind for cell in side if cell.behind] for side in zip(*solved, strict=True)]
    if not all(models):
        return (), ""
    words = []
    for of_side in models:
        spread = spread_of(of_side[0].network, of_side[0].problem, max(model.times for model in of_side))
        trainings = [fmean(of) for of in zip(*(model.gaps for model in of_side), strict=False)]
        terms.append(of_trainings(trainings, spread))
        words.append(_of_trainings(trainings, spread))
    return tuple(terms), f"{ONES} and {' and '.join(dict.fromkeys(words))} (Student's t)"


def _of_trainings(gaps: Sequence[float], spread: Spread) -> str:
    return f"{len(gaps)} trainings" if len(gaps) >= ENOUGH else f"trainings, {100 * spread.share:.0f} % of a gap"


def _are_numbers(*values: Value) -> bool:
    return all(isinstance(value, int | float) for value in values)


def _number(value: Value) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _terms(
    comparison: Comparison, upper: Behind | None, lower: Behind | None, is_paired: bool
) -> tuple[tuple[Term, ...], str]:
    """The variances of a difference of two gaps, and what they are over, in words; none without instances."""
    if upper is None or lower is None or min(upper.instances, lower.instances) < FEWEST:
        return (), ""
    fewest = min(upper.instances, lower.instances)
    resamples = [(upper.samples - lower.samples, fewest)]
    if not is_paired:
        resamples = [(side.samples, side.instances) for side in (upper, lower)]
    terms = [Term(float(np.var(samples, ddof=1)), count - 1) for samples, count in resamples]
    if comparison.one_training:
        return tuple(terms), f"{INSTANCES if is_paired else INSTANCES_APART}, of one training"
    if comparison.continued and len(upper.gaps) == len(lower.gaps) >= ENOUGH:
        pairs = [b - a for a, b in zip(lower.gaps, upper.gaps, strict=True)]
        terms.append(Term(variance(pairs) / len(pairs), len(pairs) - 1, trainings=len(pairs)))
        return tuple(terms), f"{INSTANCES} and {len(pairs)} pairs of trainings (Student's t)"
    words = []
    for side in (upper, lower):
        spread = spread_of(side.network, side.problem, side.times)
        terms.append(of_trainings(side.gaps, spread))
        words.append(_of_trainings(side.gaps, spread))
    return tuple(terms), f"{INSTANCES} and {' and '.join(dict.fromkeys(words))} (Student's t)"
