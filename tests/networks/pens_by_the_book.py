"""PENS from its equations, head by head (pens, Sections 4.1 and 4.3, Appendix A.3)."""

import itertools
import math

import torch
from torch import Tensor

from neuroute.networks.pens import Pens


def normalised(x: Tensor, weight: Tensor) -> Tensor:
    return x / ((x**2).mean(-1, keepdim=True) + 1e-6).sqrt() * weight


def turned(x: Tensor, coords: Tensor) -> Tensor:
    """x (tokens, d): the first half in pairs by x, the second by y (pens, Section 4.1)."""
    tokens, d = x.shape
    out = torch.empty_like(x)
    for t, (axis, i) in itertools.product(range(tokens), itertools.product(range(2), range(d // 4))):
        angle = 14 * 100 ** (-i / (d / 4)) * coords[t, axis]
        a, b = x[t, axis * d // 2 + 2 * i], x[t, axis * d // 2 + 2 * i + 1]
        out[t, axis * d // 2 + 2 * i] = a * angle.cos() - b * angle.sin()
        out[t, axis * d // 2 + 2 * i + 1] = a * angle.sin() + b * angle.cos()
    return out


def decision(
    net: Pens, coords: Tensor, noise: Tensor, positions: str, attention_scale: float = 1.0
) -> tuple[Tensor, Tensor]:
    """Logits (N - 2,) for coords (N, 2), and the mean over heads of all layers of what attention scores (N, N)."""
    every = []
    count, heads = len(coords), net.heads
    x = coords @ net.embed.weight.T if net.embed is not None else noise.clone()
    x[0] += net.ends[0]
    x[-1] += net.ends[1]
    for layer in net.layers:
        normed = normalised(x, layer.attention_norm.weight)
        w_q, w_k, w_v = layer.qkv.weight.chunk(3)
        d = w_q.shape[0] // heads
        outputs = []
        for h in range(heads):
            q, k, v = (normed @ w[h * d : (h + 1) * d].T for w in (w_q, w_k, w_v))
            if positions in ("rope", "both"):
                q, k = turned(q, coords), turned(k, coords)
            scores = attention_scale * math.log(count + 1) * q @ k.T / math.sqrt(d)
            if positions in ("alibi", "both"):
                scores = scores - 10 / math.sqrt(2) ** h * (coords[:, None] - coords[None]).norm(dim=-1)
            every.append(scores)
            outputs.append(torch.softmax(scores, dim=-1) @ v)
        attended = torch.cat(outputs, dim=-1)
        x = x + (attended if layer.out is None else attended @ layer.out.weight.T)
        inner = normalised(x, layer.feed_forward_norm.weight) @ layer.up.weight.T
        x = x + inner.clamp(min=0) @ layer.down.weight.T
    x = normalised(x, net.norm.weight)
    return (x[1:-1] @ net.key.weight.T) @ (net.query.weight @ x[0]), torch.stack(every).mean(0)
