"""Parameters and floating-point operations of POMO for the TSP, counted as in `flops_baselines`."""

from neuroute.analysis.flops_baselines import layer_flops


def parameters(depth: int, width: int, feed_forward: int) -> int:
    """D (4 W^2 + 2 W F + 6 W + F) + 5 W^2 + 4 W: 1,269,760 as published."""
    layer = 4 * width**2 + 2 * width * feed_forward + 6 * width + feed_forward
    return depth * layer + 5 * width**2 + 4 * width


def encoder_flops(
    depth: int, width: int, heads: int, feed_forward: int, nodes: int, *, matmul_only: bool = False
) -> int:
    """The embedding (4 W n), the layers, and what all decisions share: keys, values and both queries (8 W^2 n)."""
    layers = depth * layer_flops(width, heads, feed_forward, nodes, matmul_only=matmul_only)
    return layers + 4 * width * nodes + 8 * width**2 * nodes


def decision_flops(width: int, heads: int, nodes: int, *, matmul_only: bool = False) -> int:
    """One decision of one tour: attention to all nodes (4 W n), the projection (2 W^2), the logits (2 W n).

    Visited nodes are computed and then left out: the last decision costs as much as the first.
    """
    matmuls = 6 * width * nodes + 2 * width**2
    return matmuls if matmul_only else matmuls + heads * nodes + nodes
