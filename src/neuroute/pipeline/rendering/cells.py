"""Table cells: the paper's printed numbers, and measured ones with what sampling the test instances leaves open."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from neuroute.analysis import RESAMPLES
from neuroute.analysis.contrasts import Gap
from neuroute.analysis.intervals import Array, percentile_interval, resampled_gaps
from neuroute.core.errors import NeurouteError
from neuroute.core.lazy import pd
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.table import Cell, PrintedSeconds, Value, described
from neuroute.specs.objects import Dataset, Decoding, Labels, Network, Problem

FEWEST = 6  # paired instances: fewer all lie on one side by chance more often than in 5 % (sign test)
MEAN_OF_GAPS = "gap_mean_of_ratios_pct"  # the metric whose mean is over instances
UNTRAINED = "–"  # for a method that is not measured here
RANGES = (
    f"Ranges are 95 % bootstrap intervals over test instances ({RESAMPLES:,} resamples); they do not cover "
    "seed variance."
)
BOOTSTRAP = f"{RANGES} The paper gives none."
ONE_SEED = "One training of each model (one seed), where no note names more."
SOLVERS = {
    "concorde": "Concorde",
    "concorde-6h": "Concorde (six hours)",
    "lkh": "LKH",
    "lkh-long": "LKH (10 runs)",
    "lkh3": "LKH3",
    "lkh3-short": "short LKH3",
    "hgs": "HGS",
    "hgs-long": "HGS",
    "hgs-timed": "HGS",
    "hgs-short": "short HGS",
    "insertion": "random insertion",
    "insertion-angle": "insertion by angle",
    "insertion-published": "insertion by angle, as published",
    "ortools": "OR-Tools",
    "ortools-short": "short OR-Tools",
    "ortools-x10": "OR-Tools (x10)",
    "ortools-network": "OR-Tools by the networks' rule",
    "published": "published solutions",
    "pyvrp": "PyVRP",
    "pyvrp-long": "PyVRP (60,000 iterations)",
    "pyvrp-short": "short PyVRP",
    "savings": "savings",
    "softdist": "tree search by distance",
}


def printed_numbers(study: Study, table: int | str, **where: object) -> pd.DataFrame:
    """Read the paper's numbers whose columns (method, problem, decoding, depth, ...) hold `where`."""
    return select(study.published(table), **where)


def select(rows: pd.DataFrame, **where: object) -> pd.DataFrame:
    """Keep the rows whose columns hold `where`.  Raises NeurouteError for a column that is not there."""
    if not where:
        return rows
    if missing := [key for key in where if key not in rows]:
        raise NeurouteError(f"printed numbers have no column '{missing[0]}'; there are {', '.join(map(str, rows))}")
    return rows[np.logical_and.reduce([(rows[key] == value).to_numpy(bool) for key, value in where.items()])]


def number(rows: pd.DataFrame, n: object, metric: str) -> Value:
    """Return the one printed value of a size; where the paper prints none, what it prints instead: OOM, N/A, — or <1s.

    n: None takes rows of any size.  Raises NeurouteError if there are several.
    """
    matches = [
        (value, str(text))
        for each, size, value, text in zip(rows.metric, rows.n, rows.value, rows.printed, strict=True)
        if each == metric and (n is None or str(size).removesuffix(".0") == str(n))
    ]
    if not matches:
        return None
    if len(matches) > 1:
        of = f"{metric} of {rows.method.iloc[0]}" + ("" if n is None else f" at n = {n}")
        raise NeurouteError(f"{len(matches)} printed numbers are {of}; tell them apart by method_params")
    ((value, text),) = matches
    if text == "nan":
        return "N/A"  # which pandas reads as missing
    if text == "-":
        return None
    if value != value or text.startswith("<"):
        return text
    return PrintedSeconds(value, text) if metric == "time_s" else float(value)


def quoted(study: Study, quantity: str) -> float:
    """Return a number of the whole study that stands in the paper's text or captions, but in no table."""
    rows = printed_numbers(study, "quoted", quantity=quantity)
    return float((rows[rows.depth.isna()] if "depth" in rows else rows).value.item())


def printed_gap(rows: pd.DataFrame, n: object) -> float | None:
    """Return the printed gap in % of a size, where there is a number."""
    value = number(rows, n, "gap_pct")
    return value if isinstance(value, float) else None


def gap_cell(
    study: Study, run: str, dataset: Dataset, published: Value = None, decoding: Decoding | str = "greedy"
) -> Cell:
    """Show the gap in % of one training with its bootstrap interval, where there are several instances.

    Of several trainings: their mean, between the least and the largest.
    """
    gaps, lengths = study.values("gap_pct", run, dataset, decoding), study.lengths(run, dataset, decoding)
    samples = resampled(*lengths) if gaps and lengths and dataset.count > 1 else None
    cell = over_trainings(gaps, samples, published, described(dataset))
    return replace(cell, behind=behind(study, run, gaps, samples, dataset))


