"""Floating-point operations of self-improved training: sub-paths, and parallel local re-construction (sit, Alg. 1-4).

A sub-path of w stops has w - 3 decisions of the TSP, on w to 4 tokens (both ends are given, the last choice goes
without saying), and w - 1 of the CVRP, on w + 1 to 3: its first stop is given, and the depot is a token.
"""

from collections.abc import Callable, Iterator
from itertools import accumulate

from neuroute.problems.longest import SHORTEST

Amount = Callable[[int], int]  # tokens or nodes -> FLOPs


def rebuilt(decision: Amount, encoder: Amount, longest: int, *, cvrp: bool) -> Iterator[tuple[int, int]]:
    """(stops, FLOPs of constructing them) of sub-paths of 4 to `longest` stops, encoded once."""
    last = 3 if cvrp else 4  # tokens of the last decision
    sums = accumulate(decision(k) for k in range(last, longest + cvrp + 1))
    for stops, total in enumerate(sums, last - cvrp):
        if stops >= min(SHORTEST, longest):
            yield stops, encoder(stops + cvrp) + total


def trained_sample(decision: Amount, encoder: Amount, longest: int, step: str, *, cvrp: bool) -> float:
    """Expected cost of one training instance; a backward pass counts as two forward passes.

    The length is uniform on 4 to `longest`.  Each decision is an update that encodes all stops, or (`decision`) the
    first one alone is.
    """
    found = list(rebuilt(decision, lambda nodes: 0, longest, cvrp=cvrp))
    if step == "decision":
        return 3 * sum(encoder(stops + cvrp) + decision(stops + cvrp) for stops, _ in found) / len(found)
    fewer = 1 if cvrp else 3
    return 3 * sum((stops - fewer) * encoder(stops + cvrp) + total for stops, total in found) / len(found)


def iteration(
    decision: Amount, encoder: Amount, stops: int, longest: int, most_blocks: int | None = None, *, cvrp: bool
) -> float:
    """Expected cost of one iteration of re-construction on a solution of so many stops.

    The length of its blocks is uniform on 4 to `longest`; there are as many as fit.
    """
    found = list(rebuilt(decision, encoder, longest, cvrp=cvrp))
    blocks = ((stops // length, total) for length, total in found)
    return sum((n if most_blocks is None else min(n, most_blocks)) * total for n, total in blocks) / len(found)
