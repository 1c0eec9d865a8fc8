"""Scaled dot-product attention, by the fastest path for the device."""

import torch
import torch.nn.functional as F
from torch import Tensor


def attend(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """softmax(scale q k^T) v on (batch, heads, tokens, d_k) tensors."""
    if q.device.type == "cpu" and q.dtype == torch.bfloat16 and torch.is_grad_enabled():
        # The fused CPU kernel's bf16 backward pass takes two to nine times as long as these two products.
        return torch.softmax(q @ k.transpose(-1, -2) * scale, dim=-1) @ v
    return F.scaled_dot_product_attention(q, k, v, scale=scale)
