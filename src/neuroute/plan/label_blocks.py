"""Labelled training sets, cut into blocks that one label job each makes; papers with the same ones share them.

And what is left of labels of which some are the first instances of others.
"""

from neuroute.plan.objects import Dataset, LabelBundle, Labels, Run

BLOCK = 1_000_000  # labels that one job makes at most


def training_blocks(n: int, samples: int, solver: str) -> tuple[Labels, ...]:
    """The first instances of the uniform TSP's training stream, in blocks."""
    return tuple(
        Labels(dataset=Dataset(split="train", n=n, first=first, count=min(BLOCK, samples - first)), solver=solver)
        for first in range(0, samples, BLOCK)
    )


def training_bundles(paper: str, runs: list[Run]) -> list[LabelBundle]:
    """A bundle for each block of the largest training set of each size; the smaller ones are its first instances."""
    largest: dict[int, tuple[Labels, ...]] = {}
    for run in runs:
        if run.training.samples > sum(b.dataset.count for b in largest.get(run.n, ())):
            largest[run.n] = run.data
    return [
        LabelBundle(paper=paper, name=f"train{n}-{i:03d}", labels=(block,))
        for n, blocks in largest.items()
        for i, block in enumerate(blocks)
    ]


def longest(labels: list[Labels]) -> list[Labels]:
    """Without what are the first instances of others."""
    most: dict[Labels, int] = {}
    for each in labels:
        key = _with_count(each, 0)
        most[key] = max(most.get(key, 0), each.dataset.count)
    return [_with_count(key, count) for key, count in most.items()]


def _with_count(labels: Labels, count: int) -> Labels:
    return labels.model_copy(update={"dataset": labels.dataset.model_copy(update={"count": count})})
