"""What the records of one problem say of each method: on all instances, in groups, on those that all solved.

A method that solved few instances leaves little in common with the rest: it is said for itself, and the others are
compared without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from neuroute.analysis import RESAMPLES
from neuroute.analysis.intervals import (
    DIGITS,
    Array,
    Interval,
    mean_over_seeds,
    percentile_interval,
    resampled_instances,
    resampling_weights,
)
from neuroute.api.within_time import CONSTRUCTIONS
from neuroute.core.lazy import pd
from neuroute.pipeline.rendering.table import Cell, Column, Row, Table, duration, fixed
from neuroute_compare.records import MEASURED

Key = tuple[str, str]  # a method's name, and how it solved
FEWEST = 2  # instances that an interval needs
RANKING = 5  # instances that an order of methods needs
CLOSE = 1e-6  # %, by which sums of the same ways in another order may differ
REASONS = 3  # why a method solved no instance, that are said


def resampled_means(values: ArrayLike, stream: int = 0) -> Array:
    """Return means (resamples,) of values (instances,) or (instances, seeds).

    The same instances are drawn in each call; `stream` tells the draws of seeds of several methods apart.
    """
    of_seeds = resampled_instances(values)
    means: Array = (of_seeds * resampling_weights(np.random.default_rng([0, 1 + stream]), of_seeds.shape[1])).sum(1)
    return means


def mean_interval(values: ArrayLike) -> Interval:
    """Return the 95 % percentile interval of the mean of values (instances,) or (instances, seeds)."""
    return percentile_interval(mean_over_seeds(resampled_instances(values)))


def difference_interval(first: ArrayLike, second: ArrayLike) -> Interval:
    """Return the 95 % percentile interval of mean(first) - mean(second), paired over instances.

    Seeds may be of any number.  Raises ValueError if they are not of the same instances.
    """
    if len(np.asarray(first)) != len(np.asarray(second)):
        raise ValueError(f"{len(np.asarray(first))} and {len(np.asarray(second))} instances are not pairs")
    here, there = (mean_over_seeds(resampled_instances(each), stream) for stream, each in enumerate((first, second)))
    return percentile_interval(here - there)


def shares_better(methods: Sequence[ArrayLike]) -> Array:
    """Return (methods, methods): in which share of resamples the row's mean is below the column's; ties count half.

    Each method's values are (instances,) or (instances, seeds).
    """
    means = np.array([resampled_means(values, stream) for stream, values in enumerate(methods)]).round(DIGITS)
    below = (means[:, None] < means[None]).mean(-1)
    return np.asarray(below + 0.5 * (means[:, None] == means[None]).mean(-1))


def label(key: Key) -> str:
    """Name a method, and how it solved where that is not plain."""
    plain = key[1] in ("one pass", "results file") or key[1].startswith("published")
    return key[0] if plain else f"{key[0]}, {key[1]}"


@dataclass(frozen=True)
class Group:
    """Instances of sizes from `low` on to below `high`."""

    low: int
    high: int | None

    def __str__(self) -> str:
        if self.high is None:
            return f"n ≥ {self.low:,}"
        return f"n < {self.high:,}" if not self.low else f"n {self.low:,}–{self.high - 1:,}"

    def has(self, n: int) -> bool:
        return self.low <= n and (self.high is None or n < self.high)


def groups(beginnings: Iterable[int]) -> list[Group]:
    """Return the groups that begin with 0 and with each of these sizes."""
    edges = sorted({0, *beginnings})
    return [Group(low, high) for low, high in zip(edges, [*edges[1:], None], strict=True)]


@dataclass(frozen=True)
class Summary:
    """Records of one problem."""

    records: pd.DataFrame

    @cached_property
    def keys(self) -> list[Key]:
        """The methods, those with the smaller gap first, on the instances that all have solved or else on their own.

        Those that are not compared come last.
        """
        apart = set(self.apart)
        means = {
            key: self.mean("gap_pct", key, (key not in apart and self.common) or solved)
            for key, solved in self._solved.items()
        }
        return sorted(means, key=lambda key: (key in apart, means[key] is None, means[key], key))

    @cached_property
    def compared(self) -> list[Key]:
        """The methods that are compared with one another, as `keys` orders them."""
        return [key for key in self.keys if key not in self.apart]

    @cached_property
    def apart(self) -> list[Key]:
        """The methods that solved nothing, or would leave the others fewer than half of what the best one solved.

        Those measured here join first, then others, by how many instances they solved.
        """
        most = max(map(len, self._solved.values()), default=0)
        everywhere, apart = set(self.sizes), list[Key]()
        here = {key for key in self._solved if self.first("kind", key) in MEASURED}
        for key in sorted(self._solved, key=lambda key: (key not in here, -len(self._solved[key]))):
            remaining = everywhere & set(self._solved[key])
            if 2 * len(remaining) < most or not remaining:
                apart.append(key)
            else:
                everywhere = remaining
        return apart

    @cached_property
    def sizes(self) -> dict[str, int]:
        """n of each instance, smallest first."""
        rows = self.records[["instance", "n"]].drop_duplicates().sort_values(["n", "instance"])
        return {str(name): int(n) for name, n in zip(rows.instance, rows.n, strict=True)}

    def within(self, group: Group) -> list[str]:
        """The instances of a group."""
        return [name for name, n in self.sizes.items() if group.has(n)]

    def solved_by(self, key: Key, among: Sequence[str] | None = None) -> list[str]:
        """The instances that a method solved, with every seed."""
        complete = self._complete.get(key, set())
        return [name for name in (self.sizes if among is None else among) if name in complete]

    @cached_property
    def common(self) -> list[str]:
        """The instances that every method solved, of those that are compared; none without such a method."""
        sets = [set(solved) for key, solved in self._solved.items() if key not in self.apart]
        return [name for name in self.sizes if sets and all(name in each for each in sets)]

    @cached_property
    def ranks(self) -> dict[Key, int]:
        """The places of the methods that are compared, by their gap where all solved; those of one gap share one."""
        if self.too_few:
            return {}
        means = {key: self.mean("gap_pct", key, self.common) or 0.0 for key in self.compared}
        return {key: 1 + sum(other < mean for other in means.values()) for key, mean in means.items()}

    @property
    def too_few(self) -> str:
        """Why the methods are not ranked, in words; empty where they are."""
        if len(self.compared) < 2:
            return "too few methods to rank"
        count = len(self.common)
        return "" if count >= RANKING else f"too few instances to rank methods: {count}, below {RANKING}"

    @cached_property
    def _solved(self) -> dict[Key, list[str]]:
        """Of each method, the instances that it solved."""
        return {key: self.solved_by(key) for key in self._of}

    @cached_property
    def _complete(self) -> dict[Key, set[str]]:
        found = {}
        for key, mine in self._of.items():
            seeds = mine.groupby("instance").seed.nunique()
            unsolved = set(mine[mine.unsolved.fillna("") != ""].instance)
            found[key] = set(seeds.index[seeds == mine.seed.nunique()]) - unsolved
        return found

    def values(self, metric: str, key: Key, instances: Sequence[str]) -> Array:
        """Return a metric (instances, seeds) of a method."""
        table = self._of[key].pivot(index="instance", columns="seed", values=metric)
        return np.asarray(table.loc[list(instances)].to_numpy(float))

    def mean(self, metric: str, key: Key, instances: Sequence[str]) -> float | None:
        """Return its mean; None without instances, or where it was not measured on one of them."""
        if not instances:
            return None
        value = round(float(self.values(metric, key, instances).mean()), DIGITS)
        return None if np.isnan(value) else value

    def interval(self, key: Key, instances: Sequence[str]) -> Interval | None:
        """Return the interval of the mean gap; None for too few instances."""
        return mean_interval(self.values("gap_pct", key, instances)) if len(instances) >= FEWEST else None

    def difference(self, key: Key, other: Key) -> tuple[float, Interval | None] | None:
        """Return by how much a method's mean gap is above another's where both solved, in points, and its interval."""
        both = self.solved_by(other, self.solved_by(key))
        if not both or key == other:
            return None
        first, second = (self.values("gap_pct", each, both) for each in (key, other))
        interval = difference_interval(first, second) if len(both) >= FEWEST else None
        return float(first.mean() - second.mean()), interval

    def first(self, column: str, key: Key) -> str | None:
        """Return what a method's records say of it alike, as its kind; None where they do not."""
        texts = self._of[key][column].dropna()
        return str(texts.iloc[0]) if len(texts) else None

    def foremost(self, most: int) -> list[Key]:
        """The methods that are compared, at most so many of them: those measured here, then those with smaller gaps."""
        here = [key for key in self.compared if self.first("kind", key) in MEASURED]
        foremost = {*here, *self.compared[: max(0, most - len(here))]}
        return [key for key in self.compared if key in foremost]

    @cached_property
    def _of(self) -> dict[Key, pd.DataFrame]:
        """The records of each method."""
        grouped = self.records.groupby(["method", "how"], sort=False)
        return {(str(method), str(how)): rows for (method, how), rows in grouped}


