"""Floating-point operations: of layers, and of solutions and training as sums over decisions.

One multiply-add is two FLOPs.  Besides matrix products, one FLOP is counted for each entry of a softmax, each output of
a ReLU and each clipped logit.  All counts are integers; divide by 1e9 for GFLOPs.
"""

from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Literal

from neuroute.networks.blocks.folding import folds
from neuroute.problems.longest import SHORTEST

Amount = Callable[[int], int]  # tokens or nodes -> FLOPs
Step = Literal["sub-path", "decision", "summed"]
SubPaths = Literal["random", "suffix", "pairs"]


# -- layers -----------------------------------------------------------------------------------------------------------


def linear(rows: int, inputs: int, outputs: int) -> int:
    """Count a matrix product."""
    return 2 * rows * inputs * outputs


def ffn(rows: int, width: int, hidden: int) -> int:
    """Count two linear layers with a ReLU between them."""
    return linear(rows, width, hidden) + hidden * rows + linear(rows, hidden, width)


def attention(width: int, heads: int, queries: int, keys: int) -> int:
    """Count scores, their softmax, and the weighted sum of the values; no projections."""
    return 4 * width * queries * keys + heads * queries * keys


def transformer_layer(width: int, heads: int, hidden: int, tokens: int) -> int:
    """Count self-attention with its four projections, and an FFN."""
    return 4 * linear(tokens, width, width) + attention(width, heads, tokens, tokens) + ffn(tokens, width, hidden)


def cross_attention(width: int, heads: int, representatives: int, tokens: int) -> int:
    """Count attention from m representatives to L tokens, or back, with its projections (`CrossLayer`).

    The products are 4 W^2 (m + L) + 4 W m L as the equations read, and 8 W^2 m + 4 H m W L folded, as in inference
    where that pays; training follows the equations.
    """
    m, k = representatives, tokens
    plain = 4 * width**2 * (m + k) + 4 * width * m * k
    folded = 8 * width**2 * m + 4 * heads * m * width * k
    return (folded if folds(width, heads, m, k) else plain) + heads * m * k


def cross_module(width: int, heads: int, hidden: int, representatives: int, tokens: int) -> int:
    """Count both directions, and an FFN of each representative and each token of the stream."""
    both = 2 * cross_attention(width, heads, representatives, tokens)
    return both + ffn(representatives + tokens, width, hidden)


# -- a solution -------------------------------------------------------------------------------------------------------


def solution_paper(decision: Amount, nodes: int) -> int:
    """Count a greedy solution as scaling counts it: n - 1 decisions, all at the n + 1 tokens of the first (Table 17).

    The formula is inferred: it gives both printed numbers, 843.20 and 434.40 GFLOPs, and the paper states none.  A beam
    search is as many greedy solutions (Figure 4).
    """
    return (nodes - 1) * decision(nodes + 1)


def solution(decision: Amount, nodes: int, beam: int = 1) -> int:
    """Count a solution as it is computed: each decision at its own size, once per beam that is alive then."""
    return sum(live * decision(tokens) for tokens, live in live_beams(nodes, beam))


def live_beams(nodes: int, beam: int) -> Iterator[tuple[int, int]]:
    """(tokens, beams alive) at each decision.  The search starts with one beam and widens as candidates allow."""
    live = 1
    for tokens in range(nodes + 1, 2, -1):
        yield tokens, live
        live = min(beam, live * (tokens - 2))


def rollouts(decision: Amount, nodes: int, tours: int) -> int:
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


def sub_paths(decision: Amount, lengths: range, *, cvrp: bool) -> Iterator[tuple[int, int]]:
    """(stops, FLOPs of all decisions) of sub-paths of these lengths."""
    last = 3 if cvrp else 4  # tokens of the last decision
    sums = accumulate(decision(k) for k in range(last, lengths.stop + cvrp))
    total = dict(enumerate(sums, last - cvrp))
    yield from ((stops, total.get(stops, 0)) for stops in lengths)


def trained_sample(decision: Amount, encoder: Amount, lengths: range, step: Step, *, cvrp: bool) -> float:
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
    decision: Amount, encoder: Amount, stops: int, longest: int, most_blocks: int | None = None, *, cvrp: bool
) -> float:
    """Count the expected cost of one iteration of parallel local re-construction of so many stops (sit, Alg. 1-4).

    The length of its blocks is uniform on 4 to `longest`; there are as many as fit.
    """
    lengths = lengths_of(longest)
    blocks = ((stops // w, encoder(w + cvrp) + each) for w, each in sub_paths(decision, lengths, cvrp=cvrp))
    return sum((n if most_blocks is None else min(n, most_blocks)) * each for n, each in blocks) / len(lengths)
