"""Parameters and floating-point operations of PENS (pens, Section 4.3).

Counted as in `flops_baselines`.  Normalisations and the rotations of RoPE, which grow with k alone, are not counted;
ALiBi's bias is, 2 FLOPs for each head and pair.
"""

from neuroute.accounting.flops_baselines import layer_flops


def parameters(
    depth: int, width: int, feed_forward: int, *, output_projection: bool = False, coordinates: bool = False
) -> int:
    """D (3 W^2 + 2 W F + 2 W) + 2 W^2 + 3 W: 2,842,560 at the paper's shape."""
    layer = (4 if output_projection else 3) * width**2 + 2 * width * feed_forward + 2 * width
    return depth * layer + 2 * width**2 + 3 * width + (2 * width if coordinates else 0)


def decision_flops(
    depth: int,
    width: int,
    feed_forward: int,
    heads: int,
    tokens: int,
    *,
    output_projection: bool = False,
    alibi: bool = False,
    matmul_only: bool = False,
) -> int:
    """One decision: the layers, and the pointer's query (2 W^2), keys (2 W^2 k) and products (2 W k)."""
    layer = layer_flops(width, heads, feed_forward, tokens, matmul_only=matmul_only)
    layer -= 0 if output_projection else 2 * width**2 * tokens
    layer += 2 * heads * tokens**2 if alibi and not matmul_only else 0
    return depth * layer + 2 * width**2 * (tokens + 1) + 2 * width * tokens
