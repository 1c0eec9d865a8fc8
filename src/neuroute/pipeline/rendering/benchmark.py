"""Records of a public benchmark, where models are compared on the instances that all of them have solved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from neuroute.analysis.contrasts import Gap
from neuroute.core.lazy import pd
from neuroute.datasets.benchmarks import library, study_instances
from neuroute.pipeline.rendering.cells import errors_of, resampled
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.table import Cell, Value
from neuroute.specs.evaluations import Benchmark

Nodes = tuple[int, int]  # from and to, both counted in


@dataclass(frozen=True)
class Solved:
    """Records of the instances that every model has solved in every way measured; no rows without any."""

    benchmark: str
    records: pd.DataFrame

    @classmethod
    def by_all(cls, study: Study, measurements: Iterable[str], benchmark: str = "tsplib") -> Solved:
        """Read them; `measurements` are ids, "<run>/<name>", of which one that was not taken does not count."""
        records = records_of(study, measurements, benchmark)
        ways = records.run + " " + records.decoding
        solved = ways.groupby(records.test).nunique()
        common = records[records.test.isin(solved.index[solved == ways.nunique()])]
        study.mark(common)
        return cls(benchmark, common)

    def within(self, nodes: Nodes) -> pd.DataFrame:
        """Keep the records of instances with so many nodes."""
        return self.records[self.records.n.astype(float).between(*nodes)]

    def count(self, nodes: Nodes) -> int:
        """Count the instances with so many nodes."""
        return int(self.within(nodes).test.nunique())

    def describe(self, nodes: Nodes, sets: tuple[str, ...] = ()) -> str:
        """Describe a group: 3 of 22 instances; nothing for none."""
        here, every = self.count(nodes), study_instances(nodes[1] + 1, nodes[0], self.benchmark, sets)
        return f"{here} of {len(every)} instances" if here else ""

    def values(self, metric: str, run: str | None, decoding: str, nodes: Nodes) -> pd.Series:
        """Return the values of one model in one decoding, an instance each."""
        return self._of(metric, run, decoding, nodes).value.astype(float)

    def _of(self, metric: str, run: str | None, decoding: str, nodes: Nodes) -> pd.DataFrame:
        r = self.within(nodes).sort_values("test")
        return r[(r.run == run) & (r.decoding == decoding) & (r.metric == metric)]

    def mean(self, metric: str, run: str | None, decoding: str, nodes: Nodes) -> float | None:
        """Return their mean; None for what was not measured."""
        values = self.values(metric, run, decoding, nodes)
        return float(values.mean()) if len(values) else None

    def gap_cell(
        self, study: Study, run: str | None, decoding: str, nodes: Nodes, published: Value = None,
        metric: str = "gap_pct",
    ) -> Cell:  # fmt: skip
        """Show a model's mean gap in % with what stands behind it: of the same instances the same are resampled."""
        records = self._of(metric, run, decoding, nodes)
        gaps = records.value.astype(float)
        if not len(gaps):
            return Cell(None, published)
        mean, model = float(gaps.mean()), study.runs.get(run or "")
        if model is None or run is None:
            return Cell(mean, published)
        trainings = tuple(float(np.mean(of)) for of in zip(*records.trainings, strict=False))
        samples = resampled(1 + gaps.to_numpy() / 100, np.ones(len(gaps)))
        times, problem = float(self.within(nodes).n.max()) / model.n, library(self.benchmark).problems[0]
        kind, drawn = model.network.kind.partition(":")[2], f"{self.benchmark} {nodes}"
        behind = Gap(trainings, errors_of(samples), drawn, len(gaps), kind, problem, times, run)
        return Cell(mean, published, behind=behind)


def records_of(study: Study, measurements: Iterable[str], benchmark: str) -> pd.DataFrame:
    """Return all records of these measurements on a benchmark.

    Of a run with several trainings: the means of those that were measured.
    """
    records, ids = study.records[study.records.distribution == benchmark], list(measurements)
    run_of = {each: run for run, _, _ in (e.rpartition("/") for e in ids) for each in study.trainings(run)}
    records = records.assign(training=records.run, run=records.run.map(run_of))
    records = records[(records.run + "/" + records.group).isin(ids)].sort_values("training", kind="stable")
    for run, trainings in records.groupby("run").training.nunique().items():
        study.note_seeds(str(run), int(trainings))
    of_cell = records.groupby(["run", "test", "decoding", "metric"]).value
    each = of_cell.agg(tuple).rename("trainings")  # what each of them has there
    first = records.assign(value=of_cell.transform("mean"))[records.training == records.run]
    return first.join(each, on=["run", "test", "decoding", "metric"])


def measured_here(study: Study, least: int, below: int, benchmark: Benchmark = "tsplib") -> str:
    """Say which instances the scale measures: those of so many nodes, or only some of them."""
    here = f"those from {least:,} to {below - 1:,} nodes" if least > 1 else f"those below {below:,} nodes"
    names = study.scale.instances_of(benchmark)
    some = [k.name for k in study_instances(below, least, benchmark, names=names)]
    return f"{', '.join(some) or 'none'} of {here}" if names else here


def none_there(benchmark: str) -> str:
    """Say that no instance was there, and how to get some."""
    return (
        f"No instance of {benchmark.upper()} was found, so only printed numbers are shown. Set `benchmarks_dir` in "
        "config.yaml to a local copy, or run again with internet access."
    )


def not_measured(
    study: Study,
    records: pd.DataFrame,
    max_nodes: int,
    runs: Mapping[str, str],
    benchmark: Benchmark = "tsplib",
    min_nodes: int = 0,
    sets: tuple[str, ...] = (),
) -> list[str]:
    """Say what `records` lack: instances that the scale measures in that range of nodes, models (name -> run)."""
    if not len(records):
        return [none_there(benchmark)]
    names = study.scale.instances_of(benchmark)
    expected = {k.name for k in study_instances(max_nodes, min_nodes, benchmark, sets, names)}
    lacking = sorted(expected - {str(test).removeprefix(f"{benchmark}_") for test in records.test})
    without = [name for name, run in runs.items() if run not in set(records.run)]
    return [f"Not measured here: {', '.join(names)}." for names in (lacking, without) if names]
