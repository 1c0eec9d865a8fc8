"""Where the cities are, as attention reads it: distances for ALiBi, rotations for axial RoPE (pens, Section 4.1)."""

import math

import torch
from torch import Tensor


def alibi_slopes(heads: int) -> Tensor:
    """m_h = 10 / sqrt(2)^h for h = 0..heads-1 (pens, Appendix A.3): (heads,) float64."""
    return 10 / math.sqrt(2) ** torch.arange(heads, dtype=torch.float64)


def pairwise_distances(a: Tensor, b: Tensor) -> Tensor:
    """Euclidean distances (batch, p, q) between the points a (batch, p, 2) and b (batch, q, 2).

    From differences, never by |a|^2 + |b|^2 - 2ab, which loses close points to cancellation.
    """
    return torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")


def axial_frequencies(head_width: int) -> Tensor:
    """theta_i = 14 * 100^(-i / (d / 4)) for i = 0..d/4-1, d channels of a head, in float64 (pens, Section 4.1).

    Raises ValueError when d is no multiple of 4: half of the channels turn with x, half with y, two at a time.
    """
    if head_width % 4:
        raise ValueError(
            f"RoPE cannot split a head of {head_width} channels into pairs for x and y: width / heads must be a "
            "multiple of 4"
        )
    quarter = head_width // 4
    return 14 * 100 ** (-torch.arange(quarter, dtype=torch.float64) / quarter)


def axial_rotation(coords: Tensor, frequencies: Tensor) -> Tensor:
    """coords (batch, tokens, 2) -> (batch, tokens, d): cosine and sine, side by side, of each of the d / 2 turns.

    The first half of the turns are by x, the second by y.
    """
    angles = (coords[..., :, None] * frequencies.to(coords)).flatten(-2)
    return torch.stack([angles.cos(), angles.sin()], dim=-1).flatten(-2)


def rotate(x: Tensor, rotation: Tensor) -> Tensor:
    """Turn channels (2i, 2i + 1) of x (..., tokens, d) by the i-th angle of rotation (batch, tokens, d).

    One product of complex numbers, in float32 or float64 whatever x is: angles of large instances need the digits.
    """
    pairs, turns = x.to(rotation.dtype).unflatten(-1, (-1, 2)), rotation.unflatten(-1, (-1, 2)).unsqueeze(1)
    if torch.compiler.is_compiling():  # torch.compile's gradient of a product of complex numbers is wrong
        (a, b), (cosine, sine) = pairs.unbind(-1), turns.unbind(-1)
        turned = torch.stack([a * cosine - b * sine, a * sine + b * cosine], dim=-1)
    else:
        turned = torch.view_as_real(torch.view_as_complex(pairs) * torch.view_as_complex(turns))
    return turned.flatten(-2).to(x.dtype)
