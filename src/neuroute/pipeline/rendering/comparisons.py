"""The cells that a claim compares, as contrasts of log gaps: measured, and the same of the printed numbers."""

from __future__ import annotations

import csv
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, Protocol

import numpy as np

from neuroute.analysis.contrasts import Estimate, Gap, Spread, contrast, mean_of
from neuroute.core.dotted import resolve
from neuroute.core.errors import NeurouteError
from neuroute.pipeline.plan.claims import Claim, Comparison
from neuroute.pipeline.rendering.cells import FEWEST
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.table import Cell, Table, Value, snake

# -- what claims are judged by: a paper's tables, drawn from records or kept, and whether their times count ----------

_STANDS_HERE = re.compile(r"(, here [^,]*| \([^()]*\bhere\))$")


class Evidence(Protocol):
    """Tables and figures of one paper at one scale."""

    def table(self, name: str) -> Table:
        """Return a table.  Raises NeurouteError where it is not there."""

    def points(self, name: str) -> list[dict[str, Any]]:
        """Return the lines of a figure's CSV.  Raises NeurouteError where it is not there."""

    def busy(self, name: str) -> str:
        """Say why the times of a table do not count; nothing where they do."""


@dataclass(frozen=True)
class DrawnTables:
    """Tables as they are drawn from records."""

    study_of: Callable[[str], Study]  # by name; raises NeurouteError where this scale does not draw it

    _drawn: dict[str, Any] = field(default_factory=dict)  # by name, each once

    def _draw(self, name: str) -> Any:
        """Draw a table or figure.  Raises NeurouteError where records are missing."""
        if name not in self._drawn:
            study = self.study_of(name)
            self._drawn[name] = resolve(study.artifact.function)(study)
        return self._drawn[name]

    def table(self, name: str) -> Table:
        table: Table = self._draw(name)
        return table

    def points(self, name: str) -> list[dict[str, Any]]:
        points: list[dict[str, Any]] = self._draw(name).points.to_dict("records")
        return points

    def busy(self, name: str) -> str:
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


# -- how far trainings spread ------------------------------------------------------------------------------------------

SPREADS = Path(str(files("neuroute.pipeline.rendering") / "spreads.csv"))


def kind_of(network: str) -> str:
    """Return the kind of a network by its class: the same for the TSP and the CVRP."""
    return network.replace("Cvrp", "")


def spread_of(gap: Gap) -> Spread | None:
    """Return the pooled spread of ln gap over trainings of a kind of network, so many times the training's size.

    Beyond the farthest size that was measured that counts; on a problem of which nothing is known another one.  None
    of a kind that was never trained twice: other kinds say nothing of it.
    """
    rows = [row for row in _spreads() if row["kind"] == kind_of(gap.network)]
    rows = [row for row in rows if row["problem"] == gap.problem] or rows
    row = next((row for row in rows if float(row["times"]) >= gap.times), rows[-1] if rows else None)
    return Spread(float(row["spread"]), int(row["freedom"])) if row else None


@cache
def _spreads() -> list[dict[str, str]]:
    with SPREADS.open(encoding="utf-8") as file:
        return sorted(csv.DictReader(file), key=lambda row: float(row["times"]))


# -- numbers that a claim wants above 0 --------------------------------------------------------------------------------

Unit = Literal["share", "exponent", "log"]  # of a finding: how much less the lower side is, a power, or neither
MEAN = "Mean of *"  # label of a row that is of no single instance
ONE_EACH = "a second training of a kind of network that was trained once"
NO_INTERVAL = "gaps of models, each on several instances, or several times"


@dataclass(frozen=True)
class Finding:
    """One number that a claim wants above 0: a mean log ratio, or what a function computes.

    Attributes:
        quantity: in words.
        estimate: measured; None where nothing was.
        printed: the same of the printed numbers; None where these do not say.
        unit: of both.
        cells: what the estimate is the mean of.
        signs: whether the printed cells lie above 0.
        at: what the cells were measured on.
        busy: of times: the load, where the machine was too busy for them to count.
        lacks: what it takes to have an interval, where there is none.
        of_trainings: whether it sets trainings against each other.
        left_out: pairs of printed cells that are not measured, beside others that are.
    """

    quantity: str
    estimate: Estimate | None
    printed: float | None = None
    unit: Unit = "share"
    cells: tuple[Estimate, ...] = ()
    signs: tuple[bool, ...] = ()
    at: str = ""
    busy: str = ""
    lacks: str = NO_INTERVAL
    of_trainings: bool = True
    left_out: int = 0


@dataclass(frozen=True)
class Pair:
    """Two cells of which the first is to be below the second."""

    sides: tuple[str, str]
    lower: Cell
    upper: Cell
    comparison: Comparison
    busy: str


