"""The table of a comparison: gap, time and instances solved, in groups of sizes, and on what all methods solved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from neuroute.analysis import RESAMPLES
from neuroute.comparison.summary import Group, Key, Summary, by_cpu, by_problem, groups, left_out
from neuroute.core.lazy import pd
from neuroute.rendering.table import Cell, Column, Row, Table, duration, fixed
from neuroute.user.within_time import CONSTRUCTIONS

GAP = fixed(2)
TITLE = "Networks, solvers and results of others on public instances"
LEGEND = "Measured here, but for rows of results files."


def table(records: pd.DataFrame, beginnings: Iterable[int], notes: Sequence[str] = ()) -> Table:
    """Return the table of a comparison; `beginnings`: of the groups of sizes."""
    problems = by_problem(records)
    size_groups = [g for g in groups(beginnings) if any(s.within(g) for s in problems.values())]
    if len(size_groups) == 1:
        size_groups = []
    columns = (
        *(c for g in size_groups for c in _group_columns(str(g), f"n{g.low}")),
        *_group_columns("All", "all"),
        Column("gap_common_pct", "gap", "%", GAP, "Solved by all"),
        Column("above_construction_points", "above construction", "points", GAP, "Solved by both"),
        Column("gflops", "GFLOPs", "", lambda v: v if isinstance(v, str) else f"{v:,.3g}", "All"),
    )
    rows = [
        Row((problem.upper(), *key), tuple(_cells(problem, summary, key, size_groups)))
        for problem, summary in problems.items()
        for key in summary.keys
    ]
    lines = _notes(problems, records)
    return Table(TITLE, ("Problem", "Method", "How"), columns, tuple(rows), (*lines, *notes), LEGEND)


def _group_columns(name: str, key: str) -> tuple[Column, ...]:
    return (
        Column(f"gap_{key}_pct", "gap", "%", GAP, name),
        Column(f"time_{key}_s", "time", "", duration, name),
        Column(f"solved_{key}", "solved", "", str, name),
    )


def _cells(problem: str, summary: Summary, key: Key, size_groups: Sequence[Group]) -> Iterable[Cell]:
    for group in size_groups:
        yield from _group_cells(summary, key, summary.within(group))
    yield from _group_cells(summary, key, list(summary.sizes))
    yield _gap(summary, key, summary.common if key in summary.compared else ())
    baseline = _baseline(problem, summary)
    difference = summary.difference(key, baseline) if baseline else None
    bounds = (difference[1].low, difference[1].high) if difference and difference[1] else (None, None)
    yield Cell(difference[0] if difference else None, None, *bounds)
    yield Cell(summary.mean("gflops", key, summary.solved_by(key)))


def _group_cells(summary: Summary, key: Key, instances: Sequence[str]) -> Iterable[Cell]:
    solved = summary.solved_by(key, instances)
    yield _gap(summary, key, solved)
    yield Cell(summary.mean("time_s", key, solved))
    yield Cell(f"{len(solved)}/{len(instances)}" if instances else None)


def _gap(summary: Summary, key: Key, instances: Sequence[str]) -> Cell:
    interval = summary.interval(key, instances)
    bounds = (interval.low, interval.high) if interval else (None, None)
    return Cell(summary.mean("gap_pct", key, instances), None, *bounds)


def _baseline(problem: str, summary: Summary) -> Key | None:
    """The construction heuristic with the smallest gap; random insertion is none of the CVRP."""
    return next((key for key in summary.compared if key[0] in CONSTRUCTIONS[problem]), None)


def _notes(problems: Mapping[str, Summary], records: pd.DataFrame) -> tuple[str, ...]:
    clock = "CPU (user and system)" if by_cpu(records) else "wall-clock"
    seeds, here = int(records.seed.max()) + 1, records[records.kind != "file"]
    of_seeds = ", with Student's t of the seeds" if seeds > 1 else ""
    baselines = {problem: _baseline(problem, summary) for problem, summary in problems.items()}
    names = [f"{key[0]} ({problem.upper()})" for problem, key in baselines.items() if key]
    lines = [
        " ".join(_described(problem, summary) for problem, summary in problems.items()),
        "Gaps are means of the instances' gaps to the best cost known, in the library's own rounded distances, over "
        "the instances solved; n: nodes (TSP) or customers (CVRP). Means over different instances do not compare: see "
        "`Solved by all`.",
        _unsolved(records),
        f"Ranges are 95 % bootstrap intervals over instances ({RESAMPLES:,} resamples){of_seeds}.",
    ]
    if names:
        lines += [
            f"`Above construction` is the paired difference to the best cheap construction, {' and '.join(names)}: "
            "below 0 a method beats it on the instances that both solved."
        ]
    lines += [
        *(
            f"{problem.upper()}: no construction to stand above; add --method {' or '.join(CONSTRUCTIONS[problem])}."
            for problem, key in baselines.items()
            if not key
        ),
        *(f"{problem.upper()}: {s.too_few}." for problem, s in problems.items() if s.too_few),
        *left_out(problems),
        "`greedy`: one solution, `multistart`: the best of one from each start, without images and search. "
        f"Seconds: a budget of {clock} time, the same for all searches."
        + (
            " ortools knows the wall clock alone, and has more of it as the machine is busier."
            if by_cpu(records)
            else ""
        ),
        f"Times are {clock} time of one instance, one at a time, without loading; GFLOPs are of a solution without "
        "search, all its starts together.",
        f"{seeds} seeds of methods that draw." if seeds > 1 else "One seed.",
    ]
    machines = {f"{d}, {t:g} thread{'s' if t != 1 else ''}" for d, t in zip(here.device, here.threads, strict=True)}
    return (*lines, *([f"Measured on {'; '.join(sorted(machines))}."] if machines else []))


def _described(problem: str, summary: Summary) -> str:
    sets, sizes = sorted(summary.records.set.unique()), list(summary.sizes.values())
    what = f"{len(sizes)} instance{'s' if len(sizes) > 1 else ''} of {' and '.join(sets)}, n = {sizes[0]:,}"
    to = f" to {sizes[-1]:,}" if sizes[-1] > sizes[0] else ""
    of_whom = " that are compared" if summary.apart else ""
    return f"{problem.upper()}: {what}{to}; {len(summary.common)} solved by all{of_whom}."


def _unsolved(records: pd.DataFrame) -> str:
    limits = sorted({f"{limit:g}" for limit in records.limit_s.dropna()})
    rule = "Unsolved: out of memory, a gap of 100 % or more, or out of time"
    rule += f" ({' or '.join(limits)} s)" if limits else ""
    missed = records[records.unsolved.fillna("") != ""]
    counts = [
        f"{method} ({how}) {len(rows)}, by {' and '.join(sorted(rows.unsolved.unique()))}"
        for (method, how), rows in missed.groupby(["method", "how"], sort=True)
    ]
    return f"{rule}. Here: {'; '.join(counts)}." if counts else f"{rule}; here none is."
