"""Parameters and floating-point operations of LEHD and BQ-NCO (scaling, Tables 5 and 20).

Counted as in `flops`: one multiply-add is two FLOPs, one FLOP per softmax entry and per ReLU output unless
`matmul_only`.  D layers of width W, an FFN of width F, k tokens.
"""


def lehd_parameters(depth: int, width: int, feed_forward: int) -> int:
    """(D + 1) (4 W^2 + 2 W F + 2 W + F) + 3 W^2 + 7 W + 1: 1,431,681 as published, its unused projection included."""
    layer = 4 * width**2 + 2 * width * feed_forward + 2 * width + feed_forward
    return (depth + 1) * layer + 3 * width**2 + 7 * width + 1


def bq_parameters(depth: int, width: int, feed_forward: int) -> int:
    """D (4 W^2 + 2 W F + 3 W + F + 2) + 6 W + 1: 3,107,539 as published."""
    layer = 4 * width**2 + 2 * width * feed_forward + 3 * width + feed_forward + 2
    return depth * layer + 6 * width + 1


def layer_flops(width: int, heads: int, feed_forward: int, tokens: int, *, matmul_only: bool = False) -> int:
    """8 W^2 k for Q, K, V and output, 4 W F k for the FFN, 4 W k^2 for the two attention products."""
    k = tokens
    matmuls = 8 * width**2 * k + 4 * width * feed_forward * k + 4 * width * k**2
    return matmuls if matmul_only else matmuls + heads * k**2 + feed_forward * k


def lehd_encoder_flops(width: int, heads: int, feed_forward: int, nodes: int, *, matmul_only: bool = False) -> int:
    """The embedding of the coordinates and one layer, on all nodes at once."""
    return 4 * width * nodes + layer_flops(width, heads, feed_forward, nodes, matmul_only=matmul_only)


def lehd_decision_flops(
    depth: int, width: int, heads: int, feed_forward: int, tokens: int, *, matmul_only: bool = False
) -> int:
    """One decision of the decoder: its layers, the projections of start and current node (4 W^2), the head (2 W k)."""
    layers = depth * layer_flops(width, heads, feed_forward, tokens, matmul_only=matmul_only)
    return layers + 4 * width**2 + 2 * width * tokens


def bq_decision_flops(
    depth: int, width: int, heads: int, feed_forward: int, tokens: int, *, matmul_only: bool = False
) -> int:
    """One decision: the layers, the embedding (4 W k) and the head (2 W k)."""
    return depth * layer_flops(width, heads, feed_forward, tokens, matmul_only=matmul_only) + 6 * width * tokens
