"""Fabricated work folders: records, logs and manifests in the formats that the stages write, from a paper's specs.

Nothing here knows what networks take: a `Fabric` says by which laws its paper's numbers come, and how its own kinds of
evaluations are written.
"""

import csv
import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from neuroute.core.dotted import resolve
from neuroute.datasets.benchmarks import PublishedInstance, study_instances
from neuroute.evaluation.loaded import COLUMNS
from neuroute.evaluation.snapshot import describe_modules
from neuroute.pipeline.plan.build import repeat_needs, repeat_runs
from neuroute.pipeline.plan.changes import can_be_met, left_out
from neuroute.pipeline.plan.config import Config, Scale, load_scale, parse_config
from neuroute.pipeline.plan.paper import Needs, Paper
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.table import Table
from neuroute.specs.objects import (
    Artifact,
    BenchmarkEvaluation,
    Dataset,
    Decoding,
    Evaluation,
    Labels,
    Measurement,
    Run,
    Test,
)

CONFIG: Config = parse_config({})
MICRO: Scale = load_scale(str(Path(__file__).parents[1] / "data" / "micro.yaml"))
GapLaw = Callable[[Run, Dataset, Decoding], float]  # gap in %; a benchmark's instance is a data set of its nodes
More = Callable[[Run, Dataset, Decoding], Mapping[str, float]]
Arrays = dict[str, NDArray[Any]]
Rows = list[dict[str, object]]
Made = tuple[Rows, Arrays]  # of one measurement


# -- laws -------------------------------------------------------------------------------------------------------------


def nothing_more(run: Run, dataset: Dataset, decoding: Decoding) -> Mapping[str, float]:
    return {}


def parameters(run: Run) -> int:
    """A count that grows with the paper's depth and width, where the run's role has them."""
    return 13 * role(run)[0] * role(run)[1] ** 2 + sum(map(ord, run.name))


def role(run: Run) -> tuple[int, int]:
    """The paper's (depth, width); of models without them some."""
    return run.role.get("depth", 6), run.role.get("width", 128)


def references(dataset: Dataset) -> NDArray[np.float64]:
    """Lengths (count,) of the reference solutions, which differ by variant."""
    rng = np.random.default_rng([dataset.n, *map(ord, str(dataset.variant or ""))])
    return rng.normal(0.7124 * dataset.nodes**0.5, 0.1, dataset.count)


@dataclass(frozen=True)
class Fabric:
    """One paper's fabricated numbers."""

    paper: Paper
    scale: Scale
    gap: GapLaw
    more: More = nothing_more  # further numbers of a record
    solvers: Mapping[str, float] = field(default_factory=dict)  # gaps of solvers in %; 0 for the others
    writers: Mapping[type[Any], Callable[..., Made]] = field(default_factory=dict)  # (fabric, measurement, run)
    logged: tuple[str, ...] = ()  # papers whose runs leave logs
    together: bool = False  # whether one job measures all of a model

    @cached_property
    def runs(self) -> list[Run]:
        return list(repeat_runs(CONFIG, self.scale, self.paper.runs(CONFIG, self.scale)))

    @cached_property
    def artifacts(self) -> dict[str, Artifact]:
        return {a.name: a for a in self.paper.artifacts(self._planned, self.labels, self.needs)}

    @cached_property
    def evaluations(self) -> list[Evaluation]:
        needs = [(d.name, need) for d, each in self.needs.items() for need in each]
        return self.paper.evaluations(self._planned, needs)

    @property
    def measurements(self) -> list[Measurement]:
        return [each for evaluation in self.evaluations for each in evaluation.measurements]

    @property
    def _planned(self) -> Scale:
        return self.scale.model_copy(update={"evaluate_together": self.together})

    @cached_property
    def needs(self) -> Needs:
        """Without those of rivals that the scale does not have."""
        runs, needs = {run.id: run for run in self.runs}, self.paper.needs(self.scale)
        declared = {d: list(repeat_needs(CONFIG, self.scale, each)) for d, each in needs.items()}
        absent = left_out((need for each in declared.values() for need in each), runs)
        return {d: [need for need in each if can_be_met(need, runs, absent)] for d, each in declared.items()}

    @cached_property
    def labels(self) -> list[Labels]:
        return self.paper.labels(self.scale, self.runs, self.evaluations, self.needs)

    def by(self, gap: GapLaw | None = None, scale: Scale | None = None) -> "Fabric":
        """The same by another law, or at another scale."""
        return replace(self, gap=gap or self.gap, scale=scale or self.scale)

    @cached_property
    def hopeless(self) -> "Fabric":
        """The same with what models on tiny test sets may give: gaps of zero and below."""
        return self.by(lambda run, *_: -0.3 if run.paper == self.paper.key else 0.0)

    def write(self, work: Path) -> Path:
        """Records of every evaluation that this fabric can write, logs, and the manifests of all label jobs."""
        by_id = {run.id: run for run in self.runs}
        for evaluation in self.evaluations:
            self.measure(evaluation, by_id[evaluation.run], work)
        for run in self.runs:
            if run.paper in self.logged:
                write_log(self, work, run)
        for labels in self.labels:
            write_manifest(work, self.label_entry(labels))
        return work

    def measure(self, evaluation: Evaluation, run: Run, work: Path) -> None:
        """Records of an evaluation, unless it holds what this fabric cannot write alone."""
        writers = {Test: write_test, BenchmarkEvaluation: write_benchmark, **self.writers}
        rows, arrays, known = Rows(), Arrays(), False
        for each in evaluation.measurements:
            if writer := writers.get(type(each)):
                own_rows, own_arrays = writer(self, each, run)
                if isinstance(each, Test):
                    stage = f"{each.stage}|" if each.stage else ""
                    own_rows = [r for r in own_rows if f"{stage}{r['test']}|{r['decoding']}" not in arrays]
                else:
                    own_arrays = {f"{each.name}/{key}": array for key, array in own_arrays.items()}
                rows, arrays, known = rows + own_rows, {**own_arrays, **arrays}, True
        if known:
            write_records(work, evaluation, rows, arrays)

    def label_entry(self, labels: Labels) -> dict[str, object]:
        lengths = self.solved(labels)
        return manifest_entry(labels, float(lengths.mean())) | {"lengths": lengths.tolist()}

    def solved(self, labels: Labels) -> NDArray[np.float64]:
        """Lengths (count,) of a solver's solutions: of others than the best the worse, the longer a solution is."""
        best = references(labels.dataset)
        worse = self.solvers.get(labels.solver, 0.0) / 100 * best**2 / (best**2).mean()
        return best + worse * best.mean()

    def study(self, name: str, work: Path, scale: Scale | None = None) -> Study:
        fabric = self.by(scale=scale) if scale else self
        return Study.load(fabric.artifacts[name], CONFIG, fabric.scale, fabric.runs, work)