def findings(claim: Claim, tables: Mapping[str, Table], busy: Callable[[str], str] = lambda table: "") -> list[Finding]:
    """Return what a claim wants above 0; tables: by name; busy: why the times of one do not count.

    Raises NeurouteError if a comparison names a cell that is not there, or two by one name.
    """
    groups: dict[tuple[str, ...], list[Pair]] = defaultdict(list)
    for comparison in claim.compare:
        for pair, kind in _pairs(claim, comparison, tables, busy):
            # A chain's middle would cancel out of a mean over its steps: of a universal claim each step holds.
            is_pair = len(comparison.order) == 2 and all(len(names) == 1 for names in comparison.order)
            is_apart = claim.form in ("superlative", "level") or (claim.form == "universal" and not is_pair)
            groups[(*(pair.sides if is_apart else ()), kind)].append(pair)
    return [_finding(group) for group in groups.values()]


def _finding(pairs: Sequence[Pair]) -> Finding:
    sides = list(dict.fromkeys(pair.sides for pair in pairs))
    words = " below ".join(sides[0]) if len(sides) == 1 else f"{len(sides)} pairs, the first {' below '.join(sides[0])}"
    measured = [pair for pair in pairs if _are_numbers(pair.lower.measured, pair.upper.measured)]
    in_print = [_log_ratio(pair.lower.published, pair.upper.published) for pair in pairs]
    ratios = [ratio for ratio in in_print if ratio is not None]
    signs = tuple(
        b - a > 1e-9
        for a, b in ((pair.lower.published, pair.upper.published) for pair in pairs)
        if isinstance(a, int | float) and isinstance(b, int | float)
    )
    estimate = _estimate(measured) if measured else None
    no_prior = any(
        gap is not None and len(gap.values) == 1 and spread_of(gap) is None
        for pair in measured
        for gap in (pair.lower.behind, pair.upper.behind)
    )
    return Finding(
        words,
        estimate,
        fmean(ratios) if ratios else None,
        cells=tuple(_estimate([pair]) for pair in measured),
        signs=signs,
        at="; ".join(dict.fromkeys(cell.at for pair in measured for cell in (pair.lower, pair.upper) if cell.at)),
        busy=next(filter(None, (pair.busy for pair in measured)), ""),
        lacks=ONE_EACH if no_prior else NO_INTERVAL,
        of_trainings=not all(pair.comparison.costs or pair.comparison.one_training for pair in pairs),
        left_out=len(signs) - sum(_are_numbers(pair.lower.published, pair.upper.published) for pair in measured),
    )


def _estimate(pairs: Sequence[Pair]) -> Estimate:
    """The mean log ratio of pairs of one claim."""
    ratios = [_log_ratio(pair.lower.measured, pair.upper.measured) for pair in pairs]
    values = [ratio for ratio in ratios if ratio is not None]
    if len(values) < len(pairs):
        return Estimate(math.nan)
    if any(pair.comparison.costs for pair in pairs):
        return mean_of(values)
    gaps = [(pair.lower.behind, pair.upper.behind) for pair in pairs]
    if any(gap is None or gap.instances < FEWEST for of_pair in gaps for gap in of_pair):
        return Estimate(fmean(values))
    parts = [part for a, b in gaps if a and b for part in ((-1 / len(pairs), a), (1 / len(pairs), b))]
    return contrast(parts, spread_of, continued=pairs[0].comparison.continued)


def _pairs(
    claim: Claim, comparison: Comparison, tables: Mapping[str, Table], busy: Callable[[str], str]
) -> Iterator[tuple[Pair, str]]:
    """Yield the pairs of a comparison, each with the kind of number that it is of."""
    of_tables = (
        ({"table": name, "column": key} | labels, cell)
        for name in comparison.table
        for labels, key, cell in cells_of(tables[name])
    )
    entries = [(names, cell) for names, cell in of_tables if _is_meant(comparison, names)]
    place = [name for name in ("table", "column") if name != comparison.by]
    for lower, upper in comparison.pairs:
        where = f"claim '{claim.id}': {', '.join(comparison.table)}"
        sides = [_side(comparison, entries, name, where) for name in (lower, upper)]
        both = [key for key in sides[0] if key in sides[1]]
        if not both:
            raise NeurouteError(f"{where}: '{lower}' and '{upper}' have no column or row in common; correct it")
        groups = {key: (sides[0][key], sides[1][key]) for key in both}
        if comparison.over:
            groups = dict(_over_instances(groups))
        for key, cells in groups.items():
            column = dict(zip(place, key, strict=False)).get("column", lower)
            is_time = "time" in column
            why = next(filter(None, map(busy, comparison.table)), "") if is_time else ""
            yield Pair((lower, upper), *cells, comparison, why), column.partition("_")[0] if comparison.costs else ""


