"""Branches that end in a linear layer, and ReZero: a learnt factor of them that starts at 0 (Bachlechner et al., 2021).

Without gradients a branch is added to the stream by the product that makes it, so that nothing is written twice.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from neuroute.networks.blocks.kernels import linear as kernel
from neuroute.networks.blocks.kernels.library import are_on

CPU_FLOATS = 1 << 18  # of an FFN's hidden layer at a time: what stays in a core's cache


def alpha() -> nn.Parameter:
    """The factor of one branch."""
    return nn.Parameter(torch.zeros(()))


def project(x: Tensor, weight: Tensor, bias: Tensor | None, factor: Tensor | None = None) -> Tensor:
    """factor * (x W^T + b), or without a factor.

    The factor multiplies the weight (width^2 products) instead of the output (tokens * width).
    """
    if kernel.fits(x, (weight, bias)):
        return kernel.linear(x, (weight, bias), factor)
    return F.linear(x, *_scaled((weight, bias), factor))


def scaled_linear(x: Tensor, linear: nn.Linear, factor: Tensor | None = None) -> Tensor:
    """factor * linear(x), or linear(x) without a factor."""
    return project(x, linear.weight, linear.bias, factor)


def feed_forward(x: Tensor, up: kernel.Layer, down: kernel.Layer, factor: Tensor | None = None) -> Tensor:
    """factor * down(relu(up(x)))"""
    if kernel.fits(x, up, down):
        return kernel.feed_forward(x, up, down, factor)
    down = _scaled(down, factor)
    if _learns_in_parts(x, up, down):
        out: Tensor = FeedForwardFunction.apply(x.flatten(0, -2), *up, *down)  # type: ignore[no-untyped-call]
        return out.view(*x.shape[:-1], -1)
    # In place of a view, as products of (batch, tokens, width) are, gradients would be copied three times.
    return project(F.relu(project(x, *up), inplace=not torch.is_grad_enabled()), *down)


class FeedForwardFunction(torch.autograd.Function):
    """down(relu(up(x))) of x (rows, in).  The gradient of the hidden layer is never there as a whole."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, up: Tensor, up_bias: Tensor, down: Tensor, down_bias: Tensor) -> Tensor:
        hidden = project(x, up, up_bias).relu_()
        ctx.save_for_backward(x, hidden, up, down)
        return project(hidden, down, down_bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor, ...]:
        x, hidden, up, down = ctx.saved_tensors
        size = max(1, CPU_FLOATS // len(up))
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


def add_linear(stream: Tensor, x: Tensor, linear: nn.Linear, factor: Tensor | None) -> Tensor:
    """stream + factor * linear(x), of stream (..., width)."""
    layer = parameters(linear)
    if kernel.fits(x, layer, stream=stream):
        return kernel.linear(x, layer, factor, stream)
    if not _adds_in_place(stream, x, linear):
        return stream + scaled_linear(x, linear, factor)
    weight, bias = _scaled(layer, factor)
    out = stream.clone() if bias is None else stream + bias
    out.view(-1, out.shape[-1]).addmm_(x.flatten(0, -2), weight.t())
    return out


def add_feed_forward(stream: Tensor, up: nn.Linear, down: nn.Linear, factor: Tensor | None) -> Tensor:
    """stream + factor * down(relu(up(stream))), of stream (..., width), which nobody else may need: it is overwritten
    where there are no gradients.
    """
    first, second = parameters(up), parameters(down)
    if kernel.fits(stream, first, second):
        return kernel.feed_forward(stream, first, second, factor, stream)
    if not _adds_in_place(stream, stream, up):
        return stream + feed_forward(stream, first, second, factor)
    weight, bias = _scaled(second, factor)
    for part in stream.view(-1, stream.shape[-1]).split(max(1, CPU_FLOATS // up.out_features)):
        hidden = F.relu(up(part), inplace=True)
        part.add_(bias).addmm_(hidden, weight.t())
    return stream


def score_feed_forward(
    stream: Tensor, up: nn.Linear, down: nn.Linear, factor: Tensor | None, head: nn.Linear, nodes: slice = slice(None)
) -> Tensor:
    """head((stream + factor * down(relu(up(stream))))[:, nodes]) of stream (batch, tokens, width); may overwrite it.

    A linear `head` of few outputs and `down` are one layer where there are no gradients: H W products less for a row,
    H hidden and W channels.
    """
    first, second = parameters(up), parameters(down)
    if not kernel.fits(stream, first, second, parameters(head)):
        scores: Tensor = head(add_feed_forward(stream, up, down, factor)[:, nodes])
        return scores
    stream = stream[:, nodes].contiguous()
    bias = None if down.bias is None else head.weight @ down.bias
    return kernel.feed_forward(stream, first, (head.weight @ down.weight, bias), factor, head(stream))


def parameters(linear: nn.Linear) -> kernel.Layer:
    """Weight and bias."""
    return linear.weight, linear.bias


def _scaled(layer: kernel.Layer, factor: Tensor | None) -> kernel.Layer:
    """Weight and bias, times the factor."""
    if factor is None:
        return layer
    weight, bias = layer
    return factor * weight, None if bias is None else factor * bias


def _learns_in_parts(x: Tensor, up: kernel.Layer, down: kernel.Layer) -> bool:
    """Whether `FeedForwardFunction` takes them: on a CPU, in one precision."""
    alike = all(each is not None and each.dtype == x.dtype for each in (*up, *down))
    plain = type(x) is Tensor and x.device.type == "cpu" and not torch.is_autocast_enabled("cpu")
    return torch.is_grad_enabled() and plain and alike and x.numel() > 0 and are_on()


def _adds_in_place(stream: Tensor, x: Tensor, linear: nn.Linear) -> bool:
    """Whether a product may be added to the stream as it is: in one precision, and with no gradient to keep it for."""
    alike = stream.dtype == x.dtype == linear.weight.dtype and not torch.is_autocast_enabled(stream.device.type)
    return alike and stream.device.type == "cpu" and stream.is_contiguous() and not torch.is_grad_enabled()
