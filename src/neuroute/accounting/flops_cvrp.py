"""Parameters and floating-point operations of LEHD and BQ-NCO for the CVRP, counted as in `flops`."""

from collections.abc import Callable

from neuroute.accounting.flops_baselines import layer_flops
from neuroute.accounting.flops_sit import Attention, half_parameters, module_flops

Amount = Callable[[int], int]  # tokens or nodes -> FLOPs


def lehd_parameters(depth: int, width: int, feed_forward: int) -> int:
    """(D + 1) (4 W^2 + 2 W F + 2 W + F) + 2 W^2 + 10 W + 2."""
    layer = 4 * width**2 + 2 * width * feed_forward + 2 * width + feed_forward
    return (depth + 1) * layer + 2 * width**2 + 10 * width + 2


def lehd_encoder_flops(width: int, heads: int, feed_forward: int, nodes: int, *, matmul_only: bool = False) -> int:
    """The embedding of coordinates and demand, and one layer, on depot and customers at once."""
    return 6 * width * nodes + layer_flops(width, heads, feed_forward, nodes, matmul_only=matmul_only)


def lehd_decision_flops(
    depth: int, width: int, heads: int, feed_forward: int, tokens: int, *, matmul_only: bool = False
) -> int:
    """One decision: the layers, the projections of depot and current (4 W (W + 1)), the head (4 W per candidate)."""
    layers = depth * layer_flops(width, heads, feed_forward, tokens, matmul_only=matmul_only)
    return layers + 4 * width * (width + 1) + 4 * width * (tokens - 2)


def light_lehd_parameters(depth: int, width: int, feed_forward: int, experts: int) -> int:
    """D (2 W + 2 W m + m (2 W F + W + F)) more than LEHD has: the gates and the experts of each decoder layer."""
    expert = 2 * width * feed_forward + width + feed_forward
    return lehd_parameters(depth, width, feed_forward) + depth * (2 * width * (1 + experts) + experts * expert)


def light_lehd_decision_flops(
    depth: int,
    width: int,
    heads: int,
    feed_forward: int,
    experts: int,
    top: int,
    tokens: int,
    *,
    sparse: bool = True,
    matmul_only: bool = False,
) -> int:
    """LEHD's decision, and in each layer the gate's 4 W.

    sparse: whether it sends the tokens to the experts: then 2 W m of each for their gate, and k FFNs instead of one.
    """
    dense = lehd_decision_flops(depth, width, heads, feed_forward, tokens, matmul_only=matmul_only) + 4 * width * depth
    row = 4 * width * feed_forward + (0 if matmul_only else feed_forward)
    return dense + (depth * tokens * (2 * width * experts + (top - 1) * row) if sparse else 0)


def bq_parameters(
    depth: int, width: int, feed_forward: int, representatives: int, *, attention: Attention = "self"
) -> int:
    """D (4 W^2 + 2 W F + 3 W + F + 2) + 9 W + 2; cross-attention: 2 D (4 W^2 + 2 W F + 2 W + F + 2) + (r + 8) W + 2."""
    half = half_parameters(width, feed_forward) + 2
    if attention == "cross":
        return 2 * depth * half + (representatives + 8) * width + 2
    return depth * (half + width) + 9 * width + 2


def bq_decision_flops(
    depth: int,
    width: int,
    heads: int,
    feed_forward: int,
    representatives: int,
    tokens: int,
    *,
    attention: Attention = "self",
    matmul_only: bool = False,
) -> int:
    """One decision: the embedding (8 W k), the layers, the head (4 W per candidate).

    Cross-attention: modules of r + 1 representatives and a stream of these and the candidates, as in SIT.
    """
    if attention == "cross":
        m = representatives + 1
        layer = module_flops(width, heads, feed_forward, m, tokens - 2 + m, matmul_only=matmul_only)
    else:
        layer = layer_flops(width, heads, feed_forward, tokens, matmul_only=matmul_only)
    return depth * layer + 8 * width * tokens + 4 * width * (tokens - 2)


def trained_sample(decision: Amount, customers: int, step: str, encoder: Amount) -> float:
    """Expected cost of one training instance; a backward pass counts as two forward passes.

    The sub-path's length L is uniform on 4..V.  Decision c = 1..L-1 sees k = L - c + 2 tokens; `decision` trains c = 1
    only.  Each decision runs the encoder on the depot and all L customers.
    """
    lengths = range(min(4, customers), customers + 1)
    total = 0
    for length in lengths:
        decisions = 1 if step == "decision" else length - 1
        total += sum(encoder(length + 1) + decision(length - c + 2) for c in range(1, decisions + 1))
    return 3 * total / len(lengths)