CLOCKS = {"cpu": "CPU (user and system)", "wall": "wall-clock"}


def clocks(records: pd.DataFrame) -> dict[str, list[str]]:
    """Return the clocks that times and budgets are by, CPU first, each with the methods; a survey's have their own."""
    timed = records[records.clock.notna() & ~records.how.str.startswith("published")]
    of_clocks: dict[str, list[str]] = {}
    for clock, method, how in sorted(set(zip(timed.clock, timed.method, timed.how, strict=True))):
        of_clocks.setdefault(clock, []).append(label((method, how)))
    return of_clocks


def left_out(problems: Mapping[str, Summary]) -> list[str]:
    """Return a line on the methods that are not compared with the others, if there are any."""
    names = [
        f"{label(key)} ({problem.upper()}, {len(summary.solved_by(key))} of {len(summary.sizes)} solved)"
        for problem, summary in problems.items()
        for key in summary.apart
    ]
    rule = "Not ranked, and not counted for `Solved by all`: too few instances solved:"
    return [f"{rule} {'; '.join(names)}."] if names else []


def by_problem(records: pd.DataFrame) -> dict[str, Summary]:
    """Return the summary of each problem, the TSP first."""
    problems = sorted(records.problem.unique(), reverse=True)
    return {str(problem): Summary(records[records.problem == problem]) for problem in problems}


