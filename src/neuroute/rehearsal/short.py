"""What a rehearsal takes of a training or of an evaluation: a few true batches, or one; and the time of the whole."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pydantic import BaseModel

from neuroute.datasets.benchmarks import study_instances
from neuroute.problems.public_instances import PACKAGED, packaged_files
from neuroute.specs.data import Spec
from neuroute.specs.objects import (
    BenchmarkEvaluation,
    Dataset,
    Decoding,
    Labels,
    OwnTraining,
    Reconstruction,
    Reinforced,
    RescalingEvaluation,
    Run,
    RunEvaluation,
    SelfImprovement,
    StageEvaluation,
    Supervised,
    Test,
    Training,
)

BATCHES = 6  # of a training: the first half loads and compiles
MADE_AT_ONCE = 256  # instances, by a training that makes its own labels
MADE_UP = "nearest"  # in whose name labels are made up: a solver without proofs
NODES = {"cpu": 8192, "cuda": 1 << 20}  # of one batch of a decoding (decoding/memory.py)
ROWS = 4096
ITERATIONS = (1, 3)  # of a search that has more: what one takes follows from the difference
FACTORS = 3  # of a sweep, which needs so many


def short_run(run: Run, kind: str, batches: int = BATCHES) -> Run:
    """The run with few batches of their true size and one validation of one batch, on labels that are made up."""
    training = short_training(run.training, batches)
    count = getattr(training, "samples", 0)
    return run.model_copy(
        update={
            "training": training,
            "data": tuple(_made_up(labels, kind, count) for labels in run.data[:1]),
            "validation": _made_up(run.validation, kind),
            "also_validation": tuple(_made_up(labels, kind) for labels in run.also_validation),
            "seed": 0,
        }
    )


def short_training(training: Training, batches: int) -> Training:
    """About so many batches of a training; what comes once in a round or a stage comes as often for each batch."""
    if isinstance(training, OwnTraining | Reinforced):
        return training.shortened(batches)
    if isinstance(training, Supervised):
        samples = min(training.samples, batches * training.batch_size)
        epochs = min(training.epochs, -(-batches * training.batch_size // samples))
        return training.model_copy(update={"samples": samples, "epochs": epochs, "validations": 1})
    half = batches // 2 * training.batch_size
    if isinstance(training, SelfImprovement):
        instances = min(training.instances, MADE_AT_ONCE)
        passes = -(-half // instances)
        return training.model_copy(update={"epochs": 2, "instances": instances, "passes": passes, "validations": 2})
    assert isinstance(training, Reconstruction)
    short: dict[str, Any] = {"rounds": 2, "validations": 2, "epochs_per_round": 1, "warm_up": False}
    short |= {"initial": "labels", "reconstructions": min(training.reconstructions, 1)}
    return training.model_copy(update=short | {"samples": min(training.samples, max(half, MADE_AT_ONCE))})


@dataclass(frozen=True)
class TrainingPace:
    """Of trainings that are equal but for how many batches they have."""

    of: str  # the run that was rehearsed
    batches_s: tuple[float, ...]  # a batch of each stage
    validation_s: float
    validated: int  # instances of that validation
    rest_s: float  # what comes once: data, files
    memory_mb: float
    made_s: float = 0.0  # to make labels of an instance, for each iteration of a search (`labels_made`)

    def seconds(self, run: Run, gpus: int) -> float:
        """Of the whole; several GPUs share batches, and what they tell each other is free."""
        t = run.training
        ends: list[int] = getattr(t, "ends", [t.batches])
        stages = (end - before for before, end in pairwise([0, *ends]))
        updates = sum(count * each for count, each in zip(stages, self.batches_s, strict=True))
        work = (updates + labels_made(t) * self.made_s) / max(1, gpus)
        instances = sum(labels.dataset.count for labels in (run.validation, *run.also_validation))
        return self.rest_s + work + (t.validations + 1) * self.validation_s * instances / self.validated


def labels_made(training: Training) -> float:
    """Instances that a training makes labels of, over all of it, for each iteration of a search; 0 for others."""
    if isinstance(training, SelfImprovement):
        return training.epochs * training.instances
    if isinstance(training, Reconstruction):
        return (training.rounds - training.warm_up) * training.samples * training.reconstructions
    return 0


def training_key(run: Run, kind: str) -> str:
    """Equal for trainings that take as long, but for how many batches they have."""
    short = short_run(run, kind)
    return _key(run.network, short.n, short.training, short.validation.dataset)


@dataclass(frozen=True)
class Piece:
    """A part of an evaluation that one batch shows."""

    whole: RunEvaluation
    part: RunEvaluation  # the batch
    times: float  # how often the batch comes, instances and repeats
    iterations: int = 0  # of a search, in the whole

    def key(self, run: Run) -> str:
        described = self.part.model_dump(mode="json", exclude={"run", "group"})
        return _key(run.network, run.training.precision, run.validation.dataset.problem, described)


@dataclass(frozen=True)
class PiecePace:
    """Of one batch of a test: what is built first and each iteration of a search, and what comes once beside them."""

    of: str  # the evaluation that it was rehearsed in
    rest_s: float
    first_s: float
    memory_mb: float
    each_s: float = 0.0

    def seconds(self, piece: Piece) -> float:
        """Of all batches."""
        return self.rest_s + piece.times * (self.first_s + max(0, piece.iterations - ITERATIONS[0]) * self.each_s)


def pieces(evaluation: RunEvaluation, kind: str) -> Iterator[Piece]:
    """Each test, sweep or decoding of an evaluation on one batch; what is none of these as it is."""
    for member in evaluation.members():
        if tests := getattr(member, "tests", None):
            stages = getattr(member, "stages", ("",))
            for test in tests:
                short = Test(labels=_made_up(test.labels, kind), decoding=_short_decoding(test.decoding))
                update: dict[str, Any] = {"tests": (short,)}
                update |= {"stages": stages[:1]} if isinstance(member, StageEvaluation) else {}
                share = test.labels.dataset.count / short.labels.dataset.count
                times = len(stages) * share * test.decoding.repeats
                whole = member.model_copy(update={"tests": (test,)})
                yield Piece(whole, member.model_copy(update=update), times, test.decoding.iterations)
        elif isinstance(member, RescalingEvaluation):
            for sweep in member.sweeps:
                dataset = _first(sweep.dataset, kind)
                times = sweep.dataset.count / dataset.count * max(1.0, len(sweep.factors) / FACTORS)
                short_sweep = sweep.model_copy(update={"dataset": dataset, "factors": sweep.factors[:FACTORS]})
                whole = member.model_copy(update={"sweeps": (sweep,)})
                yield Piece(whole, member.model_copy(update={"sweeps": (short_sweep,)}), times)
        elif isinstance(member, BenchmarkEvaluation):
            yield from _of_benchmark(member)
        else:
            yield Piece(member, _with_made_up(member, kind), 1.0)


def _short_decoding(decoding: Decoding) -> Decoding:
    change: dict[str, Any] = {"repeats": 1, "milestones": ()}
    if decoding.iterations > ITERATIONS[-1]:
        change |= {"iterations": ITERATIONS[-1], "milestones": ITERATIONS}
    return decoding.model_copy(update=change)


def _of_benchmark(evaluation: BenchmarkEvaluation) -> Iterator[Piece]:
    """One instance of those that come with the package, of the middle size; time goes with nodes, at least."""
    e = evaluation
    listed = study_instances(e.max_nodes, e.min_nodes, e.benchmark, e.sets, e.names)
    there = sorted((i for i in listed if i.name in packaged_files(e.benchmark)), key=lambda i: i.nodes)
    if not there or not PACKAGED.is_dir():
        return
    middle = there[len(there) // 2]
    times = sum(i.nodes for i in listed) / middle.nodes
    for decoding in e.decodings:
        whole = e.model_copy(update={"decodings": (decoding,)})
        part = e.model_copy(update={"names": (middle.name,), "decodings": (_short_decoding(decoding),)})
        yield Piece(whole, part, times * decoding.repeats, decoding.iterations)


def _first(dataset: Dataset, kind: str, count: int | None = None) -> Dataset:
    """The first instances of the same stream: as many as make a batch, unless it is said how many."""
    most = max(1, min(ROWS, NODES[kind] // dataset.nodes))
    return dataset.model_copy(update={"count": count or min(dataset.count, most), "first": 0, "file": None})


def _made_up(labels: Labels, kind: str, count: int | None = None) -> Labels:
    return Labels(dataset=_first(labels.dataset, kind, count), solver=MADE_UP)


def _with_made_up(value: Any, kind: str) -> Any:
    """The same with made-up labels wherever there are some."""
    if isinstance(value, Labels):
        return _made_up(value, kind)
    if isinstance(value, BaseModel):
        return value.model_copy(update={name: _with_made_up(part, kind) for name, part in value})
    return tuple(_with_made_up(part, kind) for part in value) if isinstance(value, tuple) else value


def _key(*parts: Any) -> str:
    texts = [part.canonical() if isinstance(part, Spec) else json.dumps(part, sort_keys=True) for part in parts]
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
