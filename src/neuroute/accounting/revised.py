"""FLOPs of GLOP: of revisions, and of the training of revisers and partitions."""

from neuroute.accounting.counts import Counts
from neuroute.plan.decodings import Revision
from neuroute.plan.objects import Run
from neuroute.plan.rivals.glop import Partitioning, Phase, Revising

TOURS = 10  # that a revision starts from, where it is not stated


def path(c: Counts, nodes: int) -> int:
    """Count a path: its encoder, and one construction from either end."""
    return c.encoder(nodes) + 2 * sum(c.decision(tokens) for tokens in range(4, nodes + 1))


def revision(c: Counts, n: int, how: Revision | str, blocks: tuple[int, ...] = ()) -> int:
    """Count a tour of n nodes that is revised; unless it is said how, by these blocks, at a quarter of their places."""
    if not isinstance(how, Revision):
        how = Revision(blocks=tuple((nodes, max(1, nodes // 4)) for nodes in blocks), width=TOURS)
    total = 0
    for number, (nodes, iterations) in enumerate(how.blocks):
        tours = how.width * (4 if how.flips == "tours" else 1) if number == 0 or not how.prune else 1
        flips = 4 if how.flips == "blocks" else 1
        total += tours * iterations * (n // nodes) * flips * path(c, nodes)
    return total


def per_sample(c: Counts, run: Run) -> float:
    """Count one training instance, forward and backward, on average over a run."""
    t = run.training
    if isinstance(t, Revising):
        # Sampled and learnt, three times as much, and rolled out by the baseline.
        return sum(p.epochs * p.samples * 4 * path(c, p.block) for p in t.phases) / (t.samples * t.epochs)
    assert isinstance(t, Partitioning)
    return 3 * c.encoder(run.n + 1)


def calls(run: Run) -> tuple[float, float]:
    """Layers that updates call, and that are called besides."""
    t, depth = run.training, run.network.arguments.get("depth", 6)
    if isinstance(t, Revising):
        steps = sum(_steps(phase) for phase in t.phases)
        return t.batches * depth, 2 * (t.batches * depth + steps)
    assert isinstance(t, Partitioning)
    return t.samples * t.epochs * depth, t.samples * t.epochs * 2 * run.n


def _steps(phase: Phase) -> float:
    return phase.batches * (phase.block - 3)
