"""Linear layers and FFNs on a CPU, without gradients: `linear.c`; see `library`.

What a matrix product of torch's leaves to further passes is done while the sums are in registers: factors, biases,
ReLU, and adding to a stream.
"""

import ctypes
import math

import torch
from torch import Tensor

from neuroute.networks.blocks.kernels.library import are_on, lanes, library, threads_for

VERSION = "952a653ec270a9b6"  # see `library`
Layer = tuple[Tensor, Tensor | None]  # weight (outputs, inputs), bias (outputs,)
ROWS = 64  # fewer are not worth packing a layer's weights


class _Layer(ctypes.Structure):
    _fields_ = (
        ("weight", ctypes.c_void_p),
        ("bias", ctypes.c_void_p),
        ("inputs", ctypes.c_int64),
        ("outputs", ctypes.c_int64),
        ("factor", ctypes.c_float),
    )


class _Task(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("x", "stream", "out")),
        ("rows", ctypes.c_int64),
        ("first", _Layer),
        ("second", _Layer),
        ("group", ctypes.c_int64),
        ("threads", ctypes.c_int),
    )


def fits(x: Tensor, *layers: Layer, stream: Tensor | None = None) -> bool:
    """Whether the kernel takes x (..., inputs), what it is added to and these layers, and is there."""
    return (
        not torch.is_grad_enabled()
        and x.numel() >= ROWS * x.shape[-1]
        and all(_plain(each) for each in (x, x if stream is None else stream))
        and all(each is None or (each.dtype == torch.float32 and each.is_contiguous()) for of in layers for each in of)
        and not torch.is_autocast_enabled("cpu")
        and are_on()
        and _compiled() is not None
    )


def _plain(x: Tensor) -> bool:
    return type(x) is Tensor and x.dtype == torch.float32 and x.device.type == "cpu" and x.is_contiguous()


def linear(x: Tensor, layer: Layer, factor: Tensor | None = None, stream: Tensor | None = None) -> Tensor:
    """stream + factor (x W^T + b): x (..., inputs) -> (..., outputs), anew."""
    out = x.new_empty(*x.shape[:-1], len(layer[0])) if stream is None else torch.empty_like(stream)
    return _run(x, stream, out, _layer(layer, factor), _Layer())


def feed_forward(
    x: Tensor, up: Layer, down: Layer, factor: Tensor | None = None, stream: Tensor | None = None
) -> Tensor:
    """stream + factor down(relu(up(x))): anew, or in place of the stream, which may be x."""
    out = x.new_empty(*x.shape[:-1], len(down[0])) if stream is None else stream
    return _run(x, stream, out, _layer(up, None), _layer(down, factor))


def look_up(stream: Tensor, keys: Tensor, values: Layer, group: int) -> None:
    """stream += values(softmax(stream keys^T)) of stream (..., width), in place; a softmax for each `group` keys.

    keys (n, width), values' weight (width, n); group: see `fits_groups`.
    """
    first = _Layer(keys.data_ptr(), None, keys.shape[1], keys.shape[0], math.log2(math.e))
    _run(stream, stream, stream, first, _layer(values, None), group)


def fits_groups(group: int) -> bool:
    """Whether softmaxes of so many keys fill whole vectors."""
    return group % lanes() == 0


def _run(x: Tensor, stream: Tensor | None, out: Tensor, first: _Layer, second: _Layer, group: int = 0) -> Tensor:
    kernel = _compiled()
    assert kernel is not None
    rows = x.numel() // first.inputs
    added = None if stream is None else stream.data_ptr()
    threads = threads_for(rows * first.inputs * first.outputs)
    if kernel.linear(ctypes.byref(_Task(x.data_ptr(), added, out.data_ptr(), rows, first, second, group, threads))):
        raise MemoryError("linear: no memory for a layer's weights")
    return out


def _layer(layer: Layer, factor: Tensor | None) -> _Layer:
    weight, bias = layer
    where = None if bias is None else bias.data_ptr()
    return _Layer(weight.data_ptr(), where, weight.shape[1], weight.shape[0], 1.0 if factor is None else float(factor))


def _compiled() -> ctypes.CDLL | None:
    return library("linear", VERSION)
