"""One trial of a rehearsal: what a job calls, called on a short version of it; run in a process of its share.

Trainings are `train`, evaluations `driver.measure`, label jobs `solve_chunk`: the functions that jobs call themselves.
"""

import json
import time
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from neuroute.accounting.flops import lengths_of
from neuroute.core import device as devices
from neuroute.datasets.chunks import Chunk, chunks, solve_chunk
from neuroute.datasets.problem_spec import spec_of
from neuroute.datasets.shard_files import stream_part, write_shard
from neuroute.decoding.memory import in_precision_of_device
from neuroute.evaluation.driver import measure
from neuroute.evaluation.loaded import RunContext, load_run
from neuroute.evaluation.records import write_records
from neuroute.networks.stage_files import pack_stages
from neuroute.networks.weights import build, save_checkpoint
from neuroute.plan.plan import Plan
from neuroute.plan.rates import Kind
from neuroute.problems.longest import longest_sub_path
from neuroute.rehearsal.short import ITERATIONS, Piece, PiecePace, TrainingPace, labels_made, short_run
from neuroute.solvers.nearest import vrp_solutions
from neuroute.specs.objects import Labels, Reconstruction, Run, SelfImprovement, StageEvaluation, Supervised
from neuroute.training.train import LOG, SUMMARY, Settings, train

CODE = "rehearsal"  # in place of digests
LEARNS_PATHS = Supervised | SelfImprovement | Reconstruction
SOLVING_S = 0.5  # after which no further instance is solved


@dataclass(frozen=True)
class Stage:
    """Where a trial happens: the plan, the kind of device, and a folder of its share."""

    plan: Plan
    kind: Kind
    folder: Path

    def make_up(self, labels: Labels) -> None:
        """Write solutions of the first instances: those in order, or of the nearest neighbour, where rules are kept."""
        spec, dataset = spec_of(labels), labels.dataset
        for shard, _, stop in dataset.shards():
            if dataset.problem == "tsp":
                rows = np.tile(np.arange(dataset.n), (stop, 1))
            else:
                rows = vrp_solutions(spec.instances(stream_part(labels, shard, 0, stop)))
            write_shard(self.folder / labels.shard_file(shard), spec.canonical(rows.astype(spec.dtype(dataset.n))), {})

    def checkpoint(self, run: Run, *stages: str) -> Path:
        """Random weights of the run's network, and as those of these stages."""
        net, path = build(run.network), self.folder / "start" / "model.safetensors"
        about = {"run": run.id, "spec": run.model_dump(mode="json"), "network": run.network.model_dump(), "code": CODE}
        save_checkpoint(path, net, about)
        pack_stages(path.with_name("stages.zip"), {f"{stage}.safetensors": path.read_bytes() for stage in stages})
        return path


def try_training(stage: Stage, run: Run, batches: int) -> TrainingPace:
    """Train so many batches, at least two.  Raises whatever the training raises."""
    config = stage.plan.config
    short = in_precision_of_device(short_run(run, stage.kind, batches), config)
    for labels in short.labels:
        stage.make_up(labels)
    start = stage.checkpoint(stage.plan.runs[run.start.partition("@")[0]]) if run.start else None
    threads, per_gpu = stage.plan.scale.train_threads, config.jobs_per_gpu
    settings = Settings(config.device, threads, config.memory_gb, config.compile, per_gpu, config.tf32)
    out, began = stage.folder / "out", time.monotonic()
    train(short, out, stage.folder / "state", [stage.folder], settings, code=CODE, network_code=CODE, start=start)
    took = time.monotonic() - began
    summary = json.loads((out / SUMMARY).read_text())
    lines = [json.loads(line) for line in (out / LOG).read_text().splitlines()]
    by_batch = {line["batch"]: line for line in lines if line["kind"] == "train"}
    validation_s = max(0.0, summary["wall_time_s"] - by_batch[max(by_batch)]["seconds"])
    if isinstance(short.training, LEARNS_PATHS):
        batch_s, made_s = _batch_of_paths(short, by_batch, validation_s)
        batches_s: tuple[float, ...] = (batch_s,)
    else:
        batches_s, made_s = _batches(short, by_batch, validation_s), 0.0
    # On a CPU by its own time: what other work took away meanwhile is not this training's.
    share = min(1.0, summary["processor_time_s"] / summary["wall_time_s"]) if stage.kind == "cpu" else 1.0
    return TrainingPace(
        of=run.id,
        batches_s=tuple(share * each for each in batches_s),
        made_s=share * made_s,
        validation_s=share * validation_s,
        validated=sum(labels.dataset.count for labels in (short.validation, *short.also_validation)),
        rest_s=share * max(0.0, took - summary["wall_time_s"]),
        memory_mb=summary["peak_memory_mb"],
    )


Lines = dict[int, dict[str, Any]]  # of a training's log, by batch


