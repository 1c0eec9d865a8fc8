"""The table of a comparison: gap, time and instances solved, in groups of sizes, and on what all methods solved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from neuroute.analysis import RESAMPLES
from neuroute.comparison.records import MEASURED
from neuroute.comparison.summary import Group, Key, Summary, by_cpu, by_problem, groups, label, left_out
from neuroute.core.lazy import pd
from neuroute.rendering.table import Cell, Column, Row, Table, duration, fixed
from neuroute.user.within_time import CONSTRUCTIONS

GAP = fixed(2)
THEIRS = (
    "`published`: published weights as run by Ba et al. (A Survey on Neural Routing Solvers, arXiv 2602.21761), one "
    "configuration a row, on the hardware under `on`: times do not compare across machines. Their `greedy` takes one "
    "solution, or the best of so many starts; what they did not solve counts as they count it."
)
TITLE = "Networks, solvers and results of others on public instances"
LEGEND = "Measured here, but for rows of results files and published ones."


def table(
    records: pd.DataFrame, beginnings: Iterable[int], notes: Sequence[str] = (), against: str | None = None
) -> Table:
    """Return the table of a comparison.

    beginnings: of the groups of sizes; against: the method to which differences are (None: a construction).
    """
    problems = by_problem(records)
    size_groups = [g for g in groups(beginnings) if any(s.within(g) for s in problems.values())]
    if len(size_groups) == 1:
        size_groups = []
    columns = (
        *(c for g in size_groups for c in _group_columns(str(g), f"n{g.low}")),
        *_group_columns("All", "all"),
        Column("gap_common_pct", "gap", "%", GAP, "Solved by all"),
        Column("rank", "rank", "", str, "Solved by all"),
        Column("above_construction_points", "above construction", "points", GAP, "Solved by both")
        if against is None
        else Column("above_points", f"above {against}", "points", GAP, "Solved by both"),
        Column("gflops", "GFLOPs", "", lambda v: v if isinstance(v, str) else f"{v:,.3g}", "All"),
        Column("device", "on", "", str, "All"),
    )
    rows = [
        Row((problem.upper(), *key), tuple(_cells(problem, summary, key, size_groups, against)))
        for problem, summary in problems.items()
        for key in summary.keys
    ]
    lines = _notes(problems, records, against)
    return Table(TITLE, ("Problem", "Method", "How"), columns, tuple(rows), (*lines, *notes), LEGEND)


def _group_columns(name: str, key: str) -> tuple[Column, ...]:
    return (
        Column(f"gap_{key}_pct", "gap", "%", GAP, name),
        Column(f"time_{key}_s", "time", "", duration, name),
        Column(f"solved_{key}", "solved", "", str, name),
    )


def _cells(
    problem: str, summary: Summary, key: Key, size_groups: Sequence[Group], against: str | None
) -> Iterable[Cell]:
    for group in size_groups:
        yield from _group_cells(summary, key, summary.within(group))
    yield from _group_cells(summary, key, list(summary.sizes))
    yield _gap(summary, key, summary.common if key in summary.compared else ())
    yield Cell(summary.ranks.get(key))
    baseline = _baseline(problem, summary, against)
    difference = summary.difference(key, baseline) if baseline else None
    bounds = (difference[1].low, difference[1].high) if difference and difference[1] else (None, None)
    yield Cell(difference[0] if difference else None, None, *bounds)
    yield Cell(summary.mean("gflops", key, summary.solved_by(key)))
    yield Cell(summary.first("device", key))


def _group_cells(summary: Summary, key: Key, instances: Sequence[str]) -> Iterable[Cell]:
    solved = summary.solved_by(key, instances)
    yield _gap(summary, key, solved)
    yield Cell(summary.mean("time_s", key, solved))
    yield Cell(f"{len(solved)}/{len(instances)}" if instances else None)


def _gap(summary: Summary, key: Key, instances: Sequence[str]) -> Cell:
    interval = summary.interval(key, instances)
    bounds = (interval.low, interval.high) if interval else (None, None)
    return Cell(summary.mean("gap_pct", key, instances), None, *bounds)


def _baseline(problem: str, summary: Summary, against: str | None) -> Key | None:
    """What differences are to: a method's row with the smallest gap, else that of the best cheap construction.

    Random insertion is none of the CVRP.
    """
    names = CONSTRUCTIONS[problem] if against is None else (against,)
    return next((key for key in summary.compared if key[0] in names), None)


def _notes(problems: Mapping[str, Summary], records: pd.DataFrame, against: str | None) -> tuple[str, ...]:
    clock = "CPU (user and system)" if by_cpu(records) else "wall-clock"
    seeds, here = int(records.seed.max()) + 1, records[records.kind.isin(MEASURED)]
    of_seeds = ", with Student's t of the seeds" if seeds > 1 else ""
    baselines = {problem: _baseline(problem, summary, against) for problem, summary in problems.items()}
    names = [f"{label(key)} ({problem.upper()})" for problem, key in baselines.items() if key]
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
            f"`Above` is the paired difference to {'the best cheap construction, ' if against is None else ''}"
            f"{' and '.join(names)}: below 0 a method beats it on the instances that both solved."
        ]
    lines += [
        *(
            f"{problem.upper()}: no construction to stand above; add --method {' or '.join(CONSTRUCTIONS[problem])}."
            for problem, key in baselines.items()
            if not key and against is None
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
        *([THEIRS] if records.how.str.startswith("published").any() else []),
        f"{seeds} seeds of methods that draw." if seeds > 1 else "One seed.",
    ]
    machines = {
        f"{d}, {t:g} thread{'s' if t != 1 else ''}" for d, t in zip(here.device, here.threads, strict=True) if d == d
    }
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
    missed = records[(records.unsolved.fillna("") != "") & ~records.how.str.startswith("published")]
    counts = [
        f"{method} ({how}) {len(rows)}, by {' and '.join(sorted(rows.unsolved.unique()))}"
        for (method, how), rows in missed.groupby(["method", "how"], sort=True)
    ]
    return f"{rule}. Here: {'; '.join(counts)}." if counts else f"{rule}; here none is."
