"""What a table or figure is drawn from: the records, logs and manifests that its artifact declares."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from itertools import count, product, takewhile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuroute.core.errors import NeurouteError
from neuroute.core.files import busy, check_stated, is_of_other_weights, read_json
from neuroute.core.lazy import pd
from neuroute.pipeline.plan.changes import with_seed
from neuroute.pipeline.plan.config import Config, Scale
from neuroute.pipeline.plan.paper import PRINTED_COLUMNS
from neuroute.specs.objects import Artifact, Dataset, Decoding, GivenRun, Run

Lengths = tuple[NDArray[np.float64], NDArray[np.float64]]  # of a model's solutions, and of the reference ones


@dataclass(frozen=True)
class Study:
    """One artifact's view of the work folder.

    Everything is read when first asked for, so an artifact that reads no runs needs no files.
    """

    artifact: Artifact
    config: Config
    scale: Scale
    runs: Mapping[str, Run]  # all runs of the paper, and those of others that it reads, by id
    work: Path  # <work_dir>/<scale name>
    _cache: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def load(cls, artifact: Artifact, config: Config, scale: Scale, runs: Iterable[Run], work: Path) -> Study:
        """`runs`: the plan's runs; those of other papers are left out, unless the artifact reads them."""
        read_runs = {e.rpartition("/")[0] for e in artifact.evaluations}
        own_runs = {run.id: run for run in runs if run.paper == artifact.paper or run.id in read_runs}
        return cls(artifact, config, scale, own_runs, work)

    @cached_property
    def records(self) -> pd.DataFrame:
        """All the artifact's evaluation records, one row per measured number; no rows when it declares none."""
        from neuroute.evaluation.loaded import COLUMNS

        parts = [_read_records(self.work, evaluation) for evaluation in self.artifact.evaluations]
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=list(COLUMNS))

    def busy(self) -> str:
        """Say how busy the machine was when the artifact's evaluations ended; nothing where their times count."""
        return busy(self.work / "evaluations" / f"{evaluation}.csv" for evaluation in self.artifact.evaluations)

    def trainings(self, run: str) -> list[str]:
        """List a run, or its end of a stage, and those of its further trainings that the artifact reads."""
        further = (with_seed(run, i) for i in count(1))
        return [run, *takewhile(lambda training: training.partition("@")[0] in self._read_runs, further)]

    @cached_property
    def _read_runs(self) -> set[str]:
        return {*self.artifact.runs, *(evaluation.rpartition("/")[0] for evaluation in self.artifact.evaluations)}

    def values(self, metric: str, run: str, dataset: Dataset, decoding: Decoding | str = "greedy") -> list[float]:
        """The measured value of one cell of each training of a run that has one.

        Raises NeurouteError when the records hold more than one value of a training.
        """
        every: list[float] = []
        for training in self.trainings(run):
            key = (training, dataset.id, _id(decoding))
            self._cache.setdefault("used", set()).add(key)
            values = self._values.get((*key, metric), ())
            if len(values) > 1:
                raise NeurouteError(
                    f"{self.artifact.id}: {len(values)} values of {metric} for {training} on {dataset.id} "
                    f"({_id(decoding)}); delete this run's evaluation files and evaluate again"
                )
            every += values
        self.note_seeds(run, len(every))
        return every

    def value(self, metric: str, run: str, dataset: Dataset, decoding: Decoding | str = "greedy") -> float | None:
        """The measured value of one cell, of several trainings their mean; None where it was not measured."""
        values = self.values(metric, run, dataset, decoding)
        return sum(values) / len(values) if values else None

    def note_seeds(self, run: str, trainings: int) -> None:
        """Remember that what is shown of a run is of so many trainings."""
        if trainings > 1:
            seeds = self._cache.setdefault("seeds", {})
            seeds[run] = max(trainings, seeds.get(run, 0))

    def shown_seeds(self) -> dict[str, int]:
        """Runs of which means over several trainings are shown -> how many."""
        return dict(self._cache.get("seeds", {}))

    def note_cell(self, labels: Sequence[str], column: str, run: str | None) -> None:
        """Remember which model a cell of a table is about: what is to be measured anew for that cell alone."""
        rows: dict[str, dict[str, str]] = self._cache.setdefault("cells", {})
        if run is not None:
            rows.setdefault(", ".join(map(str, labels)), {})[column] = run

    def made_from(self) -> dict[str, Any]:
        """State the models, measurements and labels that the artifact is drawn from, each by its sha256 and commit.

        And, of the cells of a table, which model each is about.
        """
        from neuroute.datasets.store import label_digests

        mend = "measure it again"
        evaluations = {e: self.work / "evaluations" / f"{e}.json" for e in self.artifact.evaluations}
        measured = {e: read_json(path, mend) for e, path in evaluations.items() if path.exists()}
        ids = dict.fromkeys([*(e.rpartition("/")[0] for e in evaluations), *self.artifact.runs])
        summaries = {run: self.work / "runs" / run / "run.json" for run in ids}
        trained = {run: read_json(path, mend) for run, path in summaries.items() if path.exists()}
        made = [job for job in self.artifact.label_jobs if (self.work / "labels" / f"{job}.json").exists()]
        stated = [job for job in made if self.manifest(job).keys() >= {"labels", "shards"}]
        labels = label_digests(stated, [self.work / "labels"])
        for statement in (*trained.values(), *measured.values()):
            labels |= statement.get("labels_sha256", {})
        facts = ("values_sha256", "weights_sha256", "source")
        return {
            "runs": {run: {key: about.get(key) for key in facts[1:]} for run, about in trained.items()},
            "evaluations": {e: {key: about.get(key) for key in facts} for e, about in measured.items()},
            "labels": dict(sorted(labels.items())),
            "cells": self._cache.get("cells", {}),
        }

    def gap(self, run: str, dataset: Dataset, decoding: Decoding | str = "greedy") -> float | None:
        """Optimality gap in percent, as the ratio of mean lengths."""
        return self.value("gap_pct", run, dataset, decoding)

    @cached_property
    def _values(self) -> dict[tuple[str, ...], list[float]]:
        """Measured values by (run, test, decoding, metric)."""
        rows = self.records.dropna(subset=["value"])
        values: dict[tuple[str, ...], list[float]] = {}
        for *key, value in zip(rows.run, rows.test, rows.decoding, rows.metric, rows.value, strict=True):
            values.setdefault(tuple(key), []).append(float(value))
        return values

    def lengths(self, run: str, dataset: Dataset, decoding: Decoding | str = "greedy") -> Lengths | None:
        """(own, reference) tour lengths (count,) of one cell, or None where it was not measured.

        Of several trainings an instance's length is their mean, so that its gap is the mean of their gaps.
        """
        there = self._lengths(run, dataset, decoding)
        return (np.mean([lengths for lengths, _ in there], 0), there[0][1]) if there else None

    def lengths_of_each(self, run: str, dataset: Dataset, decoding: Decoding | str = "greedy") -> Lengths | None:
        """(count, trainings) own and (count,) reference lengths; None if one training of the run was not measured."""
        there = self._lengths(run, dataset, decoding)
        if len(there) < len(self.trainings(run)):
            return None
        self.note_seeds(run, len(there))
        return np.stack([lengths for lengths, _ in there], 1), there[0][1]

    def _lengths(self, run: str, dataset: Dataset, decoding: Decoding | str) -> list[Lengths]:
        """Of each training that was measured there."""
        there: dict[str, Lengths] = {}
        for training, evaluation in product(self.trainings(run), self.artifact.evaluations):
            model, _, stage = training.partition("@")
            if training not in there and evaluation.rpartition("/")[0] == model:
                stored, of = self._stored(evaluation), f"{stage}|{dataset.id}" if stage else dataset.id
                if (unrounded := stored.get(f"{of}|{_id(decoding)}")) is not None:
                    there[training] = unrounded, stored[f"{of}|reference"]
        return list(there.values())

    def reference_lengths(self, dataset: Dataset) -> NDArray[np.float64] | None:
        """Lengths of the reference solutions of a data set (count,), as any evaluation of a model has kept them."""
        for evaluation in self.artifact.evaluations:
            lengths = self._stored(evaluation).get(f"{dataset.id}|reference")
            if lengths is not None:
                return lengths
        return None

    def mark(self, rows: pd.DataFrame) -> None:
        """Count these records among what the artifact shows."""
        keys = set(zip(rows.run, rows.test, rows.decoding, strict=True))
        self._cache.setdefault("used", set()).update((each, *of) for run, *of in keys for each in self.trainings(run))

    def arrays(self, measurement: str) -> Mapping[str, NDArray[Any]]:
        """What one measurement of a model, "<run>/<name>", has kept besides its records: what a probe saw.

        Raises NeurouteError for one that the artifact does not need.
        """
        run, _, name = measurement.rpartition("/")
        ids = [e for e in self.artifact.evaluations if e.rpartition("/")[0] == run]
        self._check_needed(f"measurement {measurement}", bool(ids))
        self.mark(self.records[(self.records.run == run) & (self.records.group == name)])
        stored = (item for e in ids for item in self._stored(e).items())
        return {key.removeprefix(f"{name}/"): each for key, each in stored if key.startswith(f"{name}/")}

    def _check_needed(self, need: str, is_needed: bool) -> None:
        """Raises NeurouteError for what is read without being needed: it would change, and the drawing would not."""
        if not is_needed:
            raise NeurouteError(f"{self.artifact.id}: reads what it does not need; add {need} to its needs")

    def _stored(self, evaluation: str) -> Mapping[str, NDArray[Any]]:
        path = self.work / "evaluations" / f"{evaluation}.npz"
        if path not in self._cache:
            mend = _check_measured(self.work, evaluation, path)
            try:
                with np.load(path) as file:
                    self._cache[path] = {key: file[key] for key in file.files}
            except FileNotFoundError:
                raise NeurouteError(f"{path}: missing; {mend}") from None
            except (OSError, ValueError) as error:
                raise NeurouteError(f"{path}: not a readable npz ({error}); {mend}") from None
        stored: Mapping[str, NDArray[Any]] = self._cache[path]
        return stored

    def log(self, run: str, kind: str | None = None) -> pd.DataFrame:
        """The training log of a run, one row per line; `kind` keeps only "train" or only "validation" lines.

        Raises NeurouteError for a run whose log the artifact does not need, or that is not there.
        """
        self._check_needed(f'Log("{run}")', run in self.artifact.runs)
        path = self.work / "runs" / run / "log.jsonl"
        try:
            lines = [json.loads(line) for line in path.read_bytes().splitlines() if line.strip()]
        except FileNotFoundError:
            raise NeurouteError(f"{path}: missing; train {run}") from None
        except ValueError as error:  # also of bytes that are no text
            raise NeurouteError(f"{path}: not valid JSON lines ({error}); train {run} again") from None
        chosen_lines = [line for line in lines if kind is None or line.get("kind") == kind]
        return pd.DataFrame(chosen_lines)

    def summary(self, run: str) -> dict[str, Any]:
        """What training left in run.json: device, wall time, updates, samples.

        Raises NeurouteError for a run that the artifact does not need, or that is not there.
        """
        self._check_needed(f'Log("{run}")', run in self._read_runs)
        return read_json(self.work / "runs" / run / "run.json", f"train {run}")

    def weight_sources(self) -> dict[str, str]:
        """Models of the artifact whose weights were not trained here -> where these come from."""
        sources = {
            r: str(self.summary(r)["weights"]) for r in self.artifact.runs if isinstance(self.runs.get(r), GivenRun)
        }
        if "weights" in self.records:
            table = self.records[["run", "weights"]].dropna().drop_duplicates("run")
            sources |= dict(zip(table.run, table.weights, strict=True))
        return sources

    def manifest(self, job: str) -> dict[str, Any]:
        """What a label job wrote down: solver, version, seconds and mean length.

        Raises NeurouteError for labels that the artifact does not need, or that are not there.
        """
        self._check_needed(f"Solved of {job}", job in self.artifact.label_jobs)
        return read_json(self.work / "labels" / f"{job}.json", f"label {job} again")

    def published(self, name: int | str) -> pd.DataFrame:
        """The paper's printed numbers (`table12` for 12, or a file name), with `method_params` as columns.

        No rows where there is no such file.
        """
        name = f"table{name}" if isinstance(name, int) else name
        if ("published", name) not in self._cache:
            self._cache["published", name] = _read_published(self.artifact.paper, name)
        frame: pd.DataFrame = self._cache["published", name]
        return frame

    def measured_on(self) -> dict[str, Any]:
        """Where this artifact's numbers come from: scale, test sets, devices, torch versions."""
        on: dict[str, Any] = {"scale": self.scale.name, "summary": self.scale.summary}
        records = self.records
        if used := self._cache.get("used"):  # an evaluation may hold more than this artifact shows
            keys = list(zip(records.run, records.test, records.decoding, strict=True))
            records = records[[key in used for key in keys]]
        if len(records):
            tests = records[["test", "distribution", "n", "n_instances", "reference"]].drop_duplicates("test")
            on["tests"] = tests.sort_values(["n", "n_instances"]).to_dict("records")
            on["decodings"] = list(dict.fromkeys(records.decoding))
            on["devices"] = [str(d) for d in dict.fromkeys(records.device)]
            on["threads"] = sorted({int(t) for t in records.threads.dropna()})
            on["torch"] = [str(t) for t in dict.fromkeys(records.torch)]
            on["models"] = int(records.run.nunique())
            on["seeds"] = sorted({int(s) for s in records.seed.dropna()})
        elif self.artifact.runs:
            summaries = [self.summary(run) for run in self.artifact.runs]
            on["devices"] = list(dict.fromkeys(str(s.get("device_name") or s.get("device")) for s in summaries))
            on["threads"] = sorted({int(s["threads"]) for s in summaries if s.get("threads")})
            on["torch"] = list(dict.fromkeys(str(s["torch"]) for s in summaries if s.get("torch")))
            on["models"] = len(summaries)
            runs = (self.runs[r] for r in self.artifact.runs if r in self.runs)
            on["seeds"] = sorted({run.seed for run in runs if not isinstance(run, GivenRun)})
        if sources := self.weight_sources():
            on["weights"] = sources
        return on


