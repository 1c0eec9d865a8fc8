"""Which label job makes which labels: training sets in blocks, validation and test sets apart from them.

Papers share what they have in common; what is left of labels of which some are the first instances of others.
"""

from collections.abc import Iterable

from neuroute.plan.objects import Dataset, LabelJob, Labels, Run

BLOCK = 1_000_000  # labels that one job makes at most


def training_blocks(n: int, samples: int, solver: str) -> tuple[Labels, ...]:
    """The first instances of the uniform TSP's training stream, in blocks."""
    return tuple(
        Labels(dataset=Dataset(split="train", n=n, first=first, count=min(BLOCK, samples - first)), solver=solver)
        for first in range(0, samples, BLOCK)
    )


def training_label_jobs(paper: str, runs: list[Run]) -> list[LabelJob]:
    """Make a label job for each block of the largest training set of each size: the smaller sets begin it."""
    largest: dict[int, tuple[Labels, ...]] = {}
    for run in runs:
        if run.data and run.training.samples > sum(b.dataset.count for b in largest.get(run.n, ())):
            largest[run.n] = run.data
    return [
        LabelJob(paper=paper, name=f"train{n}-{i:03d}", labels=(block,))
        for n, blocks in largest.items()
        for i, block in enumerate(blocks)
    ]


def separate(label_jobs: Iterable[LabelJob], in_one: bool) -> list[LabelJob]:
    """Return label jobs of one split each, so that a training waits for no test set.

    Each data set has a job of its own, unless `together`: where starting a job costs more than a small set does.  A
    job that holds nothing else keeps its name, and so does what is left of it for the test sets.
    """
    return [part for job in label_jobs for part in _parts(job, in_one)]


def _parts(job: LabelJob, in_one: bool) -> list[LabelJob]:
    splits = {labels.dataset.split for labels in job.labels}
    by_name: dict[str, list[Labels]] = {}
    for labels in job.labels:
        d, name = labels.dataset, job.name
        if len(job.labels) > 1 and not in_one:
            name = f"{job.name}-{d.stem}_{labels.solver}"
        elif len(splits) > 1 and d.split != "test":
            name = f"{job.name}-{d.split}"
        by_name.setdefault(name, []).append(labels)
    return [job.model_copy(update={"name": name, "labels": tuple(each)}) for name, each in by_name.items()]


def longest(labels: list[Labels]) -> list[Labels]:
    """Without what are the first instances of others."""
    most: dict[Labels, int] = {}
    for each in labels:
        key = with_count(each, 0)
        most[key] = max(most.get(key, 0), each.dataset.count)
    return [with_count(key, count) for key, count in most.items()]


def read_by(runs: Iterable[Run]) -> list[Labels]:
    """What trainings and their validations read."""
    return [labels for run in runs for labels in (*run.data, run.validation, *run.also_validation)]


def with_count(labels: Labels, count: int) -> Labels:
    return labels.model_copy(update={"dataset": labels.dataset.model_copy(update={"count": count})})


Stream = tuple[str, int, str]  # of instances, where they begin, and whose solutions
LabelIndex = dict[Stream, list[tuple[int, str]]]  # -> how many there are, in which label job


def stream_of(labels: Labels) -> Stream:
    return labels.dataset.stem, labels.dataset.first, labels.solver


def index_labels(label_jobs: Iterable[LabelJob]) -> LabelIndex:
    index: LabelIndex = {}
    for job in label_jobs:
        for labels in job.labels:
            index.setdefault(stream_of(labels), []).append((labels.dataset.count, job.id))
    return index


def find_label_job(index: LabelIndex, labels: Labels) -> str | None:
    """Return the first label job with these labels, or with more of which they are the first instances."""
    jobs = index.get(stream_of(labels), [])
    return next((job for count, job in jobs if count >= labels.dataset.count), None)


def drop_repeated(label_jobs: Iterable[LabelJob]) -> list[LabelJob]:
    """Return each label job without what an earlier one holds: papers share training and test sets."""
    most: dict[Stream, int] = {}
    out = []
    for job in label_jobs:
        new = []
        for labels in job.labels:
            if labels.dataset.count > most.get(stream_of(labels), 0):
                new.append(labels)
        for labels in new:
            most[stream_of(labels)] = max(most.get(stream_of(labels), 0), labels.dataset.count)
        if new:
            out.append(job.model_copy(update={"labels": tuple(new)}))
    return out
