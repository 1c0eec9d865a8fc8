"""What a table or figure is drawn from: the records, logs and manifests that its artifact declares."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuroute.core.errors import NeurouteError
from neuroute.core.files import read_json
from neuroute.core.lazy import pd
from neuroute.plan.config import Config, Scale
from neuroute.plan.decoding_names import name_of
from neuroute.plan.objects import Artifact, Dataset, Decoding, GivenRun, Run


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
        from neuroute.evaluation.records import COLUMNS

        parts = [_read_records(self.work / "evaluations" / f"{e}.csv") for e in self.artifact.evaluations]
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=list(COLUMNS))

    def value(self, metric: str, run: str, dataset: Dataset, decoding: Decoding | str = "greedy") -> float | None:
        """The measured value of one cell, or None where it was not measured.

        Raises NeurouteError when the records hold more than one value for the cell.
        """
        key = (run, dataset.id, _id(decoding))
        self._cache.setdefault("used", set()).add(key)
        values = self._values.get((*key, metric), ())
        if len(values) > 1:
            raise NeurouteError(
                f"{self.artifact.id}: {len(values)} values of {metric} for {run} on {dataset.id} ({_id(decoding)}); "
                "delete the evaluation files of this run and evaluate it again"
            )
        return values[0] if values else None

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

    def lengths(
        self, run: str, dataset: Dataset, decoding: Decoding | str = "greedy"
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """(own, reference) tour lengths (count,) of one cell, or None where it was not measured."""
        for evaluation in self.artifact.evaluations:
            if evaluation.rpartition("/")[0] == run:
                stored = self._stored(evaluation)
                unrounded = stored.get(f"{dataset.id}|{_id(decoding)}")
                if unrounded is not None:
                    return unrounded, stored[f"{dataset.id}|reference"]
        return None

    def reference_lengths(self, dataset: Dataset) -> NDArray[np.float64] | None:
        """Lengths of the reference solutions of a data set (count,), as any evaluation of a model has kept them."""
        for evaluation in self.artifact.evaluations:
            lengths = self._stored(evaluation).get(f"{dataset.id}|reference")
            if lengths is not None:
                return lengths
        return None

    def mark(self, rows: pd.DataFrame) -> None:
        """Count these records among what the artifact shows."""
        keys = zip(rows.run, rows.test, rows.decoding, strict=True)
        self._cache.setdefault("used", set()).update(keys)

    def arrays(self, evaluation: str) -> Mapping[str, NDArray[Any]]:
        """The .npz twin of an evaluation's records: tour lengths, or what a probe saw.

        Of an evaluation that was measured together with the others of its model, its own part.
        """
        run, _, group = evaluation.rpartition("/")
        self.mark(self.records[(self.records.run == run) & (self.records.group == group)])
        if evaluation not in self.artifact.evaluations and f"{run}/all" in self.artifact.evaluations:
            stored = self._stored(f"{run}/all")
            return {key.removeprefix(f"{group}/"): a for key, a in stored.items() if key.startswith(f"{group}/")}
        return self._stored(evaluation)

    def _stored(self, evaluation: str) -> Mapping[str, NDArray[Any]]:
        path = self.work / "evaluations" / f"{evaluation}.npz"
        if path not in self._cache:
            try:
                with np.load(path) as file:
                    self._cache[path] = {key: file[key] for key in file.files}
            except FileNotFoundError:
                raise NeurouteError(f"{path}: missing; evaluate it again: `neuroute evaluate {evaluation}`") from None
            except (OSError, ValueError) as error:
                raise NeurouteError(
                    f"{path}: not a readable npz ({error}); evaluate it again: `neuroute evaluate {evaluation}`"
                ) from None
        stored: Mapping[str, NDArray[Any]] = self._cache[path]
        return stored

    def log(self, run: str, kind: str | None = None) -> pd.DataFrame:
        """The training log of a run, one row per line; `kind` keeps only "train" or only "validation" lines."""
        path = self.work / "runs" / run / "log.jsonl"
        try:
            lines = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
        except FileNotFoundError:
            raise NeurouteError(f"{path}: missing; train {run}") from None
        except json.JSONDecodeError as error:
            raise NeurouteError(f"{path}: not valid JSON lines ({error}); train {run} again") from None
        chosen_lines = [line for line in lines if kind is None or line.get("kind") == kind]
        return pd.DataFrame(chosen_lines)

    def summary(self, run: str) -> dict[str, Any]:
        """What training left in run.json: device, wall time, updates, samples."""
        return dict(read_json(self.work / "runs" / run / "run.json", f"train {run}"))

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
        """What a label job wrote down: solver, version, seconds and mean length of each set of labels."""
        return dict(read_json(self.work / "labels" / f"{job}.json", f"label {job} again"))

    def published(self, name: int | str) -> pd.DataFrame:
        """The paper's printed numbers (`table12` for 12, or a file name), with `method_params` as columns."""
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
    return decoding if isinstance(decoding, str) else name_of(decoding)


def _read_published(paper: str, name: str) -> pd.DataFrame:
    with (files(f"neuroute.papers.{paper}") / "published" / f"{name}.csv").open() as file:
        frame = pd.read_csv(file)
    if "method_params" not in frame:
        return frame
    pairs = [dict(p.split("=") for p in str(text).split(";") if "=" in p) for text in frame.method_params]
    params = pd.DataFrame(pairs, index=frame.index).apply(_numbers)
    return frame.join(params.drop(columns=params.columns.intersection(frame.columns)))


def _numbers(column: pd.Series) -> pd.Series:
    """The column as numbers where all its values are numbers."""
    numbers = pd.to_numeric(column, errors="coerce")
    return numbers if numbers.isna().equals(column.isna()) else column


def _read_records(path: Path) -> pd.DataFrame:
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