def _batches(short: Run, lines: Lines, validation_s: float) -> tuple[float, ...]:
    """Seconds of a batch in each stage: from its middle to its end, without the validations between."""
    t, before, each_stage = short.training, 0, []
    for end in getattr(t, "ends", [t.batches]):
        middle = before + (end - before) // 2
        validations = sum(middle <= number < end for number in t.validate_after)
        began = lines[middle]["seconds"] if middle else validation_s  # the first one has a validation before it
        took = lines[end]["seconds"] - began - validations * validation_s
        each_stage.append(max(1e-6, took) / (end - middle))
        before = end
    return tuple(each_stage)


def _batch_of_paths(short: Run, lines: Lines, validation_s: float) -> tuple[float, float]:
    """Seconds of a batch that learns sub-paths, and of an instance whose label is made before the second half.

    By the median batch, for each of its updates, times as many as batches have: lengths are drawn.
    """
    t, half = short.training, len(lines) // 2 if labels_made(short.training) else 0
    numbers = [number for number in lines if number > 1 and number != half + 1] or list(lines)

    def took(number: int) -> float:
        return float(lines[number]["seconds"] - lines[number - 1]["seconds"] if number > 1 else lines[1]["seconds"])

    def updates(number: int) -> int:
        return int(lines[number]["updates"] - (lines[number - 1]["updates"] if number > 1 else 0))

    learning = [number for number in numbers if updates(number)]
    each = median(took(number) / updates(number) for number in learning) if learning else took(numbers[0])
    making = took(half + 1) - validation_s - each * updates(half + 1) if half else 0.0
    return each * _mean_updates(short), max(0.0, making) / max(1.0, labels_made(t) / 2)


def _mean_updates(short: Run) -> float:
    """Of a batch: one, or one for each decision of a sub-path, whose length is drawn."""
    t = short.training
    if getattr(t, "step", "") != "sub-path":
        return 1.0
    cvrp = short.validation.dataset.problem != "tsp"
    longest = longest_sub_path(t.longest, short.n) if isinstance(t, Reconstruction) else short.n
    lengths = lengths_of(longest, t.sub_paths if isinstance(t, Supervised) else "random", cvrp=cvrp)
    return sum(max(0, stops - (1 if cvrp else 3)) for stops in lengths) / len(lengths)


def try_piece(stage: Stage, run: Run, piece: Piece) -> PiecePace:
    """Measure one batch with random weights.  Raises whatever the evaluation raises."""
    config, part = stage.plan.config, piece.part
    for labels in part.labels:
        stage.make_up(labels)
    context = RunContext(
        scale=stage.plan.scale.name,
        code=CODE,
        network_code=CODE,
        device=config.device,
        threads=stage.plan.scale.evaluate_threads,
        memory_gb=config.memory_gb,
        jobs_per_gpu=config.jobs_per_gpu,
        tf32=config.tf32,
        label_dirs=[stage.folder],
    )
    stages = part.stages if isinstance(part, StageEvaluation) else ()
    run = in_precision_of_device(run, config)
    checkpoint = stage.checkpoint(run, *stages)
    loaded = load_run(run, checkpoint, replace(context, stages=checkpoint.with_name("stages.zip")))
    loaded = replace(loaded, best_factors=(np.array([run.n]), np.array([1.0])))
    began, spent = time.monotonic(), time.process_time()
    rows, arrays = measure(loaded, part)
    write_records(stage.folder / "records.csv", rows, arrays)
    took = time.monotonic() - began
    by_solver = any(decoding.solvers for decoding in part.decodings_used())  # in a process of its share, maybe
    share = min(1.0, (time.process_time() - spent) / took) if stage.kind == "cpu" and not by_solver else 1.0
    # Of a search after its first iterations and after its last ones.
    walls = [row["wall_time_s"] for row in rows if row["metric"] == "length"]
    first, each = sum(walls) or took, 0.0
    if piece.iterations > ITERATIONS[-1] and len(walls) > 1:
        first, each = walls[0], max(0.0, walls[-1] - walls[0]) / (ITERATIONS[-1] - ITERATIONS[0])
        took -= walls[-1] - walls[0]
    return PiecePace(
        of=part.id,
        rest_s=share * max(0.0, took - first),
        first_s=share * min(took, first),
        each_s=share * each,
        memory_mb=devices.peak_memory_mb(loaded.place),
    )


def try_solver(stage: Stage, labels: Labels) -> tuple[int, float]:
    """(nodes, seconds of an instance): one call, or as many as take half a second.  Raises what the solver raises."""
    total, chunk = 0.0, chunks(0, 0, labels.dataset.count, labels.dataset.n, labels.solver)[0]
    solved = 0
    while solved < chunk.stop and (solved == 0 or total < SOLVING_S):
        total += solve_chunk(labels, Chunk(0, solved, solved + 1), stage.folder)[1]
        solved += 1
    return labels.dataset.n, total / solved
