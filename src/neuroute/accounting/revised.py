"""FLOPs of revisions of blocks."""

from neuroute.accounting.counts import Counts
from neuroute.plan.decodings import Revision

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
