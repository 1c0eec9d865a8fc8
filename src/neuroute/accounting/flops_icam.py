"""Parameters and floating-point operations of ICAM (icam, Section 3.2), counted as in `flops_baselines`."""


def parameters(
    depth: int,
    width: int,
    feed_forward: int,
    *,
    cvrp: bool = False,
    adaptation: bool = True,
    compatibility: bool = True,
) -> int:
    """D (3 W^2 + 2 W F + 5 W + F) + 4 W^2 + 3 W, of the CVRP 3 W^2 + 8 W outside the layers, and the alphas.

    2,242,446 as published for the TSP, 2,226,702 for the CVRP.
    """
    layer = 3 * width**2 + 2 * width * feed_forward + 5 * width + feed_forward
    outside = 3 * width**2 + 8 * width if cvrp else 4 * width**2 + 3 * width
    return depth * layer + outside + (depth + 1) * adaptation + compatibility


def encoder_flops(
    depth: int,
    width: int,
    feed_forward: int,
    nodes: int,
    *,
    cvrp: bool = False,
    adaptation: bool = True,
    matmul_only: bool = False,
) -> int:
    """The embedding, the layers, and what all decisions share.

    A layer: 6 W^2 n for Q, K and V, 4 W F n for the FFN, 4 W n^2 for the two products of exp(A), which are sums over
    all nodes where there is no adaptation.  The embedding: 2 W for each number that is known of a node.  What is
    shared: keys, values and what nodes add to the queries, 8 W^2 n; of the CVRP one of them fewer.
    """
    n = nodes
    layer = 6 * width**2 * n + 4 * width * feed_forward * n + adaptation * 4 * width * n**2
    if not matmul_only:
        layer += adaptation * n**2 + feed_forward * n
    embedding = 2 * width * (2 + 3 * (n - 1)) if cvrp else 4 * width * n
    return depth * layer + embedding + (6 if cvrp else 8) * width**2 * n


def decision_flops(width: int, nodes: int, *, matmul_only: bool = False) -> int:
    """One decision of one tour: the two products of the attention-free module (4 W n) and the logits (2 W n).

    Visited nodes are computed and then left out.  Without adaptation what is closed still has to be hidden.
    """
    matmuls = 6 * width * nodes
    return matmuls if matmul_only else matmuls + 2 * nodes