def _is_meant(comparison: Comparison, names: Mapping[str, str]) -> bool:
    patterns = comparison.column or ("*",)
    is_of = all(names.get(label) == value for label, value in comparison.of.items())
    is_like = all(fnmatchcase(names.get(label, ""), pattern) for label, pattern in comparison.like.items())
    is_unlike = any(fnmatchcase(names.get(label, ""), pattern) for label, pattern in comparison.unlike.items())
    is_mean = bool(comparison.over) and fnmatchcase(names[comparison.over], MEAN)
    is_column = any(fnmatchcase(names["column"], pattern) for pattern in patterns)
    return is_of and is_like and is_column and not is_unlike and not is_mean


Sides = dict[tuple[str, ...], Cell]


def _side(comparison: Comparison, entries: Sequence[tuple[Mapping[str, str], Cell]], value: str, where: str) -> Sides:
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
        raise NeurouteError(f"{where}: no cell with {comparison.by} '{value}'; correct it")
    return cells


def _over_instances(
    pairs: Mapping[tuple[str, ...], tuple[Cell, Cell]],
) -> Iterator[tuple[tuple[str, ...], tuple[Cell, Cell]]]:
    """Yield the means over the printed instances that both sides have solved, by what else tells cells apart."""
    for group in dict.fromkeys(key[:-1] for key in pairs):
        of_group = [
            (a, b) for key, (a, b) in pairs.items() if key[:-1] == group and _are_numbers(a.published, b.published)
        ]
        solved = [(a, b) for a, b in of_group if _are_numbers(a.measured, b.measured)]
        at = f"{len(solved)} of {len(of_group)} instances that are printed" if solved else ""
        lower, upper = (
            _mean_cell([pair[i] for pair in of_group], [pair[i] for pair in solved], ", ".join(group), at)
            for i in (0, 1)
        )
        yield group, (lower, upper)


def _mean_cell(every: Sequence[Cell], solved: Sequence[Cell], name: str, at: str) -> Cell:
    """The mean of single instances' gaps; the draws of instances are those of the other side, too."""
    published = fmean(float(cell.published or 0) for cell in every) if every else None
    if not solved:
        return Cell(None, published)
    values = np.array([float(cell.measured or 0) for cell in solved])
    cell = Cell(float(values.mean()), published, at=at)
    models = [each.behind for each in solved if each.behind]
    if len(models) < len(solved) or len(solved) < FEWEST:
        return cell
    trainings = tuple(fmean(of) for of in zip(*(model.values for model in models), strict=False))
    errors = (values - values.mean()) / math.sqrt(len(values) * (len(values) - 1))
    farthest = max(models, key=lambda model: model.times)
    return replace(
        cell, behind=replace(farthest, values=trainings, errors=errors, drawn=f"{name} {at}", instances=len(solved))
    )


def _are_numbers(*values: Value) -> bool:
    return all(isinstance(value, int | float) for value in values)


def _log_ratio(lower: Value, upper: Value) -> float | None:
    if isinstance(lower, int | float) and isinstance(upper, int | float) and lower > 0 and upper > 0:
        return math.log(upper / lower)
    return None


# -- for functions of papers -------------------------------------------------------------------------------------------


def combined(quantity: str, parts: Sequence[tuple[float, Cell]], unit: Unit = "share") -> Finding:
    """The sum of c ln(gap) over cells that a claim wants above 0; parts: (c, cell)."""

    def logs(values: Sequence[Value]) -> float | None:
        there = [float(value) for value in values if isinstance(value, int | float) and value > 0]
        if len(there) < len(values):
            return None
        return math.fsum(c * math.log(value) for (c, _), value in zip(parts, there, strict=True))

    here, estimate = logs([cell.measured for _, cell in parts]), None
    if here is not None:
        gaps = [(c, cell.behind) for c, cell in parts if cell.behind and cell.behind.instances >= FEWEST]
        estimate = contrast(gaps, spread_of) if len(gaps) == len(parts) else Estimate(here)
    at = "; ".join(dict.fromkeys(cell.at for _, cell in parts if cell.at))
    return Finding(quantity, estimate, logs([cell.published for _, cell in parts]), unit, at=at)


def one_cell(evidence: Evidence, table: str, column: str, **labels: str) -> Cell:
    """Return the cell of a table in the row with these labels.  Raises NeurouteError if there is none, or several."""
    entries = cells_of(evidence.table(table))
    every = [cell for names, key, cell in entries if key == column and labels.items() <= names.items()]
    if len(every) != 1:
        raise NeurouteError(f"{table}: {len(every)} cells of {column} where {labels}; correct the claim's function")
    return every[0]
