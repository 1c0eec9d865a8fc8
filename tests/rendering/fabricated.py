"""A fabricated work folder: power-law gaps with noise, in the file formats that evaluation and training write."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from neuroute.analysis import flops
from neuroute.papers.scaling import declare
from neuroute.plan.config import Config, load_scale, parse_config
from neuroute.plan.objects import Artifact, Evaluation, Run
from neuroute.rendering.study import RECORD_COLUMNS, Study

SCALE = load_scale("smoke")
CONFIG: Config = parse_config({})
RUNS: list[Run] = declare.runs(CONFIG, SCALE)
ARTIFACTS: dict[str, Artifact] = {a.name: a for a in declare.artifacts()}
GapLaw = Callable[[Run, int, int], float]  # (run, nodes, beam) -> gap in %


def realistic(run: Run, nodes: int, beam: int) -> float:
    """About the paper's Eq. 5, with its beams and sizes: small, positive, smooth."""
    depth, width = run.role["depth"], run.role["width"]
    return 30 * depth**-0.9 * width**-0.6 * beam ** -(0.9 + depth / 60) * (nodes / 20) ** 0.7 + 1e-4


def noisy(run: Run, nodes: int, beam: int) -> float:
    """What a barely trained model may give: gaps around zero, many of them negative or exactly zero."""
    values = (-0.4, 0.0, 0.0, 0.3, -0.1, 1.5, 0.0)
    return values[(run.role["depth"] + run.role["width"] // 64 + beam) % len(values)]


def hopeless(run: Run, nodes: int, beam: int) -> float:
    return 0.0


def write_evaluation(work: Path, evaluation: Evaluation, run: Run, gap: GapLaw) -> None:
    depth, width, heads = (run.network.arguments[k] for k in ("depth", "width", "heads"))
    rows, arrays = [], {}
    for test in evaluation.tests:
        dataset, decoding = test.labels.dataset, test.decoding
        n, count = dataset.n, dataset.count
        references = np.random.default_rng(n).normal(0.7124 * n**0.5, 0.2, count)
        seed = [depth, width, n, decoding.beam]
        spread = np.random.default_rng(seed).normal(0, 0.002, count)
        lengths = references * (1 + gap(run, n, decoding.beam) / 100 + spread - spread.mean())
        if gap(run, n, decoding.beam) == 0:
            lengths = references.copy()
        arrays[f"{dataset.id}|reference"] = references
        arrays[f"{dataset.id}|{decoding.id}"] = lengths
        paper = flops.beam_flops_paper(depth, width, heads, n, decoding.beam) / 1e9
        measured = {
            "gap_pct": (100 * (lengths.mean() / references.mean() - 1), "%"),
            "gap_mean_of_ratios_pct": (100 * (lengths / references - 1).mean(), "%"),
            "length": (lengths.mean(), ""),
            "time_s": (paper * count * decoding.beam**-0.1 / 20 + 0.02, "s"),
            "peak_memory_mb": (300.0, "MB"),
            "gflops_paper": (paper, "GFLOPs"),
            "gflops_shrinking": (flops.beam_flops(depth, width, heads, n, decoding.beam) / 1e9, "GFLOPs"),
            "parameters": (flops.parameters(depth, width), ""),
        }
        for metric, (value, unit) in measured.items():
            rows.append(
                {
                    "paper": run.paper,
                    "run": run.id,
                    "group": evaluation.group,
                    "seed": run.seed,
                    "test": dataset.id,
                    "distribution": dataset.distribution,
                    "n": n,
                    "n_instances": count,
                    "reference": test.labels.solver,
                    "decoding": decoding.id,
                    "method": decoding.method,
                    "beam": decoding.beam,
                    "log_n": decoding.log_n,
                    "batch_size": decoding.batch_size or "",
                    "metric": metric,
                    "value": repr(float(value)),
                    "unit": unit,
                    "device": "Test CPU",
                    "threads": 1,
                    "torch": "2.11",
                    "scale": SCALE.name,
                    "code": "abc",
                    "wall_time_s": 1.0,
                }
            )
    path = work / "evaluations" / f"{evaluation.id}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, RECORD_COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    np.savez(path.with_suffix(".npz"), **arrays)


def write_run(work: Path, run: Run, gap: GapLaw) -> None:
    folder = work / "runs" / run.id
    folder.mkdir(parents=True, exist_ok=True)
    total = run.training.samples
    lines = [{"kind": "train", "batch": 1, "updates": 9, "samples": 32, "loss": 1.2, "lr": 1e-3, "seconds": 0.1}]
    for i in range(1, run.training.validations + 1):
        samples = total * i // run.training.validations
        value = gap(run, run.n, 1) * (samples / total) ** -(0.4 + run.role["depth"] / 120)
        lines.append({"kind": "validation", "batch": i, "samples": samples, "gap_pct": value, "seconds": i})
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    summary = {"run": run.id, "device": "cpu", "device_name": "Test CPU", "threads": 1, "torch": "2.11", "batches": 313}
    summary |= {"parameters": 1, "wall_time_s": 12.5, "updates": 2900, "samples": total, "train_flops": 2.5e12}
    (folder / "run.json").write_text(json.dumps(summary | {"world_size": 1, "spec": {}}))


def write_labels(work: Path) -> None:
    first = declare.reference(SCALE, 100)
    entries = [
        {"labels": first.id, "solver": first.solver, "version": "03.12.19", "optimal": True, "seconds": None},
        {"labels": f"{first.dataset.id}_lkh", "solver": "lkh", "version": "3.0.13", "optimal": False, "seconds": 6.4},
    ]
    for entry, length in zip(entries, (3.9000, 3.9004), strict=True):
        entry |= {"cores": 2, "seed": 0, "count": 512, "mean_length": length}
    path = work / "labels" / "scaling" / "in_domain.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"bundle": "scaling/in_domain", "labels": entries}))


def fabricate(work: Path, gap: GapLaw) -> Path:
    by_id = {run.id: run for run in RUNS}
    for evaluation in declare.evaluations(SCALE):
        write_evaluation(work, evaluation, by_id[evaluation.run], gap)
    for run in RUNS:
        write_run(work, run, gap)
    write_labels(work)
    return work


def study_of(name: str, work: Path) -> Study:
    return Study.load(ARTIFACTS[name], CONFIG, SCALE, RUNS, work)
