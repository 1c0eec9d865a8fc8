"""Attention of small heads on a CPU, as one pass over each head: `attention.c`; see `library`."""

import ctypes
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from neuroute.networks.blocks.kernels.library import are_on, dense, lanes, library, reason, threads_for

VERSION = "330b4a352bb0db82"  # see `library`
CHANNELS = 64  # of a head, at most: beyond, torch's matrix products are as fast
WIDE_CHANNELS = 128  # the same in float32 without gradients, with AVX-512


class _View(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("batch", ctypes.c_int64),
        ("head", ctypes.c_int64),
        ("token", ctypes.c_int64),
    )

    @classmethod
    def of(cls, tensor: Tensor | None) -> "_View":
        return cls() if tensor is None else cls(tensor.data_ptr(), *tensor.stride()[:3])


class _Task(ctypes.Structure):
    _fields_ = (
        *((name, _View) for name in ("q", "k", "v", "out", "bias")),
        ("logsum", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in ("batch", "heads", "queries", "keys", "channels")),
        ("scale", ctypes.c_float),
        ("half", ctypes.c_int),
        ("threads", ctypes.c_int),
    )


class _Back(ctypes.Structure):
    _fields_ = (("forward", _Task), *((name, _View) for name in ("given", "dq", "dk", "dv")))


def fits(q: Tensor, k: Tensor, v: Tensor) -> bool:
    """Whether the kernel takes these (batch, heads, tokens, d_k) tensors, and is there."""
    return (
        q.device.type == "cpu"
        and q.shape[-1] <= _most_channels(q.dtype)
        and q.dtype == k.dtype == v.dtype
        and q.dtype in (torch.float32, torch.bfloat16)
        and are_on()
        and _compiled() is not None
    )


def _most_channels(dtype: torch.dtype) -> int:
    wide = lanes() == 16 and dtype == torch.float32 and not torch.is_grad_enabled()
    return WIDE_CHANNELS if wide else CHANNELS


def describe() -> str:
    """Which attention this machine has, in a few words."""
    if _compiled() is not None:
        return f"compiled here for {torch.backends.cpu.get_cpu_capability()}"
    return f"torch's own: {reason() or 'it could not be compiled'}"


def _compiled() -> ctypes.CDLL | None:
    return library("attention", VERSION)


def _run(q: Tensor, k: Tensor, v: Tensor, scale: float, bias: Tensor | None) -> Tensor:
    return _forward(q, k, v, scale, bias, None)


def _forward(q: Tensor, k: Tensor, v: Tensor, scale: float, bias: Tensor | None, logsum: Tensor | None) -> Tensor:
    kernel = _compiled()
    assert kernel is not None
    out = _like(q, k, v, scale, bias)
    # Copies have to live until the call is over.
    q, k, v, bias = (*(dense(each) for each in (q, k, v)), _wide(bias, q, k))
    if kernel.attention(ctypes.byref(_task(q, k, v, out, scale, bias, logsum))):
        raise MemoryError("attention: no memory for a thread's keys and values")
    return out


def _task(
    q: Tensor, k: Tensor, v: Tensor, out: Tensor, scale: float, bias: Tensor | None, logsum: Tensor | None
) -> _Task:
    batch, heads, queries, channels = q.shape
    shape = (batch, heads, queries, k.shape[2], channels)
    threads = threads_for(math.prod(shape))
    views = (_View.of(each) for each in (q, k, v, out, bias))
    half = q.dtype == torch.bfloat16
    return _Task(*views, None if logsum is None else logsum.data_ptr(), *shape, scale, half, threads)


def _wide(bias: Tensor | None, q: Tensor, k: Tensor) -> Tensor | None:
    """In float32, one for each head, query and key."""
    return None if bias is None else dense(bias.to(torch.float32)).expand(*q.shape[:3], k.shape[2])


class AttentionFunction(torch.autograd.Function):
    """The kernel forward and backward; a bias has no gradient."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, scale: float, bias: Tensor | None) -> Tensor:
        logsum = q.new_empty(q.shape[:3], dtype=torch.float32)
        out = _forward(q, k, v, scale, bias, logsum)
        ctx.save_for_backward(q, k, v, out, logsum, bias)
        ctx.scale = scale
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor | None, ...]:
        kernel = _compiled()
        assert kernel is not None
        q, k, v, out, logsum, bias = ctx.saved_tensors
        gradients = [_like(each, k, v, ctx.scale, bias) for each in (q, k, v)]
        q, k, v, d_out, bias = (*(dense(each) for each in (q, k, v, d_out)), _wide(bias, q, k))
        task = _task(q, k, v, out, ctx.scale, bias, logsum)
        if kernel.attention_backward(ctypes.byref(_Back(task, *(_View.of(each) for each in (d_out, *gradients))))):
            raise MemoryError("attention: no memory for a thread's keys and values")
        return (*gradients, None, None)


def _like(q: Tensor, k: Tensor, v: Tensor, scale: float, bias: Tensor | None) -> Tensor:
    """Shapes alone."""
    batch, heads, queries, channels = q.shape
    return q.new_empty(batch, queries, heads, channels).transpose(1, 2)


_library = torch.library.Library("neuroute", "FRAGMENT")
_library.define("attention(Tensor q, Tensor k, Tensor v, float scale, Tensor? bias) -> Tensor")
_library.impl("attention", _run, "CPU")
_library.impl("attention", _like, "Meta")
fused: Callable[[Tensor, Tensor, Tensor, float, Tensor | None], Tensor] = torch.ops.neuroute.attention.default