@cache  # folders that are changed are changed before they are drawn
def drawn_table(artifact: Callable[[str, Path], Study], name: str, work: Path) -> Table:
    study = artifact(name, work)
    return resolve(study.artifact.function)(study)


# -- evaluations ------------------------------------------------------------------------------------------------------


def gaps(lengths: NDArray[np.float64], best: NDArray[np.float64]) -> dict[str, float]:
    return {
        "gap_pct": 100 * (lengths.mean() / best.mean() - 1),
        "gap_mean_of_ratios_pct": 100 * (lengths / best - 1).mean(),
        "length": lengths.mean(),
    }


# Words of decodings' names, and what numbers are drawn by in their place.
SEEDED_BY = {"multistart": "multi", "-images": "-i", "-draw": "-d", "-mean": "-r", "-batch": "-b", "-rescale": "-x"}


def write_test(fabric: Fabric, test: Test, run: Run) -> Made:
    """A test with the ways of decoding that become records: a milestone of random re-construct is one.

    The checkpoints of a run's stages are the better, the later.
    """
    rows, arrays, dataset = Rows(), Arrays(), test.labels.dataset
    stages = [stage.name for stage in getattr(run.training, "stages", ())]
    worse = 3 / (1 + stages.index(test.stage)) if test.stage else 1
    for k in test.decoding.milestones or (test.decoding.iterations,):
        decoding = test.decoding.model_copy(update={"iterations": k, "milestones": ()})
        best, cell = references(dataset), f"{dataset.id}|{decoding.name}"
        gap = worse * fabric.gap(run, dataset, decoding)
        how = decoding.name
        for word, short in SEEDED_BY.items():
            how = how.replace(word, short)
        seed = [dataset.n, *map(ord, f"{run.id}{how}{dataset.variant or ''}")]
        spread = np.random.default_rng(seed).normal(0, 0.002, dataset.count)
        lengths = best * (1 + gap / 100 + spread - spread.mean()) if gap else best.copy()
        arrays |= {f"{dataset.id}|reference": best, cell: lengths}
        work_done = decoding.beam**0.9 * (1 + decoding.iterations) * (1 if decoding.batch_size else 0.2)
        gflops = decoding.beam * dataset.n * parameters(run) / 1e9
        measured = gaps(lengths, best) | {
            "time_s": 1e-3 * dataset.count * dataset.n * work_done + 1e-4 * len(run.name) * (1 + dataset.n / 100),
            "peak_memory_mb": 300.0,
            "parameters": parameters(run),
            "gflops_paper": gflops,
            "gflops_shrinking": gflops / 2,
        }
        measured |= fabric.more(run, dataset, decoding)
        rows += records(test.name, run, about(dataset, test.labels.solver), decoding, measured, fabric.scale)
    if test.stage:
        rows = [row | {"run": f"{run.id}@{test.stage}"} for row in rows]
        arrays = {f"{test.stage}|{key}": each for key, each in arrays.items()}
    return rows, arrays


