"""Scaled dot-product attention, by the fastest path for the device and within bounded memory."""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from neuroute.networks.blocks.kernels import attention as kernel

FEW = 1024  # scores of all heads that are not worth a call of the kernel: of a path's last nodes, torch's takes half
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
    few = bias is None and math.prod(q.shape[:3]) * k.shape[2] < FEW
    if not few and kernel.fits(q, k, v):
        if not torch.is_grad_enabled():
            return kernel.fused(q, k, v, scale, bias)
        if type(q) is Tensor and (bias is None or not bias.requires_grad):  # not of shapes alone
            attended: Tensor = kernel.AttentionFunction.apply(q, k, v, scale, bias)  # type: ignore[no-untyped-call]
            return attended
    if q.device.type == "cpu" and q.dtype == torch.bfloat16 and torch.is_grad_enabled():
        # The fused CPU kernel's bf16 backward pass takes two to nine times as long as these two products.
        scores = q @ k.transpose(-1, -2) * scale
        return torch.softmax(scores if bias is None else scores + bias.to(scores), dim=-1).to(v) @ v
    return F.scaled_dot_product_attention(q, k, v, scale=scale, attn_mask=None if bias is None else bias.to(q))


def attend_in_parts(q: Tensor, k: Tensor, v: Tensor, scale: float, bias: Bias, queries: int) -> Tensor:
    """As `attend`, `queries` queries at a time: the bias is never there as a whole."""
    parts = [
        attend(q[:, :, first : first + queries], k, v, scale, bias(first, min(first + queries, q.shape[2])))
        for first in range(0, q.shape[2], queries)
    ]
    return torch.cat(parts, dim=2)