def mean_of_gaps_cell(
    study: Study, run: str, dataset: Dataset, published: Value = None, decoding: Decoding | str = "greedy"
) -> Cell:
    """Show the mean of the instances' gaps in %, with its interval or range as `gap_cell`."""
    gaps = study.values(MEAN_OF_GAPS, run, dataset, decoding)
    samples = resampled_mean_of_gaps(study, run, dataset, decoding) if gaps and dataset.count > 1 else None
    cell = over_trainings(gaps, samples, published)
    return replace(cell, behind=behind(study, run, gaps, samples, dataset))


def over_trainings(gaps: Sequence[float], samples: Array | None, published: Value = None, at: str = "") -> Cell:
    """Show the gap in % of one training with its interval; of several their mean, between the least and the largest."""
    if len(gaps) > 1:
        return mean_cell(gaps, published, at)
    return interval_cell(gaps[0] if gaps else None, samples, published, at)


MEANS = ", means"  # of several test sets, which trainings spread less in


def behind(study: Study, run: str, gaps: Sequence[float], samples: Array | None, *datasets: Dataset) -> Gap | None:
    """Say what stands behind a model's gap; nothing of what is no model, or was not measured."""
    model = study.runs.get(run.partition("@")[0])
    if not gaps or model is None:
        return None
    times, instances = max(dataset.n for dataset in datasets) / model.n, min(dataset.count for dataset in datasets)
    kind = model.network.kind.partition(":")[2] + MEANS * (len(datasets) > 1)
    drawn = " ".join(dataset.id for dataset in datasets)
    return Gap(tuple(gaps), errors_of(samples), drawn, instances, kind, datasets[0].problem, times, run)


def errors_of(samples: Array | None) -> Array:
    """Loadings of a mean's error on its resamples (resamples,): products of two means' are their covariance."""
    if samples is None:
        return np.zeros(1)
    errors: Array = (samples - samples.mean()) / (len(samples) - 1) ** 0.5
    return errors


def mean_cell(values: Sequence[float], published: Value = None, at: str = "") -> Cell:
    """Show the mean of a run's trainings between the least and the largest, where they differ."""
    if not values:
        return Cell(None, published)
    low, high = min(values), max(values)
    return Cell(sum(values) / len(values), published, low, high, at) if low < high else Cell(low, published, at=at)


def resampled_mean_of_gaps(study: Study, run: str, dataset: Dataset, decoding: Decoding | str) -> Array | None:
    """Mean the gaps in % of resampled instances (resamples,); None for what was not measured.

    Of test sets with as many instances the same ones are drawn.
    """
    lengths = study.lengths(run, dataset, decoding)
    return None if lengths is None else resampled(lengths[0] / lengths[1], lengths[1] / lengths[1])


def resampled(lengths: Array, reference: Array) -> Array:
    """Compute the gaps in % of resampled instances: (count,) lengths -> (resamples,)."""
    return resampled_gaps(lengths, reference)[:, 0]


def interval_cell(value: Value, samples: Array | None, published: Value = None, at: str = "") -> Cell:
    """Show a measured value with the 95 % interval of its bootstrap samples."""
    if value is None:
        return Cell(None, published)
    if samples is None:
        return Cell(value, published, at=at)
    interval = percentile_interval(samples)
    return Cell(value, published, interval.low, interval.high, at)


# -- of runs that were trained with several seeds ----------------------------------------------------------------------


def summary_cell(study: Study, run: str, key: str) -> Cell:
    """Show what a run's trainings have left in run.json under a key, their mean between the least and the largest."""
    values = [s[key] for training in study.trainings(run) if (s := study.summary(training)).get(key) is not None]
    study.note_seeds(run, len(values))
    return mean_cell(values)


def say_seeds(study: Study) -> list[str]:
    """Say of which runs means over several trainings are shown, and what the ranges of these are."""
    counts = study.shown_seeds()
    if not counts:
        return []
    texts = ", ".join(f"{run.removeprefix(f'{study.artifact.paper}/')} ({count})" for run, count in counts.items())
    return [
        f"Trained with several seeds: {texts}. Shown: the mean over seeds, and the range of the trainings, from the "
        "least to the largest."
    ]


def model_here(study: Study, *runs: str | None) -> str:
    """Name depth and width of the runs' networks; a dash for a method that is not trained here."""
    sources = study.weight_sources()
    names = [
        ", ".join([_shape(study.runs[run].network), *([sources[run].partition(" (")[0]] if run in sources else [])])
        for run in runs
        if run is not None and run in study.runs
    ]
    return "; ".join(dict.fromkeys(names)) or UNTRAINED


def _shape(network: Network) -> str:
    if network.arguments.keys() >= {"depth", "width"}:
        return f"D={network.arguments['depth']}, W={network.arguments['width']}"
    return network.kind.partition(":")[2]


def solver_name(solver: str) -> str:
    """Name a solver in running text."""
    return SOLVERS.get(solver, solver)


