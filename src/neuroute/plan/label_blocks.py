"""Training sets in blocks, so that no label job makes more than a million labels."""

from neuroute.plan.specs import Dataset, Labels

BLOCK = 1_000_000  # labels that one job makes at most


def training_blocks(n: int, samples: int, solver: str) -> tuple[Labels, ...]:
    """The first instances of the uniform TSP's training stream, in blocks."""
    return tuple(
        Labels(dataset=Dataset(split="train", n=n, first=first, count=min(BLOCK, samples - first)), solver=solver)
        for first in range(0, samples, BLOCK)
    )


def with_count(labels: Labels, count: int) -> Labels:
    """The first `count` instances of the same stream."""
    return labels.model_copy(update={"dataset": labels.dataset.model_copy(update={"count": count})})
