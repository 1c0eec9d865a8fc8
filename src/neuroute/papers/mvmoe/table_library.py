"""Rows of Tables 7 and 8 of paper `mvmoe`: one for each instance of a public benchmark, and their mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from neuroute.analysis import RESAMPLES
from neuroute.analysis.spreads import Behind
from neuroute.core.lazy import pd
from neuroute.datasets.benchmarks import PublishedInstance, published_instances
from neuroute.plan.decoding_names import name_of
from neuroute.plan.objects import Decoding
from neuroute.rendering.benchmark import none_there, records_of
from neuroute.rendering.cells import printed_numbers, select
from neuroute.rendering.study import Study
from neuroute.rendering.table import Cell, Row, Value


@dataclass(frozen=True)
class Library:
    """A set of a benchmark, as the paper calls it and as it is called here."""

    title: str
    benchmark: str
    problem: str  # in print
    set: str  # of the benchmark's; "": any
    rounded: bool  # whether the paper's lengths are sums of rounded legs

    def length(self, value: float | None) -> Value:
        """As the paper has it: a whole number where legs are rounded."""
        return round(value) if value is not None and self.rounded else value


@dataclass(frozen=True)
class Solver:
    """One pair of columns: what singles out its printed numbers, and how it is measured here."""

    label: str
    printed: Mapping[str, object]
    run: str
    group: str
    decoding: Decoding


@dataclass(frozen=True)
class _Results:
    """What is measured of a set: (column, instance) -> (length, gap in %)."""

    found: Mapping[tuple[int, str], tuple[float, float]]

    @classmethod
    def of(cls, study: Study, library: Library, solvers: Sequence[Solver]) -> _Results:
        results = dict[tuple[int, str], tuple[float, float]]()
        metric = "gap_rounded_pct" if library.rounded else "gap_pct"
        best = {name: k.optimum for name, k in _set(library).items()}
        for column, solver in enumerate(solvers):
            rows = records_of(study, [f"{solver.run}/{solver.group}"], library.benchmark)
            rows = rows[rows.decoding == name_of(solver.decoding)]
            study.mark(rows)
            for test, gap in rows[rows.metric == metric][["test", "value"]].to_numpy():
                name = str(test).removeprefix(f"{library.benchmark}_")
                if name in best:
                    length = best[name] * (1 + float(gap) / 100)
                    results[column, name] = (length, float(gap))
        return cls(results)

    def by_all(self, names: Sequence[str]) -> list[str]:
        """The instances that every method measured here has solved."""
        columns = {column for column, _ in self.found}
        return [name for name in names if columns and all((column, name) in self.found for column in columns)]


def library_rows(study: Study, library: Library, solvers: Sequence[Solver]) -> list[Row]:
    """A row for each instance that is printed or measured, and the mean of those printed.

    A row: the best length known, then each method's length and gap in %.  Means here are over the instances that every
    method measured here has solved.
    """
    published = printed_numbers(study, study.artifact.name, problem=library.problem)
    here, best = _Results.of(study, library, solvers), published[published.metric == "best_known"]
    names = [str(name) for name in best.instance]
    others = [name for name in _set(library) if any(name == there for _, there in here.found) and name not in names]
    of_each = [select(published, **solver.printed) for solver in solvers]
    rows = []
    for name in (*names, *others):
        printed_best = best[best.instance == name].value
        has_result = any(there == name for _, there in here.found)
        known_here = _set(library)[name].optimum if has_result else None
        cells = [Cell(library.length(known_here), library.length(_one(printed_best)), at=_instance(name))]
        for column, printed_rows in enumerate(of_each):
            length, gap = here.found.get((column, name), (None, None))
            there = printed_rows[printed_rows.instance == name]
            printed_length = _one(there[there.metric == "obj"].value)
            cells.append(Cell(library.length(length), library.length(printed_length)))
            printed_gap = _one(there[there.metric == "gap_pct"].value)
            cells.append(Cell(gap, printed_gap, behind=_behind(study, solvers[column], name, library, gap)))
        rows.append(Row((library.title, name), tuple(cells)))
    return [*rows, _mean(library, here, names, of_each)]


def _behind(study: Study, solver: Solver, name: str, library: Library, gap: float | None) -> Behind | None:
    """Say which model stands behind a gap on one instance."""
    model = study.runs.get(solver.run)
    if gap is None or model is None:
        return None
    kind, customers = model.network.kind.partition(":")[2], _set(library)[name].nodes - 1
    return Behind((gap,), np.full(RESAMPLES, gap), 1, kind, "vrp", customers / model.n)


def _mean(library: Library, here: _Results, names: list[str], of_each: Sequence[pd.DataFrame]) -> Row:
    common = here.by_all(names)
    at = f"{len(common)} of {len(names)} instances"
    cells = [Cell()]
    for column, printed_rows in enumerate(of_each):
        gaps = [here.found[column, name][1] for name in common if (column, name) in here.found]
        mean = printed_rows[printed_rows.instance == f"mean of {len(names)}"].value
        cells += [Cell(), Cell(sum(gaps) / len(gaps) if gaps else None, _one(mean), at=at if gaps else "")]
    label = f"Mean of {len(names)}" + (f", here of {len(common)}" if common and len(common) < len(names) else "")
    return Row((library.title, label), tuple(cells))


def notes_of(study: Study, library: Library, solvers: Sequence[Solver]) -> list[str]:
    """What of a set was not measured, by instances and methods; how to get the instances where there are none."""
    here = _Results.of(study, library, solvers)
    numbers = printed_numbers(study, study.artifact.name, problem=library.problem)
    names = [str(name) for name in numbers[numbers.metric == "best_known"].instance]
    if not here.found:
        return [none_there(library.benchmark)]
    solved, notes = {name for _, name in here.found}, []
    if lacking := sum(name not in solved for name in names):
        notes.append(f"{library.title}: {lacking} of the {len(names)} printed instances were not measured here.")
    if others := len(solved - set(names)):
        notes.append(f"{library.title}: {others} of the instances here are not in the paper's table; they come last.")
    common = here.by_all(names)
    if 0 < len(common) < len(names):
        means = _also(numbers, solvers, common)
        notes.append(f"{library.title}: over the instances of the mean here, printed means are {means}.")
    without = [s.label for column, s in enumerate(solvers) if all(there != column for there, _ in here.found)]
    if without:
        notes.append(f"Not measured on {library.title}: {', '.join(without)}.")
    return notes


def _also(numbers: pd.DataFrame, solvers: Sequence[Solver], names: Sequence[str]) -> str:
    """The printed gaps' means over some of the instances: POMO 3.60 %, ..."""
    parts = []
    for solver in solvers:
        rows = select(numbers, **solver.printed)
        gaps = rows[(rows.metric == "gap_pct") & rows.instance.isin(list(names))].value
        parts.append(f"{solver.label.partition(',')[0]} {gaps.mean():.3f} %")
    return ", ".join(parts)


def _set(library: Library) -> dict[str, PublishedInstance]:
    every = published_instances(library.benchmark).items()
    return {name: k for name, k in every if not library.set or k.set == library.set}


def _one(values: pd.Series[float]) -> float | None:
    return float(values.item()) if len(values) else None


def _instance(name: str) -> str:
    return f"{name}, as listed here"