def write_benchmark(fabric: Fabric, e: BenchmarkEvaluation, run: Run) -> Made:
    rows = Rows()
    known = study_instances(e.max_nodes, e.min_nodes, e.benchmark, e.sets, e.names)
    lengths: dict[str, list[float]] = {decoding.name: [] for decoding in e.decodings}
    for k in known:
        for decoding in e.decodings:
            dataset = Dataset(problem="tsp" if e.benchmark == "tsplib" else "cvrp", n=k.nodes, count=1)
            gap = fabric.gap(run, dataset, decoding) + sum(map(ord, k.name)) % 7 / 10
            rounded = 100 * (round(k.optimum * (1 + (gap - 0.2) / 100)) / k.optimum - 1)
            lengths[decoding.name].append(k.optimum * (1 + gap / 100))
            measured = {"gap_pct": gap, "gap_rounded_pct": rounded, "length": lengths[decoding.name][-1]}
            measured |= {"time_s": k.nodes / 1e3, "peak_memory_mb": 300.0}
            measured |= fabric.more(run, dataset, decoding)
            where = {"distribution": e.benchmark, "n": k.nodes, "n_instances": 1}
            where |= {"test": f"{e.benchmark}_{k.name}", "reference": "published"}
            rows += records(e.name, run, where, decoding, measured, fabric.scale)
    arrays: Arrays = {"names": np.array([k.name for k in known]), "optima": np.array([k.optimum for k in known])}
    return rows, arrays | {key: np.array(values) for key, values in lengths.items()}


# -- records ----------------------------------------------------------------------------------------------------------


def about(dataset: Dataset, reference: str = "") -> dict[str, object]:
    """The columns of a record that say what it was measured on, and against whose solutions."""
    where = {"distribution": dataset.distribution, "n": dataset.n, "n_instances": dataset.count}
    return {"test": dataset.id, "reference": reference, **where}


def records(
    group: str,
    run: Run,
    about: Mapping[str, object],
    decoding: Decoding,
    measured: Mapping[str, float],
    scale: Scale = MICRO,
) -> list[dict[str, object]]:
    """One record per measured value, with the columns that say how and where."""
    how = {
        "decoding": decoding.name,
        "method": decoding.method,
        "beam": decoding.beam,
        "log_n": decoding.log_n,
        "batch_size": decoding.batch_size or "",
    }
    where = {"device": "Test CPU", "threads": 1, "torch": "2.11", "scale": scale.name, "code": "abc", "wall_time_s": 1}
    which = {"paper": run.paper, "run": run.id, "group": group, "seed": run.seed}
    return [
        which | dict(about) | how | {"metric": metric, "value": repr(float(value)), "unit": ""} | where
        for metric, value in measured.items()
    ]


def write_records(work: Path, evaluation: Evaluation, rows: Rows, arrays: Mapping[str, NDArray[Any]]) -> None:
    path = work / "evaluations" / f"{evaluation.id}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    np.savez(path.with_suffix(".npz"), **arrays)  # type: ignore[arg-type]


def solve_all(fabric: Fabric, work: Path, wanted: Callable[[str], Iterable[PublishedInstance]], per: float) -> None:
    """Write the records of benchmarks anew: all of these instances, with gaps that grow with the nodes."""
    for evaluation in fabric.evaluations:
        for measurement in evaluation.of_kind(BenchmarkEvaluation):
            path = work / "evaluations" / f"{evaluation.id}.csv"
            first = pd.read_csv(path)
            sample, rows = first[first.test == first.test.iloc[0]], []
            for k in wanted(measurement.benchmark):
                one = sample.assign(test=f"{measurement.benchmark}_{k.name}", n=k.nodes)
                rows.append(one.assign(value=one.value.where(one.metric != "gap_pct", k.nodes / per)))
            pd.concat(rows).to_csv(path, index=False)


def keep_records(work: Path, which: str, keep: Callable[[pd.DataFrame], Any]) -> Path:
    """Leaves of the evaluations of this pattern the records alone for which `keep` holds."""
    for path in work.glob(f"evaluations/{which}.csv"):
        frame = pd.read_csv(path)
        frame[keep(frame)].to_csv(path, index=False)
    return work


def drop_rows(path: Path) -> None:
    """Leaves the head of a file of records alone."""
    path.write_text(path.read_text().split("\n", 1)[0] + "\n")
    path.with_suffix(".json").unlink(missing_ok=True)