def _id(decoding: Decoding | str) -> str:
    return decoding if isinstance(decoding, str) else decoding.name


def _read_published(paper: str, name: str) -> pd.DataFrame:
    path = files(f"neuroute.pipeline.papers.{paper}") / "published" / f"{name}.csv"
    if not path.is_file():  # a table of one's own has none
        return pd.DataFrame(columns=list(PRINTED_COLUMNS))
    with path.open(encoding="utf-8") as file:
        frame = pd.read_csv(file)
    if "method" in frame:  # others hold settings, in words
        frame["value"] = pd.to_numeric(frame.value)
    if "method_params" not in frame:
        return frame
    pairs = [dict(p.split("=") for p in str(text).split(";") if "=" in p) for text in frame.method_params]
    params = pd.DataFrame(pairs, index=frame.index).apply(_numbers)
    return frame.join(params.drop(columns=params.columns.intersection(frame.columns)))


def _numbers(column: pd.Series) -> pd.Series:
    """The column as numbers where all its values are numbers."""
    numbers = pd.to_numeric(column, errors="coerce")
    return numbers if numbers.isna().equals(column.isna()) else column


def _check_measured(work: Path, evaluation: str, path: Path) -> str:
    """Return how to mend what an evaluation has left at a path.

    Raises NeurouteError if it is not what was measured, or of other weights than now lie there.
    """
    mend, run = f"evaluate it again: `neuroute evaluate {evaluation}`", evaluation.rpartition("/")[0]
    check_stated(path, mend)
    if is_of_other_weights(path, work / "runs" / run / "run.json", mend):
        raise NeurouteError(f"{path}: was measured with other weights than {run} now has; {mend}")
    return mend


def _read_records(work: Path, evaluation: str) -> pd.DataFrame:
    path = work / "evaluations" / f"{evaluation}.csv"
    _check_measured(work, evaluation, path)
    try:
        frame = pd.read_csv(path)
    except FileNotFoundError:
        raise NeurouteError(f"{path}: missing; evaluate this run first") from None
    except (pd.errors.EmptyDataError, pd.errors.ParserError) as error:
        raise NeurouteError(f"{path}: not valid CSV ({error}); delete it and evaluate again") from None
    missing = [c for c in ("run", "test", "decoding", "metric", "value") if c not in frame]
    if missing:
        raise NeurouteError(f"{path}: no column {', '.join(missing)}; delete it and evaluate again")
    return frame
