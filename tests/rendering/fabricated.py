"""A fabricated work folder: power-law gaps with noise, in the file formats that evaluation and training write."""

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from neuroute.accounting.counts import DecoderOnly
from neuroute.accounting.flops import solution, solution_paper
from neuroute.datasets.benchmarks import Known, studied
from neuroute.evaluation.records import COLUMNS
from neuroute.papers.scaling.evaluations import ProbeEvaluation
from neuroute.papers.scaling.paper import PAPER
from neuroute.papers.scaling.scale import ScalingScale
from neuroute.plan.config import Config, Scale, load_scale, parse_config
from neuroute.plan.objects import (
    Artifact,
    BenchmarkEvaluation,
    Dataset,
    Decoding,
    Evaluation,
    LabelBundle,
    Labels,
    Run,
    RunEvaluation,
    Test,
)
from neuroute.rendering.study import Study


def _with_seeds(scale: Scale) -> Scale:
    """Smoke, with more than one training of three runs, as the larger scales have."""
    several = {"base_6x128": 3, "base_42x128": 2, "nogate_42x128": 2}
    return scale.model_copy(
        update={"blocks": scale.blocks | {"scaling": scale[ScalingScale].model_copy(update={"seeds": several})}}
    )


SCALE = _with_seeds(load_scale("smoke"))
CONFIG: Config = parse_config({})
RUNS: list[Run] = PAPER.runs(CONFIG, SCALE)
ARTIFACTS: dict[str, Artifact] = {a.name: a for a in PAPER.artifacts(SCALE)}
GapLaw = Callable[[Run, int, int], float]  # (run, nodes, beam) -> gap in %


def role(run: Run) -> tuple[int, int]:
    """The paper's (depth, width); of BQ and SIGD, which have none there, those of their network."""
    a = run.network.arguments
    return run.role.get("depth", a["depth"]), run.role.get("width", a["width"])


def realistic(run: Run, nodes: int, beam: int) -> float:
    """About the paper's Eq. 5, with its beams and sizes: small, positive, smooth; seeds differ by some percent."""
    depth, width = role(run)
    law = 30 * depth**-0.9 * width**-0.6 * beam ** -(0.9 + depth / 60) * (nodes / 20) ** 0.7 + 1e-4
    return law * (1 + 0.05 * run.seed)


