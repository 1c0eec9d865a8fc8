"""Linear layers and FFNs as operators: on a CPU and without gradients in one pass (`linear.c`).

What a matrix product of torch's leaves to further passes is done while the sums are in registers: factors, biases,
ReLU, softmaxes, and adding to a stream.
"""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from neuroute.networks.kernels.library import call, lanes, operator, runs, threads_for

Layer = tuple[Tensor, Tensor | None]  # weight (outputs, inputs), bias (outputs,)
ROWS = 64  # fewer are not worth packing a layer's weights
HIDDEN = 1 << 18  # numbers of an FFN's hidden layer whose gradients are there at a time: what a core's cache holds


def linear(x: Tensor, layer: Layer, factor: Tensor | None = None, stream: Tensor | None = None) -> Tensor:
    """stream + factor (x W^T + b), both left out if None: x (..., inputs) -> (..., outputs)."""
    if _runs(x, *layer, factor, stream):
        out: Tensor = _linear(x, *layer, factor, stream)
        return out
    out = F.linear(x, *_scaled(layer, factor))
    return out if stream is None else stream + out


def feed_forward(
    x: Tensor, up: Layer, down: Layer, factor: Tensor | None = None, stream: Tensor | None = None
) -> Tensor:
    """stream + factor down(relu(up(x))): x (..., inputs) -> (..., outputs)."""
    if _runs(x, *up, *down, factor, stream):
        out: Tensor = _feed_forward(x, *up, *down, factor, stream)
        return out
    down = _scaled(down, factor)
    if torch.is_grad_enabled() and x.numel() and _is_plain(x, *up, *down):
        out = FeedForwardFunction.apply(x.flatten(0, -2), *up, *down)  # type: ignore[no-untyped-call]
        out = out.view(*x.shape[:-1], -1)
    else:
        out = F.linear(F.relu(F.linear(x, *up)), *down)
    return out if stream is None else stream + out


def scored_feed_forward(
    x: Tensor, up: Layer, down: Layer, factor: Tensor | None, head: nn.Linear, nodes: slice = slice(None)
) -> Tensor:
    """head((x + factor down(relu(up(x))))[:, nodes]) of x (batch, tokens, width).

    Where it is compiled, a head of few outputs and `down` become one layer: fewer products.
    """
    if not _runs(x, *up, *down, factor):
        out: Tensor = head(feed_forward(x, up, down, factor, x)[:, nodes])
        return out
    x = x[:, nodes].contiguous()
    bias = None if down[1] is None else head.weight @ down[1]
    return feed_forward(x, up, (head.weight @ down[0], bias), factor, head(x))


def look_up(stream: Tensor, keys: Tensor, values: Tensor, bias: Tensor) -> Tensor:
    """stream + the sum over heads of softmax(stream keys^T) values + bias.

    stream (batch, tokens, width), keys and values (batch, heads, q, width), bias (width,) -> like the stream.
    """
    if stream.shape[1] >= ROWS and _runs(stream, keys, values, bias):
        out: Tensor = _look_up(stream, keys, values, bias)
        return out
    scores = stream @ keys.flatten(1, 2).transpose(1, 2)  # (batch, tokens, heads * q)
    shares = torch.softmax(scores.unflatten(2, keys.shape[1:3]), dim=-1)
    return stream + torch.baddbmm(bias, shares.flatten(2), values.flatten(1, 2))


