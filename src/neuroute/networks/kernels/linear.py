"""Linear layers and FFNs as operators: on a CPU in one pass, forward and backward (`linear.c`).

What a matrix product of torch's leaves to further passes is done while the sums are in registers: factors, biases,
ReLU and its gradient, softmaxes, and adding to a stream.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from neuroute.networks.kernels.library import call, lanes, operator, runs, threads_for

Layer = tuple[Tensor, Tensor | None]  # weight (outputs, inputs), bias (outputs,)
ROWS = 64  # fewer are not worth packing a layer's weights
PLANNED, PADDED = 32, range(128, 1024)  # such counts of rows are padded to multiples in bf16


def linear(x: Tensor, layer: Layer, factor: Tensor | None = None, stream: Tensor | None = None) -> Tensor:
    """stream + factor (x W^T + b), both left out if None: x (..., inputs) -> (..., outputs)."""
    if _runs(x, *layer, factor, stream):
        out: Tensor = _linear(x, *layer, factor, stream)
        return out
    if _learns(x, *layer, factor, stream):
        learnt: Tensor = LinearFunction.apply(x, stream, *_scaled(layer, factor))  # type: ignore[no-untyped-call]
        return learnt
    out = _product(x, *_scaled(layer, factor))
    return out if stream is None else stream + out


def feed_forward(
    x: Tensor, up: Layer, down: Layer, factor: Tensor | None = None, stream: Tensor | None = None
) -> Tensor:
    """stream + factor down(relu(up(x))): x (..., inputs) -> (..., outputs)."""
    if _runs(x, *up, *down, factor, stream):
        out: Tensor = _feed_forward(x, *up, *down, factor, stream)
        return out
    if _learns(x, *up, *down, factor, stream):
        learnt: Tensor = FeedForwardFunction.apply(x, stream, *up, *_scaled(down, factor))  # type: ignore[no-untyped-call]
        return learnt
    out = _product(F.relu(_product(x, *up)), *_scaled(down, factor))
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


def _product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x W^T + b by torch, which for bf16 on a CPU plans each number of rows, and forgets plans beyond a thousand.

    Each decision of a path has a number of its own.
    """
    if x.device.type != "cpu" or torch.is_grad_enabled() or not torch.is_autocast_enabled("cpu"):
        return F.linear(x, weight, bias)
    count = x.numel() // x.shape[-1]
    beyond = -count % PLANNED if count in PADDED else 0
    if not beyond:
        return F.linear(x, weight, bias)
    rows = x.reshape(count, -1)
    return F.linear(F.pad(rows, (0, 0, 0, beyond)), weight, bias)[:count].view(*x.shape[:-1], -1)


class LinearFunction(torch.autograd.Function):
    """stream + x W^T + b."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, stream: Tensor | None, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        out = _like(x, weight)
        _run(x, stream, out, (weight, bias, None))
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, given: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        of_x, of_stream, of_weight, of_bias = ctx.needs_input_grad
        d_x = torch.empty_like(x) if of_x else None
        d_weight = torch.zeros_like(weight) if of_weight else None
        d_bias = weight.new_zeros(len(weight)) if of_bias else None
        _learn(given, (x, weight, d_x, d_weight, d_bias))
        return d_x, given if of_stream else None, d_weight, d_bias


class FeedForwardFunction(torch.autograd.Function):
    """stream + down(relu(up(x))).  The gradient of the hidden layer is never there as a whole."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        stream: Tensor | None,
        up: Tensor,
        up_bias: Tensor | None,
        down: Tensor,
        down_bias: Tensor | None,
    ) -> Tensor:
        hidden, out = _like(x, up), _like(x, down)
        _run(x, stream, out, (up, up_bias, None), (down, down_bias, None), hidden=hidden)
        ctx.save_for_backward(x, hidden, up, down)
        ctx.adds_to_itself = stream is x
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, given: Tensor) -> tuple[Tensor | None, ...]:
        x, hidden, up, down = ctx.saved_tensors
        of_x, of_stream, *of_layers = ctx.needs_input_grad
        d_x = torch.empty_like(x) if of_x else None
        grown = (torch.zeros_like(up), up.new_zeros(len(up)), torch.zeros_like(down), up.new_zeros(len(down)))
        d_up, d_up_bias, d_down, d_down_bias = (
            each if wanted else None for each, wanted in zip(grown, of_layers, strict=True)
        )
        given = given.contiguous()
        stream = given if ctx.adds_to_itself else None
        _learn(given, (hidden, down, None, d_down, d_down_bias), (x, up, d_x, d_up, d_up_bias), stream)
        return d_x, given if of_stream and stream is None else None, d_up, d_up_bias, d_down, d_down_bias