# -- The table of a comparison: gap, time and instances solved, in groups of sizes, and on what all methods solved

GAP = fixed(2)
THEIRS = (
    "`published`: published weights as run by Ba et al. (A Survey on Neural Routing Solvers, arXiv 2602.21761), one "
    "configuration a row, on the hardware under `on`; times do not compare across machines. Their `greedy` is one "
    "solution, or the best of several starts; unsolved: as reported."
)
TITLE = "Networks, solvers and published systems on public instances"
LEGEND = "Measured here, except published rows and results files."


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
    above, interval = (summary.difference(key, baseline) if baseline else None) or (None, None)
    yield _with_interval(above, interval)
    yield Cell(summary.mean("gflops", key, summary.solved_by(key)))
    yield Cell(summary.first("device", key))


def _group_cells(summary: Summary, key: Key, instances: Sequence[str]) -> Iterable[Cell]:
    solved = summary.solved_by(key, instances)
    yield _gap(summary, key, solved)
    yield Cell(summary.mean("time_s", key, solved))
    yield Cell(f"{len(solved)}/{len(instances)}" if instances else None)


def _gap(summary: Summary, key: Key, instances: Sequence[str]) -> Cell:
    return _with_interval(summary.mean("gap_pct", key, instances), summary.interval(key, instances))


def _with_interval(value: float | None, interval: Interval | None) -> Cell:
    return Cell(value, None, interval.low, interval.high) if interval else Cell(value)


def _baseline(problem: str, summary: Summary, against: str | None) -> Key | None:
    """What differences are to: a method's row with the smallest gap, else that of the best cheap construction.

    Random insertion is none of the CVRP.
    """
    names = CONSTRUCTIONS[problem] if against is None else (against,)
    return next((key for key in summary.compared if key[0] in names), None)


