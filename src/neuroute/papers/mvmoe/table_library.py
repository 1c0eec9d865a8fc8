"""Rows of Tables 7 and 8 of paper `mvmoe`: one for each instance of a public benchmark, and their mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from neuroute.core.lazy import pd
from neuroute.datasets.benchmarks import PublishedInstance, published_instances
from neuroute.plan.objects import Decoding
from neuroute.rendering.benchmark import not_measured
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


_Results = Sequence[Mapping[str, tuple[float, float]]]  # of each method, what `_measured` returns


def _measured(study: Study, library: Library, solver: Solver) -> dict[str, tuple[float, float]]:
    """What is measured of a method: instance -> (length, gap in %)."""
    records, results = study.records, dict[str, tuple[float, float]]()
    metric = "gap_rounded_pct" if library.rounded else "gap_pct"
    best = {name: k.optimum for name, k in _set(library).items()}
    rows = records[(records.run == solver.run) & (records.group == solver.group)]
    rows = rows[(rows.decoding == solver.decoding.id) & (rows.distribution == library.benchmark)]
    study.mark(rows)
    for test, gap in rows[rows.metric == metric][["test", "value"]].to_numpy():
        name = str(test).removeprefix(f"{library.benchmark}_")
        if name in best:
            results[name] = (best[name] * (1 + float(gap) / 100), float(gap))
    return results


def _by_all(results: _Results) -> set[str]:
    """The instances that every method measured here has solved."""
    return set.intersection(*[set(found) for found in results if found]) if any(results) else set()


def library_rows(study: Study, library: Library, solvers: Sequence[Solver]) -> list[Row]:
    """A row for each instance that is printed or measured, and the mean of those printed.

    A row: the best length known, then each method's length and gap in %.  Means here are over the instances that every
    method measured here has solved.
    """
    published = printed_numbers(study, study.artifact.name, problem=library.problem)
    results, best = (
        [_measured(study, library, solver) for solver in solvers],
        published[published.metric == "best_known"],
    )
    solved, names = set[str]().union(*results), [str(name) for name in best.instance]
    of_each = [select(published, **solver.printed) for solver in solvers]
    rows = []
    for name in (*names, *[name for name in _set(library) if name in solved and name not in names]):
        known_here = _set(library)[name].optimum if name in solved else None
        known = Cell(library.length(known_here), library.length(_one(best[best.instance == name].value)), at=_at(name))
        cells = [known]
        for found, printed_rows in zip(results, of_each, strict=True):
            length, gap = found.get(name, (None, None))
            there = printed_rows[printed_rows.instance == name]
            printed_length = _one(there[there.metric == "obj"].value)
            cells.append(Cell(library.length(length), library.length(printed_length)))
            cells.append(Cell(gap, _one(there[there.metric == "gap_pct"].value)))
        rows.append(Row((library.title, name), tuple(cells)))
    return [*rows, _mean(library, results, names, of_each)]


def _mean(library: Library, results: _Results, names: list[str], of_each: Sequence[pd.DataFrame]) -> Row:
    common = [name for name in names if name in _by_all(results)]
    at = f"{len(common)} of {len(names)} instances"
    cells = [Cell()]
    for found, printed_rows in zip(results, of_each, strict=True):
        gaps = [found[name][1] for name in common if name in found]
        mean = printed_rows[printed_rows.instance == f"mean of {len(names)}"].value
        cells += [Cell(), Cell(sum(gaps) / len(gaps) if gaps else None, _one(mean), at=at if gaps else "")]
    label = f"Mean of {len(names)}" + (f", here of {len(common)}" if common and len(common) < len(names) else "")
    return Row((library.title, label), tuple(cells))


def common_gaps(study: Study, library: Library, solvers: Sequence[Solver]) -> list[list[float]]:
    """Gaps in % of each method on the instances of a set that all of them have solved; empty where one has none."""
    results = [_measured(study, library, solver) for solver in solvers]
    common = sorted(set.intersection(*map(set, results)))
    return [[found[name][1] for name in common] for found in results]


def notes_of(study: Study, library: Library, solvers: Sequence[Solver]) -> list[str]:
    """What of a set was not measured, by instances and methods; how to get the instances where there are none."""
    results = [_measured(study, library, solver) for solver in solvers]
    numbers = printed_numbers(study, study.artifact.name, problem=library.problem)
    names = [str(name) for name in numbers[numbers.metric == "best_known"].instance]
    if not any(results):
        return not_measured(None, 0, {}, library.benchmark)
    solved, notes = set[str]().union(*results), []
    if lacking := sum(name not in solved for name in names):
        notes.append(f"{library.title}: {lacking} of the {len(names)} printed instances were not measured here.")
    if others := len(solved - set(names)):
        notes.append(f"{library.title}: {others} of the instances here are not in the paper's table; they come last.")
    common = [name for name in names if name in _by_all(results)]
    if 0 < len(common) < len(names):
        means = _also(numbers, solvers, common)
        notes.append(f"{library.title}: over the instances of the mean here, printed means are {means}.")
    if without := [s.label for s, found in zip(solvers, results, strict=True) if not found]:
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


def _at(name: str) -> str:
    return f"{name}, as listed here"
