"""Linear layers and FFNs on a CPU, without gradients: `linear.c`; see `library`.

What a matrix product of torch's leaves to further passes is done while the sums are in registers: factors, biases,
ReLU, and adding to a stream.
"""

import ctypes

import torch
from torch import Tensor

from neuroute.networks.blocks.kernels.library import are_on, library, threads_for

VERSION = "10a8093d5b920fff"  # see `library`
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


def _run(x: Tensor, stream: Tensor | None, out: Tensor, first: _Layer, second: _Layer) -> Tensor:
    kernel = _compiled()
    assert kernel is not None
    rows = x.numel() // first.inputs
    added = None if stream is None else stream.data_ptr()
    threads = threads_for(rows * first.inputs * first.outputs)
    if kernel.linear(ctypes.byref(_Task(x.data_ptr(), added, out.data_ptr(), rows, first, second, threads))):
        raise MemoryError("linear: no memory for a layer's weights")
    return out


def _layer(layer: Layer, factor: Tensor | None) -> _Layer:
    weight, bias = layer
    where = None if bias is None else bias.data_ptr()
    return _Layer(weight.data_ptr(), where, weight.shape[1], weight.shape[0], 1.0 if factor is None else float(factor))


def _compiled() -> ctypes.CDLL | None:
    return library("linear", VERSION)
