"""Scaled dot-product attention of several heads, and within bounded memory."""

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from neuroute.networks.base import MultiStartNetwork
from neuroute.networks.blocks.precision import at_least_float32, in_all_digits
from neuroute.networks.kernels import decision as kernel
from neuroute.networks.kernels.attention import attention
from neuroute.networks.kernels.decision import AttentionFreeDecisions, Decisions

Bias = Callable[[int, int], Tensor]  # (first, stop) -> what is added to the scores of these queries


def split_heads(qkv: Tensor, heads: int) -> list[Tensor]:
    """Queries, keys and values, (batch, heads, tokens, d_k) each, of qkv (batch, tokens, 3 width).

    Gradients come back side by side in one pass; split along another axis they would be copied twice.
    """
    return [each.transpose(1, 2) for each in qkv.unflatten(2, (3, heads, -1)).unbind(2)]


def attend(q: Tensor, k: Tensor, v: Tensor, scale: float, bias: Tensor | None = None) -> Tensor:
    """softmax(scale q k^T + bias) v on (batch, heads, tokens, d_k) tensors.

    bias broadcasts to (batch, heads, queries, keys); -inf hides a key.
    """
    if q.dtype == torch.float32 and k.dtype == v.dtype == torch.bfloat16:
        q = q.bfloat16()  # as autocast would: a query of features in all their digits
    return attention(q, k, v, scale, bias)


def attend_in_parts(q: Tensor, k: Tensor, v: Tensor, scale: float, bias: Bias, queries: int) -> Tensor:
    """As `attend`, `queries` queries at a time: the bias is never there as a whole."""
    parts = [
        attend(q[:, :, first : first + queries], k, v, scale, bias(first, min(first + queries, q.shape[2])))
        for first in range(0, q.shape[2], queries)
    ]
    return torch.cat(parts, dim=2)


# -- The last step of networks of many starts: products of queries with nodes, clipped by a tanh (Bello et al., 2017)

SATURATED = {torch.float32: 9.02, torch.float64: 19.1}  # above this tanh rounds to 1


def fold(nodes: Tensor, weight: Tensor, bias: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """nodes (batch, n, out) and a layer before their products -> targets (batch, n, in), offsets (batch, 1, n).

    scale * (W x + b) node = x (scale W^T node) + scale b node: so the layer runs once a node, and not at each decision.
    Both in at least float32, as `fits` takes them.
    """
    weight, bias = weight * scale, bias * scale
    targets, offsets = nodes @ weight, (nodes @ bias[:, None]).transpose(1, 2)
    return at_least_float32(targets), at_least_float32(offsets)


def packed(
    keys: Tensor, values: Tensor, targets: Tensor, offsets: Tensor, of_current: Tensor, of_context: Tensor
) -> Decisions | None:
    """For greedy decisions by a kernel; None where it does not take them."""
    if not kernel.fits(keys, targets):
        return None
    return Decisions(keys, values, targets, offsets, of_current, of_context, SATURATED[torch.float32])


def fits(queries: Tensor, targets: Tensor, offsets: Tensor) -> Tensor:
    """queries (batch, tours, in) -> (batch, tours, n), in at least float32."""
    return in_all_digits(torch.baddbmm, offsets, queries, targets.transpose(1, 2))


def clipped(fits: Tensor, mask: Tensor, clipping: float) -> Tensor:
    """Logits (batch, tours, n), within +-clipping, of fits, which are overwritten; mask: see `MultiStartNetwork`."""
    return torch.add(mask, fits.tanh_(), alpha=clipping)


def best_of(fits: Tensor, mask: Tensor) -> Tensor:
    """Where `clipped` is largest: (batch, tours).  fits are overwritten.

    tanh grows with its argument, and where it is 1 or -1, all are alike, of which the first one counts.
    """
    limit = SATURATED[fits.dtype]
    return fits.clamp_(-limit, limit).add_(mask).max(dim=-1).indices  # `argmax` takes four times as long on a CPU


class ClippedNetwork(MultiStartNetwork):
    """Scores nodes by how well they fit, within +-clipping."""

    clipping: float

    @abstractmethod
    def _fits(self, p: Any, context: Tensor, current: Tensor, mask: Tensor) -> Tensor:
        """How well each node fits each tour: (batch, tours, nodes).  p: what is prepared."""

    def decide(self, prepared: Any, context: Tensor, current: Tensor, mask: Tensor) -> Tensor:
        """Logits (batch, tours, nodes), see `MultiStartNetwork`.

        With gradients `mask` must not be overwritten before they are taken.
        """
        return clipped(self._fits(prepared, context, current, mask), mask, self.clipping)

    def decide_best(self, prepared: Any, context: Tensor, current: Tensor, mask: Tensor) -> Tensor:
        """What `decide` finds best: (batch, tours)."""
        decisions: Decisions | AttentionFreeDecisions | None = getattr(prepared, "decisions", None)  # not of every one
        if decisions is not None:
            return decisions.best(context, current, mask)
        return best_of(self._fits(prepared, context, current, mask), mask)


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
            f"RoPE cannot split a head of {head_width} channels into pairs for x and y: make width / heads a multiple "
            "of 4"
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