def _notes(problems: Mapping[str, Summary], records: pd.DataFrame, against: str | None) -> tuple[str, ...]:
    of_clocks = clocks(records)
    clock = " or ".join(CLOCKS.get(each, each) for each in of_clocks or ("wall",))
    seeds = int(records.groupby(["method", "how"]).seed.nunique().max())
    here = records[records.kind.isin(MEASURED)]
    of_seeds = ", with Student's t of the seeds" if seeds > 1 else ""
    baselines = {problem: _baseline(problem, summary, against) for problem, summary in problems.items()}
    names = [f"{label(key)} ({problem.upper()})" for problem, key in baselines.items() if key]
    limits = sorted({f"{limit:g}" for limit in records.limit_s.dropna()})
    rule = "Unsolved: out of memory, a gap of 100 % or more, or out of time"
    rule += f" ({' or '.join(limits)} s)" if limits else ""
    missed = records[(records.unsolved.fillna("") != "") & ~records.how.str.startswith("published")]
    counts = [
        f"{method} ({how}) {len(rows)}, by {_first_of(sorted(rows.unsolved.unique()))}"
        for (method, how), rows in missed.groupby(["method", "how"], sort=True)
    ]
    lines = [
        " ".join(_described(problem, summary) for problem, summary in problems.items()),
        "Gaps are means of the instances' gaps to the best cost known, in the instances' own distances (rounded in "
        "libraries), over the instances solved; n: nodes (TSP) or customers (CVRP). Only `Solved by all` has the same "
        "instances for all methods.",
        f"{rule}. Here: {'; '.join(counts)}." if counts else f"{rule}; here: none.",
        *_below_best(records),
        f"Ranges are 95 % bootstrap intervals over instances ({RESAMPLES:,} resamples){of_seeds}.",
    ]
    if names:
        lines += [
            f"`Above`: paired difference to {'the best cheap construction, ' if against is None else ''}"
            f"{' and '.join(names)}, on the instances that both solved; below 0 the method is better."
        ]
    searched = sorted(records[(records.kind == "network") & records.budget_s.notna()].problem.unique())
    firsts = [f"{' and '.join(CONSTRUCTIONS[problem])} ({problem.upper()})" for problem in searched]
    if firsts:
        mended = ", the CVRP's after a local search up to 2,000 customers" if "cvrp" in searched else ""
        lines.append(
            f"A network's search begins with its own solution or the best of {', '.join(firsts)}{mended}, whichever is "
            "shorter."
        )
    lines += [
        *(
            f"{problem.upper()}: the column `above construction` needs --method {' or '.join(CONSTRUCTIONS[problem])}."
            for problem, key in baselines.items()
            if not key and against is None
        ),
        *(f"{problem.upper()}: {s.too_few}." for problem, s in problems.items() if s.too_few),
        *left_out(problems),
        "`greedy`: one solution, `multistart`: the best of one from each start; no rotations, reflections or search. "
        f"Seconds: a budget of {clock} time, the same for all searches."
        + (" ortools stops by the wall clock, so on a busy machine it gets more of it." if "cpu" in of_clocks else ""),
        *_side_by_side(of_clocks),
        f"Times measured here: {clock} time an instance, one at a time, without loading. GFLOPs: a solution without "
        "search, all starts together.",
        *([THEIRS] if records.how.str.startswith("published").any() else []),
        f"At most {seeds} seeds of a method." if seeds > 1 else "One seed.",
    ]
    machines = {
        f"{d}, {t:g} thread{'s' if t != 1 else ''}"
        for d, t in zip(here.device, here.threads, strict=True)
        if d == d and t == t
    }
    return (*lines, *([f"Measured on {'; '.join(sorted(machines))}."] if machines else []))


def _side_by_side(of_clocks: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a line on times of two clocks in one column, as where kept records join, if there are any."""
    if len(of_clocks) < 2:
        return []
    each = "; ".join(f"{CLOCKS.get(clock, clock)} time: {', '.join(names)}" for clock, names in of_clocks.items())
    return [f"Times of two clocks do not compare where a machine is busy. {each}."]


def _described(problem: str, summary: Summary) -> str:
    sets, sizes = sorted(summary.records.set.unique()), list(summary.sizes.values())
    what = f"{len(sizes)} instance{'s' if len(sizes) > 1 else ''} of {' and '.join(sets)}, n = {sizes[0]:,}"
    to = f" to {sizes[-1]:,}" if sizes[-1] > sizes[0] else ""
    of_whom = " that are compared" if summary.apart else ""
    return f"{problem.upper()}: {what}{to}; {len(summary.common)} solved by all{of_whom}."


def _below_best(records: pd.DataFrame) -> list[str]:
    """Return a line on costs below the best known, as of other units or of unrounded distances."""
    below = records[records.gap_pct < -CLOSE].sort_values("gap_pct")
    if below.empty:
        return []
    most, count = below.iloc[0], len(below)
    published = below.how.str.startswith("published")
    origin = below.kind.map(lambda kind: "of results files" if kind == "file" else "measured here")
    origin = origin.where(~published, "published")
    of_kinds = ", ".join(f"{number} {kind}" for kind, number in origin.value_counts().items())
    return [
        f"{count} cost{'s' * (count > 1)} below the best one known ({of_kinds}), the largest by {most.method} on "
        f"{most.instance}: {most.cost:,g}, best known {most.best_known:,g}; better solutions, or costs in distances "
        "other than the library's rounded ones."
    ]


def _first_of(reasons: Sequence[str]) -> str:
    """Return the first reasons; those that name a size are as many as there are sizes."""
    more = f" and {len(reasons) - REASONS} more" if len(reasons) > REASONS else ""
    return " and ".join(reasons[:REASONS]) + more
