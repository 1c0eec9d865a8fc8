"""Floating-point operations of solutions and of training, as sums over decisions; of one decision see `counts`."""

from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Literal

from neuroute.accounting.counts import Amount
from neuroute.problems.longest import SHORTEST

Flops = Callable[[int], int]  # of so many tokens or nodes
Step = Literal["sub-path", "decision", "summed"]
SubPaths = Literal["random", "suffix", "pairs"]


# -- a solution -------------------------------------------------------------------------------------------------------


def solution_paper(decision: Flops, nodes: int) -> int:
    """Count a greedy solution as scaling counts it: n - 1 decisions, all at the n + 1 tokens of the first (Table 17).

    The formula is inferred: it gives both printed numbers, 843.20 and 434.40 GFLOPs, and the paper states none.  A beam
    search is as many greedy solutions (Figure 4).
    """
    return (nodes - 1) * decision(nodes + 1)


def solution(decision: Flops, nodes: int, beam: int = 1) -> int:
    """Count a solution as it is computed: each decision at its own size, once per beam that is alive then."""
    total = 0
    for tokens, live in live_beams(nodes, beam):
        if live == beam:  # from here on it stays as wide
            return total + beam * _all_sizes(decision, 3, tokens)
        total += live * decision(tokens)
    return total


def _all_sizes(decision: Flops, first: int, last: int) -> int:
    if isinstance(decision, Amount):
        return decision.total(first, last)
    return sum(map(decision, range(first, last + 1)))


def live_beams(nodes: int, beam: int) -> Iterator[tuple[int, int]]:
    """(tokens, beams alive) at each decision.  The search starts with one beam and widens as candidates allow."""
    live = 1
    for tokens in range(nodes + 1, 2, -1):
        yield tokens, live
        live = min(beam, live * (tokens - 2))


def rollouts(decision: Flops, nodes: int, tours: int) -> int:
    """Count as many solutions of a network of many starts, whose decisions are all on all nodes.

    `nodes`: with the depot.  A tour has n - 2 decisions: its start is given, and the last stop goes without saying.  A
    solution of V customers has as many for these, V - 1, and one more for each way back to the depot, which nobody
    knows beforehand: they are not counted.
    """
    return tours * (nodes - 2) * decision(nodes + 1)


# -- training ---------------------------------------------------------------------------------------------------------
#
# A sub-path of w stops has w - 3 decisions of the TSP, on w to 4 tokens (both ends are given, the last choice goes
# without saying), and w - 1 of the CVRP, on w + 1 to 3: its first stop is given, and the depot is a token.


def sub_paths(decision: Flops, lengths: range, *, cvrp: bool) -> Iterator[tuple[int, int]]:
    """(stops, FLOPs of all decisions) of sub-paths of these lengths."""
    last = 3 if cvrp else 4  # tokens of the last decision
    sums = accumulate(decision(k) for k in range(last, lengths.stop + cvrp))
    total = dict(enumerate(sums, last - cvrp))
    yield from ((stops, total.get(stops, 0)) for stops in lengths)


def trained_sample(decision: Flops, encoder: Flops, lengths: range, step: Step, *, cvrp: bool) -> float:
    """Count the expected cost of one training instance; a backward pass counts as two forward passes.

    The sub-path's length is uniform on `lengths`.  With `decision` only the first decision is trained; `sub-path` and
    `summed` train all and cost the same.  Each decision runs the encoder on all stops, of the CVRP on the depot too.
    """
    if step == "decision":
        total = sum(encoder(stops + cvrp) + decision(stops + cvrp) for stops in lengths)
    else:
        fewer = 1 if cvrp else 3
        paths = sub_paths(decision, lengths, cvrp=cvrp)
        total = sum(max(0, stops - fewer) * encoder(stops + cvrp) + each for stops, each in paths)
    return 3 * total / len(lengths)


def lengths_of(nodes: int, cut: SubPaths = "random", *, cvrp: bool = False) -> range:
    """Lengths of the sub-paths of an instance: 4..n (`random`), 3..n (`suffix`) or 4..n + 1 (`pairs`).

    A suffix of the CVRP may begin at the depot: 3..n + 1.
    """
    more = cut == "pairs" or (cvrp and cut == "suffix")
    return range(3 if cut == "suffix" else min(SHORTEST, nodes), nodes + 1 + more)


def reconstruction(
    decision: Flops, encoder: Flops, stops: int, longest: int, most_blocks: int | None = None, *, cvrp: bool
) -> float:
    """Count the expected cost of one iteration of parallel local re-construction of so many stops (sit, Alg. 1-4).

    The length of its blocks is uniform on 4 to `longest`; there are as many as fit.
    """
    lengths = lengths_of(longest)
    blocks = ((stops // w, encoder(w + cvrp) + each) for w, each in sub_paths(decision, lengths, cvrp=cvrp))
    return sum((n if most_blocks is None else min(n, most_blocks)) * each for n, each in blocks) / len(lengths)
