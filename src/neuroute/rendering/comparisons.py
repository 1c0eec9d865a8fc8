"""Claims that compare cells of tables: the cells that a comparison names, and their differences."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache

import numpy as np

from neuroute.analysis.spreads import ENOUGH, Behind, Term, half_width, of_trainings
from neuroute.core.dotted import resolve
from neuroute.core.errors import NeurouteError
from neuroute.plan.claims import Claim, Comparison
from neuroute.plan.paper import Paper
from neuroute.rendering.claims import INSTANCES, Finding, Judged, Side, printed_difference, spread_of
from neuroute.rendering.study import Study
from neuroute.rendering.table import Cell, Table, Value, snake

_STANDS_HERE = re.compile(r"(, here [^,]*| \([^()]*\bhere\))$")


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
                finding: Finding = resolve(paper.claim_function(claim))(study_of(claim.artifact))
                return Judged(claim, (finding,))
            tables = {name: table_of(name) for each in claim.compare for name in each.table}
        except NeurouteError as error:
            return Judged(claim, missing=f"not measured yet: {error}")
        return Judged(claim, tuple(compare(claim, tables)), claim.unjudged)

    return [replace(judge(claim), is_judged=is_judged) for claim in paper.claims()]


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
            for labels, key, cell in cells_of(tables[name])
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


def cells_of(table: Table) -> Iterator[tuple[dict[str, str], str, Cell]]:
    """Yield the labels of each cell's row, as the CSV names them, its column's key, and the cell.

    What a label adds on its end of what stands for it here, as in "bs16 (6 here)", is left out.
    """
    names = [snake(name) for name in table.labels]
    for row in table.rows:
        labels = [_STANDS_HERE.sub("", str(label)) for label in row.labels]
        for column, cell in zip(table.columns, row.cells, strict=True):
            yield dict(zip(names, labels, strict=True)), column.key, replace(cell, at=cell.at or column.at)


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
        by_own = len(side.gaps) >= ENOUGH
        words.append(f"{len(side.gaps)} trainings" if by_own else f"trainings, {100 * spread.share:.0f} % of a gap")
    return tuple(terms), f"{INSTANCES} and {' and '.join(dict.fromkeys(words))} (Student's t)"
