"""Branches that end in a linear layer, and ReZero: a learnt factor of them that starts at 0 (Bachlechner et al., 2021).

Without gradients a branch is added to the stream by the product that makes it, so that nothing is written twice.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from neuroute.networks.blocks.kernels import linear as kernel

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
    return project(F.relu(project(x, *up), inplace=True), *down, factor)


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


def parameters(linear: nn.Linear) -> kernel.Layer:
    """Weight and bias."""
    return linear.weight, linear.bias


def _scaled(layer: kernel.Layer, factor: Tensor | None) -> kernel.Layer:
    """Weight and bias, times the factor."""
    if factor is None:
        return layer
    weight, bias = layer
    return factor * weight, None if bias is None else factor * bias


def _adds_in_place(stream: Tensor, x: Tensor, linear: nn.Linear) -> bool:
    """Whether a product may be added to the stream as it is: in one precision, and with no gradient to keep it for."""
    alike = stream.dtype == x.dtype == linear.weight.dtype and not torch.is_autocast_enabled(stream.device.type)
    return alike and stream.device.type == "cpu" and stream.is_contiguous() and not torch.is_grad_enabled()