def with_budget(label: str, paper: int, here: int) -> str:
    """Label a search: PRC100, or `PRC100, here 10`."""
    return label if paper == here else f"{label}, here {here:,}"


# -- lengths, gaps and times of classical solvers, from the manifests of label jobs ----------------------------------

TIMES = "A solver's time: its calls on one core, if the label job measured them."


@dataclass(frozen=True)
class Solvers:
    """What the label manifests of an artifact tell, by labels id."""

    study: Study
    entries: Mapping[str, Mapping[str, Any]]

    @classmethod
    def of(cls, study: Study) -> Solvers:
        return cls(study, {job: study.manifest(job) for job in study.artifact.label_jobs})

    def entry(self, dataset: Dataset, solver: str) -> Mapping[str, Any] | None:
        """Return what was made of this data set."""
        return self.entries.get(Labels(dataset=dataset, solver=solver).id)

    def first(self, reference: Labels, names: Sequence[str]) -> str | None:
        """Return the first of the solvers `names` whose lengths of the set of `reference` are known."""
        return next((solver for solver in names if self.mean(reference, solver) is not None), None)

    def mean(self, reference: Labels, solver: str) -> float | None:
        """Return the mean length of exactly these instances; the reference solver's perhaps as evaluations keep it."""
        if solver == reference.solver and (lengths := self.study.reference_lengths(reference.dataset)) is not None:
            return float(lengths.mean())
        entry = self.entry(reference.dataset, solver)
        if entry and entry.get("mean_length") is not None:
            return float(entry["mean_length"])
        return None

    def gap(self, reference: Labels, solver: str) -> float | None:
        """Return the gap in %, as ratio of mean lengths; the reference solver's is 0 by construction."""
        mean, best = self.mean(reference, solver), self.mean(reference, reference.solver)
        return 100 * (mean / best - 1) if mean is not None and best is not None else None

    def mean_of_gaps(self, reference: Labels, solver: str) -> float | None:
        """Return the mean of the instances' gaps in %."""
        lengths, best = (self.lengths(reference, name) for name in (solver, reference.solver))
        return 100 * float((lengths / best - 1).mean()) if lengths is not None and best is not None else None

    def lengths(self, reference: Labels, solver: str) -> Array | None:
        """Return the length of each instance (count,); None where it was not solved."""
        if solver == reference.solver and (stored := self.study.reference_lengths(reference.dataset)) is not None:
            return stored
        entry = self.entry(reference.dataset, solver)
        return np.array(entry["lengths"]) if entry and "lengths" in entry else None

    def seconds(self, reference: Labels, solver: str) -> float | None:
        """Return the seconds of the solver's calls for one instance, on one core."""
        entry = self.entry(reference.dataset, solver)
        return entry["seconds"] / entry["count"] if entry and entry.get("seconds") is not None else None

    def total_seconds(self, reference: Labels, solver: str) -> float | None:
        """Return the seconds of the solver's calls for the whole set."""
        seconds = self.seconds(reference, solver)
        return None if seconds is None else seconds * reference.dataset.count

    def here(self, references: Iterable[Labels], names: Sequence[str]) -> str:
        """Name the solvers that play a row's role, with their versions; a dash for none."""
        names_here: dict[str, None] = {}
        for reference in references:
            solvers_here = (s for s in names if s == reference.solver or self.mean(reference, s) is not None)
            if (solver := next(solvers_here, None)) is not None:
                name = solver_name(solver)  # LKH (elkai 2.0.1); Concorde's version says its name already
                version = str((self.entry(reference.dataset, solver) or {}).get("version") or "")
                text = version if version.startswith(name) else f"{name} ({version})" if version else name
                names_here[text] = None
        return ", ".join(names_here) or UNTRAINED


def references_by_problem(
    tests: Mapping[Problem, Mapping[int, Labels]], published: Mapping[Problem, str], name: Callable[[int], str] = str
) -> str:
    """Say against whose solutions gaps are, by problem and size (`name` of one), here and in print."""
    parts, alone = [], dict[str, None]()
    for problem, sets in tests.items():
        sizes: dict[str, list[str]] = {}
        for size, labels in sets.items():
            if is_construction(labels.solver):
                alone[f"{problem.upper()} {name(size)}"] = None
            else:
                sizes.setdefault(solver_name(labels.solver), []).append(name(size))
        names = [solver if len(sizes) == 1 else f"{solver} ({', '.join(at)})" for solver, at in sizes.items()]
        parts.append(f"{problem.upper()} by {', '.join(names)}; the paper's by {published[problem]}")
    lengths = f" No gaps at {', '.join(alone)}: an insertion is the reference there." if alone else ""
    return f"Gaps are ratios of mean lengths, against solutions of the {'. Of the '.join(parts)}.{lengths}"


def is_construction(solver: str) -> bool:
    """Whether a solver improves nothing: gaps to its solutions say nothing of the best ones."""
    return solver.partition("-")[0] in ("insertion", "nearest", "savings")