class GroupedFunction(torch.autograd.Function):
    """Rows through the layer of their group, or the FFN: the first rows[0] of them through the first one, and so on."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, rows: list[int], *layers: Tensor) -> Tensor:
        """layers: weights (m, outputs, inputs) and biases (m, outputs), of one layer or of two."""
        *up, down, _ = layers
        hidden = x.new_empty(len(x), up[0].shape[1]) if up else None
        out = x.new_empty(len(x), down.shape[1])
        for part, to, between, own in _groups(rows, (x, out, hidden), layers):
            _run(part, None, to, (*own[:2], None), (*own[2:], None) if up else _NONE, hidden=between)
        ctx.save_for_backward(x, hidden, *layers)
        ctx.rows = rows
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, given: Tensor) -> tuple[Tensor | None, ...]:
        x, hidden, *layers = ctx.saved_tensors
        d_x, grown = torch.empty_like(x), [torch.zeros_like(each) for each in layers]
        arrays = (given.contiguous(), x, d_x, hidden)
        for gradient, part, to, between, own in _groups(ctx.rows, arrays, (*layers, *grown)):
            if between is None:
                weight, _, *of = own
                _learn(gradient, (part, weight, to, *of))
            else:
                up, _, down, _, d_up, d_up_bias, *of = own
                _learn(gradient, (between, down, None, *of), (part, up, to, d_up, d_up_bias))
        return d_x, None, *grown


def _groups(rows: list[int], arrays: tuple[Tensor | None, ...], layers: Sequence[Tensor]) -> Iterator[tuple[Any, ...]]:
    """Of each group that has rows these of the arrays, and what is its own of the layers."""
    first = 0
    for group, count in enumerate(rows):
        if count:
            parts = (None if each is None else each[first : first + count] for each in arrays)
            yield *parts, [each[group] for each in layers]
        first += count


def grouped(x: Tensor, rows: list[int], *layers: Tensor) -> Tensor:
    """As `GroupedFunction`, with gradients or without."""
    if _learns(x, *layers):
        out: Tensor = GroupedFunction.apply(x, rows, *layers)  # type: ignore[no-untyped-call]
        return out
    every = zip(x.split(rows), *(each.unbind() for each in layers), strict=True)
    if len(layers) == 2:
        return torch.cat([linear(part, (weight, bias)) for part, weight, bias in every])
    # One after the other: what stands between two layers stays in the cache.
    return torch.cat([feed_forward(part, (up, a), (down, b)) for part, up, a, down, b in every])


_Step = tuple[Tensor | None, ...]  # what went in, weight, and the gradients of both and of a bias


def _learn(given: Tensor, first: _Step, second: _Step = (None,) * 5, stream: Tensor | None = None) -> None:
    """`linear_backward` of linear.c."""
    steps: list[Tensor | int | None] = []
    for gradient, added, (x, weight, d_x, *grown) in ((given.contiguous(), None, first), (None, stream, second)):
        weight = None if weight is None else weight.contiguous()
        shape = (0, 0) if weight is None else reversed(weight.shape)
        steps += [gradient, x, weight, added, d_x, *grown, *shape]
    rows = given.numel() // given.shape[-1]
    call("linear_backward", rows, threads_for(given.numel() * given.shape[-1]), *steps)


def _runs(x: Tensor, *more: Tensor | None) -> bool:
    """Whether C computes on x (..., inputs), contiguous, layers and what these are added to, without gradients."""
    return not torch.is_grad_enabled() and _is_plain(x, *more)


def _learns(x: Tensor, *more: Tensor | None) -> bool:
    """As `_runs`, with gradients."""
    return torch.is_grad_enabled() and _is_plain(x, *more)


def _is_plain(x: Tensor, *more: Tensor | None) -> bool:
    return (
        x.numel() >= ROWS * x.shape[-1]
        and x.is_contiguous()
        and not torch.is_autocast_enabled("cpu")
        and runs(x, *more)
    )


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
_NONE: _Part = (None, None, None)


def _run(
    x: Tensor,
    stream: Tensor | None,
    out: Tensor,
    first: _Part,
    second: _Part = _NONE,
    group: int = 0,
    hidden: Tensor | None = None,
) -> None:
    """`linear` of linear.c."""
    layers: list[Tensor | int | None] = []
    for weight, bias, factor in (first, second):
        weight = weight if weight is None else weight.contiguous()
        layers += [weight, bias, *(reversed(weight.shape) if weight is not None else (0, 0)), factor]
    inputs = x.shape[-1]
    threads = threads_for(x.numel() * len(first[0]))  # type: ignore[arg-type]
    stream = stream if stream is None else stream.contiguous()
    call("linear", x, stream, out, hidden, x.numel() // inputs, *layers, group, threads)


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
