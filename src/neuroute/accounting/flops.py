"""Parameters and floating-point operations of the decoder-only model (scaling, Table 1, Table 17, Figure 4).

What holds for any constructive network is `solution`, `solution_paper` and `trained_sample`: sums over decisions.

One multiply-add is two FLOPs.  All counts are integers in FLOPs; divide by 1e9 for GFLOPs.
"""

from collections.abc import Callable, Iterator
from typing import Literal

Amount = Callable[[int], int]  # tokens or nodes -> FLOPs
Step = Literal["sub-path", "decision", "summed"]
SubPaths = Literal["random", "suffix", "pairs"]


def parameters(depth: int, width: int, *, gate: bool = True, rezero: bool = True) -> int:
    """Trainable parameters: D (13 W^2 + 7 W + 2) + 2 W^2 + 6 W + 1 (scaling, Table 1).

    Without the gate each layer has W^2 + W fewer, without ReZero two fewer.
    """
    layer = 12 * width**2 + 6 * width
    if gate:
        layer += width**2 + width
    if rezero:
        layer += 2
    return depth * layer + 2 * width**2 + 6 * width + 1


def decision_flops(
    depth: int, width: int, heads: int, tokens: int, *, gate: bool = True, matmul_only: bool = False
) -> int:
    """One decision on `tokens` tokens (current, destination and the candidates between them).

    Matmuls: per layer 26 W^2 k (8 for Q, K, V and output, 2 for the gate, 16 for the FFN) + 4 W k^2 (attention), and
    4 W^2 + 6 W k outside.  Unless `matmul_only`, also one FLOP per softmax entry and per ReLU output.
    """
    k = tokens
    layer = (26 if gate else 24) * width**2 * k + 4 * width * k**2
    if not matmul_only:
        layer += heads * k**2 + 4 * width * k
    return depth * layer + 4 * width**2 + 6 * width * k


def greedy_flops_paper(depth: int, width: int, heads: int, nodes: int, *, gate: bool = True) -> int:
    """A greedy solution as the paper counts it: all n - 1 decisions at the size of the first (scaling, Table 17).

    The formula is inferred: it gives both printed numbers, 843.20 and 434.40 GFLOPs, and the paper states none.
    """
    return solution_paper(lambda k: decision_flops(depth, width, heads, k, gate=gate), nodes)


def beam_flops_paper(depth: int, width: int, heads: int, nodes: int, beam: int, *, gate: bool = True) -> int:
    """A beam search as the paper counts it: `beam` greedy solutions (scaling, Figure 4)."""
    return beam * greedy_flops_paper(depth, width, heads, nodes, gate=gate)


def greedy_flops(
    depth: int, width: int, heads: int, nodes: int, *, gate: bool = True, matmul_only: bool = False
) -> int:
    """A greedy solution as it is computed: n + 1 tokens at the first decision, one fewer at each, 3 at the last."""
    return beam_flops(depth, width, heads, nodes, 1, gate=gate, matmul_only=matmul_only)


def beam_flops(
    depth: int, width: int, heads: int, nodes: int, beam: int, *, gate: bool = True, matmul_only: bool = False
) -> int:
    """A beam search as it is computed: each decision at its own size, once per beam that is alive then."""
    return solution(lambda k: decision_flops(depth, width, heads, k, gate=gate, matmul_only=matmul_only), nodes, beam)


def solution_paper(decision: Amount, nodes: int) -> int:
    """A greedy solution with every decision at the size of the first: n - 1 times n + 1 tokens."""
    return (nodes - 1) * decision(nodes + 1)


def solution(decision: Amount, nodes: int, beam: int = 1) -> int:
    """A solution, greedy or by beam search, with every decision at its own size."""
    return sum(live * decision(tokens) for tokens, live in live_beams(nodes, beam))


def live_beams(nodes: int, beam: int) -> Iterator[tuple[int, int]]:
    """(tokens, beams alive) at each decision.  The search starts with one beam and widens as candidates allow."""
    live = 1
    for tokens in range(nodes + 1, 2, -1):
        yield tokens, live
        live = min(beam, live * (tokens - 2))


def trained_sample(
    decision: Amount, nodes: int, step: Step, sub_paths: SubPaths = "random", encoder: Amount = lambda nodes: 0
) -> float:
    """Expected cost of one training instance; a backward pass counts as two forward passes.

    The sub-path's length L is uniform, on 4..n (`random`), 3..n (`suffix`) or 4..n + 1 (`pairs`).  Decision
    c = 1..L-3 sees k = L - c + 1 tokens; the last decision has one candidate and is skipped.  `decision` trains c = 1
    only; `sub-path` and `summed` train all and cost the same.  Each decision runs the encoder on all L nodes.
    """
    lengths = range(3 if sub_paths == "suffix" else 4, nodes + (2 if sub_paths == "pairs" else 1))
    total = 0
    for length in lengths:
        decisions = 1 if step == "decision" else length - 3
        total += sum(encoder(length) + decision(length - c + 1) for c in range(1, decisions + 1))
    return 3 * total / len(lengths)
