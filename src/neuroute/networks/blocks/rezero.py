"""Branches that end in a linear layer, and ReZero: a learnt factor of them that starts at 0 (Bachlechner et al., 2021).

Without gradients a branch is added to the stream by the product that makes it, so that nothing is written twice.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

CPU_FLOATS = 1 << 18  # of an FFN's hidden layer at a time: what stays in a core's cache


def alpha() -> nn.Parameter:
    """The factor of one branch."""
    return nn.Parameter(torch.zeros(()))


def scaled_linear(x: Tensor, linear: nn.Linear, factor: Tensor | None) -> Tensor:
    """factor * linear(x), or linear(x) without a factor.

    The factor multiplies the weight (width^2 products) instead of the output (tokens * width).
    """
    if factor is None:
        out: Tensor = linear(x)
        return out
    return F.linear(x, *_scaled(linear, factor))


def add_linear(stream: Tensor, x: Tensor, linear: nn.Linear, factor: Tensor | None) -> Tensor:
    """stream + factor * linear(x), of stream (..., width)."""
    if not _adds_in_place(stream, x, linear):
        return stream + scaled_linear(x, linear, factor)
    weight, bias = _scaled(linear, factor)
    out = stream.clone() if bias is None else stream + bias
    out.view(-1, out.shape[-1]).addmm_(x.flatten(0, -2), weight.t())
    return out


def add_feed_forward(stream: Tensor, up: nn.Linear, down: nn.Linear, factor: Tensor | None) -> Tensor:
    """stream + factor * down(relu(up(stream))), of stream (..., width), which nobody else may need: it is overwritten
    where there are no gradients.
    """
    if not _adds_in_place(stream, stream, up):
        return stream + scaled_linear(F.relu(up(stream), inplace=True), down, factor)
    weight, bias = _scaled(down, factor)
    for part in stream.view(-1, stream.shape[-1]).split(max(1, CPU_FLOATS // up.out_features)):
        hidden = F.relu(up(part), inplace=True)
        part.add_(bias).addmm_(hidden, weight.t())
    return stream


def _scaled(linear: nn.Linear, factor: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Weight and bias, times the factor."""
    if factor is None:
        return linear.weight, linear.bias
    return factor * linear.weight, None if linear.bias is None else factor * linear.bias


def _adds_in_place(stream: Tensor, x: Tensor, linear: nn.Linear) -> bool:
    """Whether a product may be added to the stream as it is: in one precision, and with no gradient to keep it for."""
    alike = stream.dtype == x.dtype == linear.weight.dtype and not torch.is_autocast_enabled(stream.device.type)
    return alike and stream.device.type == "cpu" and stream.is_contiguous() and not torch.is_grad_enabled()