def noisy(run: Run, nodes: int, beam: int) -> float:
    """What a barely trained model may give: gaps around zero, many of them negative or exactly zero."""
    depth, width = role(run)
    values = (-0.4, 0.0, 0.0, 0.3, -0.1, 1.5, 0.0)
    return values[(depth + width // 64 + beam) % len(values)]


def hopeless(run: Run, nodes: int, beam: int) -> float:
    return 0.0


def parameters(run: Run) -> int:
    """About right for every kind of network: these tests only look at what becomes of the number."""
    a = run.network.arguments
    if "feed_forward" in a:
        return int(a["depth"] * a["width"] * (4 * a["width"] + 2 * a["feed_forward"]))
    return DecoderOnly(**a).parameters


def tests_of(evaluation: Evaluation) -> Iterator[tuple[Test, Decoding]]:
    """Each test with the ways of decoding that become records: a milestone of random re-construct is one."""
    for test in evaluation.tests:
        for k in test.decoding.milestones or (test.decoding.iterations,):
            yield test, test.decoding.model_copy(update={"iterations": k, "milestones": ()})


def about(dataset: Dataset, reference: str = "") -> dict[str, object]:
    """The columns of a record that say what it was measured on, and against whose solutions."""
    where = {"distribution": dataset.distribution, "n": dataset.n, "n_instances": dataset.count}
    return {"test": dataset.id, "reference": reference, **where}


def about_known(benchmark: str, known: Known) -> dict[str, object]:
    where = {"distribution": benchmark, "n": known.nodes, "n_instances": 1}
    return {"test": f"{benchmark}_{known.name}", "reference": "published", **where}


def gaps(lengths: np.ndarray, references: np.ndarray) -> dict[str, float]:
    return {
        "gap_pct": 100 * (lengths.mean() / references.mean() - 1),
        "gap_mean_of_ratios_pct": 100 * (lengths / references - 1).mean(),
        "length": lengths.mean(),
    }


def write_evaluation(work: Path, evaluation: Evaluation, run: Run, gap: GapLaw) -> None:
    depth, width, heads = (run.network.arguments[k] for k in ("depth", "width", "heads"))
    rows, arrays = [], {}
    for test, decoding in tests_of(evaluation):
        dataset = test.labels.dataset
        n, count = dataset.n, dataset.count
        references = np.random.default_rng(n).normal(0.7124 * n**0.5, 0.2, count)
        expected = gap(run, n, decoding.beam) * (1 + decoding.iterations) ** -0.8 * (1 if decoding.log_n else 1.3)
        seed = [depth, width, n, decoding.beam, decoding.iterations, run.seed]
        spread = np.random.default_rng(seed).normal(0, 0.002, count)
        lengths = references * (1 + expected / 100 + spread - spread.mean())
        if expected == 0:
            lengths = references.copy()
        arrays[f"{dataset.id}|reference"] = references
        arrays[f"{dataset.id}|{decoding.id}"] = lengths
        decision = DecoderOnly(depth, width, heads).decision
        paper = decoding.beam * solution_paper(decision, n) / 1e9
        measured = gaps(lengths, references) | {
            "time_s": paper * count * decoding.beam**-0.1 / 20 + 0.02,
            "peak_memory_mb": 300.0,
            "parameters": parameters(run),
        }
        if decoding.method != "rrc":
            measured["gflops_paper"] = paper
            measured["gflops_shrinking"] = solution(decision, n, decoding.beam) / 1e9
        rows += records(evaluation.group, run, about(dataset, test.labels.solver), decoding, measured)
    write_records(work, evaluation, rows, arrays)


def write_benchmark(work: Path, evaluation: BenchmarkEvaluation, run: Run, gap: GapLaw) -> None:
    rows, lengths = [], []
    (decoding,) = evaluation.decodings
    names, optima = zip(*((k.name, k.optimum) for k in studied(evaluation.max_nodes)), strict=True)
    for k in studied(evaluation.max_nodes):
        expected = gap(run, k.nodes, 1)
        lengths.append(k.optimum * (1 + expected / 100))
        measured = {
            "gap_pct": expected,
            "gap_rounded_pct": expected - 0.05,
            "length": lengths[-1],
            "time_s": k.nodes / 1e3,
            "peak_memory_mb": 300.0,
        }
        rows += records(evaluation.group, run, about_known(evaluation.benchmark, k), decoding, measured)
    arrays = {"names": np.array(names), "optima": np.array(optima), decoding.id: np.array(lengths)}
    write_records(work, evaluation, rows, arrays)


def write_probe(work: Path, evaluation: ProbeEvaluation, run: Run) -> None:
    from fabricated_probes import write_probe as write  # here, as it is made of what stands in this file

    write(work, evaluation, run)


def records(
    group: str, run: Run, about: dict[str, object], decoding: Decoding, measured: Mapping[str, float]
) -> list[dict[str, object]]:
    """One record per measured value, with the columns that say how and where."""
    how = {
        "decoding": decoding.id,
        "method": decoding.method,
        "beam": decoding.beam,
        "log_n": decoding.log_n,
        "batch_size": decoding.batch_size or "",
    }
    where = {"device": "Test CPU", "threads": 1, "torch": "2.11", "scale": SCALE.name, "code": "abc", "wall_time_s": 1}
    which = {"paper": run.paper, "run": run.id, "group": group, "seed": run.seed}
    return [
        which | about | how | {"metric": metric, "value": repr(float(value)), "unit": ""} | where
        for metric, value in measured.items()
    ]


def write_records(
    work: Path, evaluation: RunEvaluation, rows: list[dict[str, object]], arrays: Mapping[str, np.ndarray]
) -> None:
    path = work / "evaluations" / f"{evaluation.id}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    np.savez(path.with_suffix(".npz"), **arrays)


def drop_rows(path: Path) -> None:
    """Leaves the head of a file of records alone."""
    path.write_text(path.read_text().split("\n", 1)[0] + "\n")


def drop_measured(path: Path) -> None:
    """Leaves neither records nor arrays of an evaluation."""
    drop_rows(path)
    np.savez(path.with_suffix(".npz"))


def edit_arrays(path: Path, how: Callable[[dict[str, np.ndarray]], Any]) -> None:
    with np.load(path) as file:
        arrays = dict(file)
    how(arrays)
    np.savez(path, **arrays)  # type: ignore[arg-type]


def write_run(work: Path, run: Run, gap: GapLaw) -> None:
    folder = work / "runs" / run.id
    folder.mkdir(parents=True, exist_ok=True)
    training = run.training
    total = training.samples * training.epochs
    lines = []
    for i in range(training.validations + 1):
        samples = total * i // training.validations
        batch = max(1, training.batches * i // training.validations)
        loss = 0.2 + 1.2 / batch**0.3 / run.network.arguments["depth"] ** 0.2
        train = {"kind": "train", "batch": batch, "updates": 9 * batch, "samples": max(32, samples)}
        lines.append(train | {"loss": loss, "lr": 1e-3, "seconds": 0.1 + i})
        if i:
            value = gap(run, run.n, 1) * (samples / total) ** -(0.4 + role(run)[0] / 120)
            lines.append({"kind": "validation", "batch": batch, "samples": samples, "gap_pct": value, "seconds": i})
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    summary = {"run": run.id, "device": "cpu", "device_name": "Test CPU", "threads": 1, "torch": "2.11", "batches": 313}
    summary |= {"parameters": parameters(run), "wall_time_s": 12.5, "updates": 2900, "samples": total}
    (folder / "run.json").write_text(json.dumps(summary | {"train_flops": 2.5e12, "world_size": 1, "spec": {}}))


VERSIONS = {"concorde": "Concorde (kit 0.5.7)", "lkh": "elkai 2.0.1"}


def write_labels(work: Path, bundle: LabelBundle) -> None:
    """Manifests as label jobs write them; the first test set's Concorde tours came from a cache without times."""
    entries = []
    for labels in bundle.labels:
        lkh = labels.solver == "lkh"
        told = {"version": VERSIONS[labels.solver], "optimal": not lkh}
        if bundle.name == "in_domain" and not lkh:
            told["seconds"] = None
        entries.append(manifest_entry(labels, 3.9004 if lkh else 3.9) | told)
    write_manifest(work, bundle, entries)


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


def write_manifest(work: Path, bundle: LabelBundle, entries: list[dict[str, object]]) -> None:
    path = work / "labels" / f"{bundle.id}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"bundle": bundle.id, "labels": entries}))


def fabricate(work: Path, gap: GapLaw) -> Path:
    by_id = {run.id: run for run in RUNS}
    for evaluation in PAPER.evaluations(SCALE):
        run = by_id[evaluation.run]
        if isinstance(evaluation, Evaluation):
            write_evaluation(work, evaluation, run, gap)
        elif isinstance(evaluation, BenchmarkEvaluation):
            write_benchmark(work, evaluation, run, gap)
        else:
            write_probe(work, evaluation, run)
    for run in RUNS:
        write_run(work, run, gap)
    for bundle in PAPER.label_jobs(SCALE, RUNS):
        if bundle.name == "cvrp":  # no artifact reads it
            continue
        write_labels(work, bundle)
    return work


def study_of(name: str, work: Path) -> Study:
    return Study.load(ARTIFACTS[name], CONFIG, SCALE, RUNS, work)
