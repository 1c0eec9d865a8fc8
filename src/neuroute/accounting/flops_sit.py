"""Parameters and floating-point operations of SIT (sit, Section 4.2), counted as in `flops_baselines`.

D modules of width W with an FFN of width F, H heads, m = r + 1 representatives (r repetitions of the current node and
the destination) and a stream of L tokens: the representatives and what is available.
"""

from typing import Literal

from neuroute.accounting.flops_baselines import layer_flops

Attention = Literal["cross", "self"]


def half_parameters(width: int, feed_forward: int) -> int:
    """One direction of a module, and one layer of the self-attention twin: 4 W^2 + 2 W F + 2 W + F."""
    return 4 * width**2 + 2 * width * feed_forward + 2 * width + feed_forward


def parameters(
    depth: int, width: int, feed_forward: int, repetitions: int, *, attention: Attention = "cross", cvrp: bool = False
) -> int:
    """Halves, linears of the representatives, embedding and head.

    As published 2,633,217 for the TSP; 2,635,522 for the CVRP, with demand and what is left as further inputs and two
    logits for each customer.
    """
    layers = depth * (2 if attention == "cross" else 1) * half_parameters(width, feed_forward)
    representatives = (repetitions + 1) * (width * (width + cvrp) + width)
    embedding = (3 if cvrp else 2) * width + width
    return layers + representatives + embedding + (1 + cvrp) * (width + 1)


def half_attention_flops(width: int, heads: int, representatives: int, tokens: int) -> int:
    """Matrix products of one direction's attention, from m representatives to L tokens or back.

    As the equations read: 4 W^2 (m + L) + 4 W m L.  Folded (`CrossLayer`): 8 W^2 m + 4 H m W L.  The network computes
    in inference whichever is less, in training by the equations.
    """
    m, k = representatives, tokens
    plain = 4 * width**2 * (m + k) + 4 * width * m * k
    folded = 8 * width**2 * m + 4 * heads * m * width * k
    return min(plain, folded)


def module_flops(
    width: int, heads: int, feed_forward: int, representatives: int, tokens: int, *, matmul_only: bool = False
) -> int:
    """Both directions, and 4 W F for the FFN of each representative and each token of the stream."""
    m, k = representatives, tokens
    matmuls = 2 * half_attention_flops(width, heads, m, k) + 4 * width * feed_forward * (m + k)
    return matmuls if matmul_only else matmuls + 2 * heads * m * k + feed_forward * (m + k)


def decision_flops(
    depth: int,
    width: int,
    heads: int,
    feed_forward: int,
    repetitions: int,
    tokens: int,
    *,
    attention: Attention = "cross",
    cvrp: bool = False,
    matmul_only: bool = False,
) -> int:
    """One decision on `tokens` tokens: current, destination and the candidates between them.

    The embedding of all (2 W per coordinate, and demand), the linears of the representatives, the layers on
    L = tokens - 2 + m, and the head on these.
    """
    m = repetitions + 1
    stream = tokens - 2 + m
    if attention == "cross":
        layer = module_flops(width, heads, feed_forward, m, stream, matmul_only=matmul_only)
    else:
        layer = layer_flops(width, heads, feed_forward, stream, matmul_only=matmul_only)
    embedding = 2 * (3 if cvrp else 2) * width * tokens
    return depth * layer + embedding + 2 * m * width * (width + cvrp) + 2 * (1 + cvrp) * width * stream
