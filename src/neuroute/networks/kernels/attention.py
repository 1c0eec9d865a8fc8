"""Attention as an operator: on a CPU heads of few channels take one pass, forward and backward (`attention.c`)."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from neuroute.networks.kernels.library import OPERATORS, call, lanes, operator, runs, threads_for

CHANNELS = 64  # of a head, at most: beyond, torch's matrix products are as fast
WIDE_CHANNELS = 128  # the same in float32 without gradients, with AVX-512
FEW = 1024  # scores of all heads that are not worth a call: of a path's last nodes, torch's takes half


def attention(q: Tensor, k: Tensor, v: Tensor, scale: float, bias: Tensor | None = None) -> Tensor:
    """softmax(scale q k^T + bias) v on (batch, heads, tokens, d_k) tensors.

    bias broadcasts to (batch, heads, queries, keys); -inf hides a key.
    """
    learns = torch.is_grad_enabled()
    few = bias is None and math.prod(q.shape[:3]) * k.shape[2] < FEW
    if (
        not few
        and q.dtype == k.dtype == v.dtype
        and not (learns and bias is not None and bias.requires_grad)
        and runs(q, k, v, dtypes=(torch.float32, torch.bfloat16))
        and q.shape[3] <= (WIDE_CHANNELS if q.dtype == torch.float32 and not learns and lanes() == 16 else CHANNELS)
    ):
        out: Tensor = _attention(q, k, v, scale, bias, learns)[0]
        return out
    if q.device.type == "cpu" and q.dtype == torch.bfloat16 and learns:
        # The fused CPU kernel's bf16 backward pass takes two to nine times as long as these two products.
        scores = q @ k.transpose(-1, -2) * scale
        return torch.softmax(scores if bias is None else scores + bias.to(scores), dim=-1).to(v) @ v
    return F.scaled_dot_product_attention(q, k, v, scale=scale, attn_mask=None if bias is None else bias.to(q))


def _forward(q: Tensor, k: Tensor, v: Tensor, scale: float, bias: Tensor | None, learns: bool) -> tuple[Tensor, Tensor]:
    out, logsum = _shapes(q, k, v, scale, bias, learns)
    call("attention", *_task(q, k, v, out, logsum if learns else None, scale, bias))
    return out, logsum


def _shapes(q: Tensor, k: Tensor, v: Tensor, scale: float, bias: Tensor | None, learns: bool) -> tuple[Tensor, Tensor]:
    """What is seen; for learning logarithms (of base 2) of the exponentials' sums, too: (batch, heads, queries)."""
    return _side_by_side(q), q.new_empty(q.shape[:3] if learns else 0, dtype=torch.float32)


def _backward(
    q: Tensor, k: Tensor, v: Tensor, scale: float, bias: Tensor | None, out: Tensor, logsum: Tensor, d_out: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    dq, dk, dv = _shapes_backward(q, k, v, scale, bias, out, logsum, d_out)
    d_out = _dense(d_out)
    views = (word for each in (d_out, dq, dk, dv) for word in _view(each))
    call("attention_backward", *_task(q, k, v, out, logsum, scale, bias), *views)
    return dq, dk, dv


def _shapes_backward(q: Tensor, k: Tensor, v: Tensor, *more: Any) -> tuple[Tensor, Tensor, Tensor]:
    return _side_by_side(q), _side_by_side(k), _side_by_side(v)


def _task(
    q: Tensor, k: Tensor, v: Tensor, out: Tensor, logsum: Tensor | None, scale: float, bias: Tensor | None
) -> tuple[Any, ...]:
    """`task` of heads.h."""
    shape = (*q.shape[:3], *k.shape[2:])
    if bias is not None:
        bias = _dense(bias.to(torch.float32)).expand(*q.shape[:3], k.shape[2])
    views = [word for each in (_dense(q), _dense(k), _dense(v), out, bias) for word in _view(each)]
    return *views, logsum, *shape, float(scale), q.dtype == torch.bfloat16, threads_for(math.prod(shape))


def _view(x: Tensor | None) -> tuple[Any, ...]:
    return (None, 0, 0, 0) if x is None else (x, *x.stride()[:3])


def _dense(x: Tensor) -> Tensor:
    """With neighbouring numbers along the last axis."""
    return x if x.stride(-1) == 1 else x.contiguous()


def _side_by_side(x: Tensor) -> Tensor:
    """Empty, with the heads of a token as neighbours: the next layer reads them as one row."""
    batch, heads, tokens, channels = x.shape
    return x.new_empty(batch, tokens, heads, channels).transpose(1, 2)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    q, k, v, ctx.scale, bias, _ = inputs
    ctx.save_for_backward(q, k, v, bias, *output)
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)


def _learn(ctx: Any, d_out: Tensor, _: None) -> tuple[Tensor | None, ...]:
    q, k, v, bias, out, logsum = ctx.saved_tensors
    return *_attention_backward(q, k, v, ctx.scale, bias, out, logsum, d_out), None, None, None


_ARGUMENTS = "Tensor q, Tensor k, Tensor v, float scale, Tensor? bias"
_attention = operator(f"attention({_ARGUMENTS}, bool learns) -> (Tensor, Tensor)", _forward, _shapes)
_attention_backward = operator(
    f"attention_backward({_ARGUMENTS}, Tensor out, Tensor logsum, Tensor d_out) -> (Tensor, Tensor, Tensor)",
    _backward,
    _shapes_backward,
)
torch.library.register_autograd("neuroute::attention", _learn, setup_context=_keep, lib=OPERATORS)
