"""Parameters and floating-point operations of POMO, counted as in `flops_baselines`.

What holds for every network of many starts is `rolled_out`.
"""

from neuroute.accounting.flops import Amount
from neuroute.accounting.flops_baselines import layer_flops


def parameters(depth: int, width: int, feed_forward: int, *, cvrp: bool = False) -> int:
    """D (4 W^2 + 2 W F + 6 W + F) + 5 W^2 + 4 W, of the CVRP 4 W^2 + 9 W outside the layers.

    1,269,760 as published for the TSP, 1,254,016 for the CVRP.
    """
    layer = 4 * width**2 + 2 * width * feed_forward + 6 * width + feed_forward
    return depth * layer + (4 * width**2 + 9 * width if cvrp else 5 * width**2 + 4 * width)


def encoder_flops(
    depth: int,
    width: int,
    heads: int,
    feed_forward: int,
    nodes: int,
    *,
    cvrp: bool = False,
    matmul_only: bool = False,
) -> int:
    """The embedding (2 W for each number that is known of a node), the layers, and what all decisions share.

    That is keys, values and what nodes add to the queries: 8 W^2 n; of the CVRP one of them fewer.
    """
    layers = depth * layer_flops(width, heads, feed_forward, nodes, matmul_only=matmul_only)
    embedding = 2 * width * (2 + 3 * (nodes - 1)) if cvrp else 4 * width * nodes
    return layers + embedding + (6 if cvrp else 8) * width**2 * nodes


def decision_flops(width: int, heads: int, nodes: int, *, matmul_only: bool = False) -> int:
    """One decision of one tour: attention to all nodes (4 W n), the projection (2 W^2), the logits (2 W n).

    Visited nodes are computed and then left out: the last decision costs as much as the first.
    """
    matmuls = 6 * width * nodes + 2 * width**2
    return matmuls if matmul_only else matmuls + heads * nodes + nodes


def rolled_out(decision: Amount, encoder: Amount, nodes: int, tours: int) -> int:
    """As many solutions of an instance, which is encoded once; a decision takes as long at the end as at the start.

    `nodes`: with the depot.  A tour has n - 2 decisions: its start is given, and the last stop goes without saying.  A
    solution of V customers has as many for these, V - 1, and one more for each way back to the depot, which nobody
    knows beforehand: they are not counted.
    """
    return encoder(nodes) + tours * (nodes - 2) * decision(nodes + 1)
