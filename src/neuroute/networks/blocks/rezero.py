"""Linear layers and FFNs, with ReZero: a learnt factor of a branch that starts at 0 (Bachlechner et al., 2021)."""

import torch
from torch import Tensor, nn

from neuroute.kernels import linear as kernels


def alpha() -> nn.Parameter:
    """The factor of one branch."""
    return nn.Parameter(torch.zeros(()))


def scaled_linear(x: Tensor, layer: nn.Linear, factor: Tensor | None = None, stream: Tensor | None = None) -> Tensor:
    """stream + factor * layer(x); without a stream or factor, these are left out."""
    return kernels.linear(x, parameters(layer), factor, stream)


def feed_forward(
    x: Tensor, up: nn.Linear, down: nn.Linear, factor: Tensor | None = None, stream: Tensor | None = None
) -> Tensor:
    """stream + factor * down(relu(up(x))), as `scaled_linear`."""
    return kernels.feed_forward(x, parameters(up), parameters(down), factor, stream)


def scored_feed_forward(
    x: Tensor, up: nn.Linear, down: nn.Linear, factor: Tensor | None, head: nn.Linear, nodes: slice
) -> Tensor:
    """head((x + factor * down(relu(up(x))))[:, nodes]) of x (batch, tokens, width)."""
    return kernels.scored_feed_forward(x, parameters(up), parameters(down), factor, head, nodes)


def parameters(layer: nn.Linear) -> kernels.Layer:
    """Weight and bias."""
    return layer.weight, layer.bias