class FeedForwardFunction(torch.autograd.Function):
    """down(relu(up(x))) of x (rows, in).  The gradient of the hidden layer is never there as a whole."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, up: Tensor, up_bias: Tensor, down: Tensor, down_bias: Tensor) -> Tensor:
        hidden = F.linear(x, up, up_bias).relu_()
        ctx.save_for_backward(x, hidden, up, down)
        return F.linear(hidden, down, down_bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor, ...]:
        x, hidden, up, down = ctx.saved_tensors
        size = max(1, HIDDEN // len(up))
        d_x, d_up, d_down = torch.empty_like(x), torch.zeros_like(up), torch.zeros_like(down)
        d_bias, buffer = up.new_zeros(len(up)), hidden.new_empty(min(size, len(hidden)), len(up))
        for d_of, of, d_from, part in zip(*(each.split(size) for each in (d_out, hidden, d_x, x)), strict=True):
            d_hidden = torch.mm(d_of, down, out=buffer[: len(of)])
            torch.ops.aten.threshold_backward.grad_input(d_hidden, of, 0, grad_input=d_hidden)
            torch.mm(d_hidden, up, out=d_from)
            d_up.addmm_(d_hidden.t(), part)
            d_down.addmm_(d_of.t(), of)
            d_bias += d_hidden.sum(dim=0)
        return d_x, d_up, d_bias, d_down, d_out.sum(dim=0)


def _runs(x: Tensor, *more: Tensor | None) -> bool:
    """Whether C computes on x (..., inputs), contiguous, layers and what these are added to."""
    return (
        not torch.is_grad_enabled()
        and x.numel() >= ROWS * x.shape[-1]
        and x.is_contiguous()
        and not torch.is_autocast_enabled("cpu")
        and runs(x, *more)
    )


def _is_plain(x: Tensor, *layers: Tensor | None) -> bool:
    """Whether `FeedForwardFunction` takes them: on a CPU, in one precision."""
    alike = all(each is not None and each.dtype == x.dtype for each in layers)
    return alike and not torch.is_autocast_enabled("cpu") and runs(x, dtypes=(torch.float32, torch.float64))


def _scaled(layer: Layer, factor: Tensor | None) -> Layer:
    """The factor multiplies the weight (inputs * outputs products) instead of the output (rows * outputs)."""
    if factor is None:
        return layer
    weight, bias = layer
    return factor * weight, None if bias is None else factor * bias


def _run_linear(x: Tensor, weight: Tensor, bias: Tensor | None, factor: Tensor | None, stream: Tensor | None) -> Tensor:
    out = _like(x, weight)
    _run(x, stream, out, (weight, bias, factor))
    return out


def _run_feed_forward(
    x: Tensor,
    up: Tensor,
    up_bias: Tensor | None,
    down: Tensor,
    down_bias: Tensor | None,
    factor: Tensor | None,
    stream: Tensor | None,
) -> Tensor:
    out = _like(x, down)
    _run(x, stream, out, (up, up_bias, None), (down, down_bias, factor))
    return out


def _run_look_up(stream: Tensor, keys: Tensor, values: Tensor, bias: Tensor) -> Tensor:
    out, beyond = torch.empty_like(stream), -keys.shape[2] % lanes()
    hidden = F.pad(keys.new_zeros(keys.shape[1:3]), (0, beyond), value=-math.inf).flatten()
    keys, values = (F.pad(each, (0, 0, 0, beyond)) for each in (keys, values))  # C's softmaxes are of whole vectors
    rows, group = math.log2(math.e) * keys.flatten(1, 2), keys.shape[2]  # and of base 2
    for x, to, k, v in zip(stream, out, rows, values.flatten(1, 2).transpose(1, 2), strict=True):
        _run(x, x, to, (k, hidden, None), (v, bias, None), group)
    return out


_Part = tuple[Tensor | None, Tensor | None, Tensor | None]  # weight, bias, factor


def _run(
    x: Tensor, stream: Tensor | None, out: Tensor, first: _Part, second: _Part = (None, None, None), group: int = 0
) -> None:
    """`linear` of linear.c."""
    layers: list[Tensor | int | None] = []
    for weight, bias, factor in (first, second):
        weight = weight if weight is None else weight.contiguous()
        layers += [weight, bias, *(reversed(weight.shape) if weight is not None else (0, 0)), factor]
    inputs = x.shape[-1]
    threads = threads_for(x.numel() * len(first[0]))  # type: ignore[arg-type]
    stream = stream if stream is None else stream.contiguous()
    call("linear", x, stream, out, x.numel() // inputs, *layers, group, threads)


def _like(x: Tensor, weight: Tensor) -> Tensor:
    return x.new_empty(*x.shape[:-1], len(weight))


_linear = operator(
    "linear(Tensor x, Tensor weight, Tensor? bias, Tensor? factor, Tensor? stream) -> Tensor",
    _run_linear,
    lambda x, weight, *_: _like(x, weight),
)
_feed_forward = operator(
    "feed_forward(Tensor x, Tensor up, Tensor? up_bias, Tensor down, Tensor? down_bias, Tensor? factor, Tensor? stream)"
    " -> Tensor",
    _run_feed_forward,
    lambda x, up, up_bias, down, *_: _like(x, down),
)
_look_up = operator(
    "look_up(Tensor stream, Tensor keys, Tensor values, Tensor bias) -> Tensor",
    _run_look_up,
    lambda stream, *_: torch.empty_like(stream),
)