def nothing_measured(work: Path, to: Path) -> Path:
    """A copy of the folder in which nothing was measured and no solver ran."""
    copy = shutil.copytree(work, to)
    for path in copy.glob("evaluations/**/*.csv"):
        drop_rows(path)
        np.savez(path.with_suffix(".npz"))
    for path in copy.glob("labels/**/*.json"):
        path.write_text(json.dumps({"labels": []}))
    return copy


def edit_arrays(path: Path, how: Callable[[dict[str, np.ndarray]], Any]) -> None:
    prefix, arrays = _arrays(path)
    how(arrays)
    np.savez(path, **{f"{prefix}{key}": each for key, each in arrays.items()})  # type: ignore[arg-type]
    path.with_suffix(".json").unlink(missing_ok=True)  # which states what they were


def with_arrays(work: Path, folder: Path, evaluation: str, how: Callable[[dict[str, np.ndarray]], Any]) -> Path:
    """A copy of the folder with other arrays of an evaluation."""
    shutil.copytree(work, folder, dirs_exist_ok=True)
    edit_arrays(folder / "evaluations" / f"{evaluation}.npz", how)
    return folder


def stored(work: Path, evaluation: str) -> dict[str, np.ndarray]:
    """The arrays of an evaluation."""
    return _arrays(work / "evaluations" / f"{evaluation}.npz")[1]


def _arrays(path: Path) -> tuple[str, dict[str, np.ndarray]]:
    """What is before the keys of an evaluation of one measurement, and its arrays."""
    with np.load(path) as file:
        prefix = f"{path.stem}/" if all(key.startswith(f"{path.stem}/") for key in file) else ""
        return prefix, {key.removeprefix(prefix): each for key, each in file.items()}


def modules(run: Run, layers: str) -> NDArray[Any]:
    """What evaluations keep of the shapes of the run's network, whose layers have this name."""
    from neuroute.networks.weights import build  # load torch

    return describe_modules(build(run.network), layers)


def measure(measurement: Measurement, run: Run, net: Any, work: Path) -> None:
    """Evaluate a network that was never trained."""
    from untrained import alone, evaluated  # load torch

    evaluation = alone(measurement)
    out = work / "evaluations" / f"{evaluation.id}.csv"
    out.parent.mkdir(parents=True, exist_ok=True)
    evaluated(work, evaluation, run, net, out, label_dirs=[work / "labels"])


# -- logs and manifests -----------------------------------------------------------------------------------------------


def write_log(fabric: Fabric, work: Path, run: Run) -> None:
    """A log and a summary as training leaves them, with the gaps on all validation sets."""
    folder = work / "runs" / run.id
    folder.mkdir(parents=True, exist_ok=True)
    t = run.training
    total, lines = t.samples * getattr(t, "epochs", 1), []
    depth = role(run)[0]
    for i in range(t.validations + 1):
        samples, batch = total * i // t.validations, max(1, t.batches * i // t.validations)
        line = {"batch": batch, "updates": 9 * batch, "samples": max(32, samples), "seconds": 0.1 + i}
        lines.append(line | {"kind": "train", "loss": 0.2 + 1.2 / batch**0.3 / depth**0.2, "lr": 1e-3})
        if i:
            sets = [run.validation.dataset, *(also.dataset for also in run.also_validation)]
            power = -(0.4 + depth / 120)
            values = {d.id: fabric.gap(run, d, Decoding()) * (samples / total) ** power for d in sets}
            line = {"kind": "validation", "batch": batch, "samples": samples, "seconds": i}
            lines.append(line | {"gap_pct": values[run.validation.dataset.id], "gaps_pct": values})
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    summary = {"run": run.id, "device": "cpu", "device_name": "Test CPU", "threads": 1, "torch": "2.11"}
    summary |= {"batches": 313, "parameters": parameters(run), "wall_time_s": 12.5, "updates": 2900, "samples": total}
    summary["processor_time_s"] = t.batches / 50
    (folder / "run.json").write_text(json.dumps(summary | {"train_flops": 2.5e12, "world_size": 1, "spec": {}}))


def manifest_entry(labels: Labels, mean_length: float) -> dict[str, object]:
    """What a label job writes down of a set of labels."""
    return {
        "labels": labels.id,
        "solver": labels.solver,
        "version": f"{labels.solver} 1.0",
        "optimal": labels.solver == "concorde",
        "seconds": 0.0125 * labels.dataset.count,
        "cores": 2,
        "seed": 0,
        "count": labels.dataset.count,
        "mean_length": mean_length,
    }


def write_manifest(work: Path, entry: dict[str, object]) -> None:
    path = work / "labels" / f"{entry['labels']}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(entry))
