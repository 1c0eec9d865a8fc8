"""Scaled dot-product attention of several heads, and within bounded memory."""

from collections.abc import Callable

import torch
from torch import Tensor

from neuroute.kernels.attention import attention

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
