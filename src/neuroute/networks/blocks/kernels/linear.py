"""Linear layers and FFNs on a CPU, without gradients: `linear.c`; see `library`.

What a matrix product of torch's leaves to further passes is done while the sums are in registers: factors, biases,
ReLU, and adding to a stream.
"""

import contextlib
import ctypes
import math
from collections.abc import Iterator
from contextvars import ContextVar

import torch
from torch import Tensor, nn

from neuroute.networks.blocks.kernels.library import are_on, lanes, library, threads_for

VERSION = "10c6e7287ebb2071"  # see `library`
Layer = tuple[Tensor, Tensor | None]  # weight (outputs, inputs), bias (outputs,)
ROWS = 64  # fewer are not worth packing a layer's weights
FEW = 16  # fewer are not worth a call where these are packed
# Of a layer's (weight, bias, factor): its packed weights, and the two tensors, whose addresses are the key.
_PACKED: ContextVar[dict[tuple[int, int, float], tuple[Tensor, Layer]] | None] = ContextVar("packed", default=None)


class _Layer(ctypes.Structure):
    _fields_ = (
        ("weight", ctypes.c_void_p),
        ("bias", ctypes.c_void_p),
        ("inputs", ctypes.c_int64),
        ("outputs", ctypes.c_int64),
        ("factor", ctypes.c_float),
        ("packed", ctypes.c_void_p),
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


@contextlib.contextmanager
def packed_once() -> Iterator[None]:
    """Pack the weights of a network's layers once for all calls within, where nobody may change them."""
    token = _PACKED.set({}) if _PACKED.get() is None else None
    try:
        yield
    finally:
        if token:
            _PACKED.reset(token)


def fits(x: Tensor, *layers: Layer, stream: Tensor | None = None) -> bool:
    """Whether the kernel takes x (..., inputs), what it is added to and these layers, and is there."""
    return (
        not torch.is_grad_enabled()
        and are_on()
        and x.numel() >= (FEW if all(_panels_for(each) is not None for each in layers) else ROWS) * x.shape[-1]
        and all(_plain(each) for each in (x, x if stream is None else stream))
        and all(each is None or (each.dtype == torch.float32 and each.is_contiguous()) for of in layers for each in of)
        and not torch.is_autocast_enabled("cpu")
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
    first = _Layer(keys.data_ptr(), None, keys.shape[1], keys.shape[0], math.log2(math.e), None)
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
    scale = 1.0 if factor is None else float(factor)
    arguments = _Layer(weight.data_ptr(), where, weight.shape[1], weight.shape[0], scale, None)
    arguments.packed = _pack(arguments, layer)
    return arguments


def _pack(arguments: _Layer, layer: Layer) -> int | None:
    """The address of a layer's packed weights, if these are kept."""
    panels = _panels_for(layer)
    if panels is None:
        return None
    key = (arguments.weight, arguments.bias or 0, arguments.factor)
    if key not in panels:
        kernel = _compiled()
        assert kernel is not None
        kernel.floats.restype = ctypes.c_int64
        weights = torch.empty(kernel.floats(ctypes.byref(arguments)))
        kernel.pack(ctypes.c_void_p(weights.data_ptr()), ctypes.byref(arguments))
        panels[key] = weights, layer
    return panels[key][0].data_ptr()


def _panels_for(layer: Layer) -> dict[tuple[int, int, float], tuple[Tensor, Layer]] | None:
    """Where packed weights of a network's layers are kept; nowhere for those that are computed on the way."""
    return _PACKED.get() if all(each is None or type(each) is nn.Parameter for each in layer) else None


def _compiled() -> ctypes.CDLL | None:
    return library("linear", VERSION)
