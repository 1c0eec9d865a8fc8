"""Parts of the equations that several networks share, head by head and without fusion."""

import torch
from torch import Tensor

from neuroute.networks.blocks.layers import ResidualLayer


def attention(heads: int, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | float = 0.0, scale: float = 0.0) -> Tensor:
    """softmax(scale q k^T + mask) v of each head, side by side; the scale is 1 / sqrt(d_k) unless it is given."""
    scale = scale or (q.shape[-1] // heads) ** -0.5
    parts = (part.chunk(heads, dim=-1) for part in (q, k, v))
    made = [torch.softmax(scale * a @ b.transpose(1, 2) + mask, dim=-1) @ c for a, b, c in zip(*parts, strict=True)]
    return torch.cat(made, dim=-1)


def residual_layer(layer: ResidualLayer, x: Tensor, attention_scale: float = 1.0) -> Tensor:
    """x + a1 MHA(x), then + a2 FFN: factors, the gate and biases as far as the layer has them; no normalisation."""
    w_q, w_k, w_v = layer.qkv.weight.chunk(3)
    q, k, v = x @ w_q.T, x @ w_k.T, x @ w_v.T
    d_k = len(w_q) // layer.heads
    scale = attention_scale / d_k**0.5
    if getattr(layer, "key_value_bias", None) is not None:  # BQ's, whose scores are not divided by sqrt(d_k)
        of_keys, of_values = layer.key_value_bias.chunk(2)
        k, v, scale = k + of_keys, v + of_values, attention_scale
    attended = layer.out(attention(layer.heads, q, k, v, scale=scale))
    if getattr(layer, "gate", None) is not None:
        attended = attended * torch.sigmoid(layer.gate(x))
    a1, a2 = (1.0, 1.0) if layer.alpha1 is None else (layer.alpha1, layer.alpha2)
    x = x + a1 * attended
    return x + a2 * layer.down(torch.relu(layer.up(x)))
