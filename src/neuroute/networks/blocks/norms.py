"""What a residual is normalised by (MVMoE; Zhou et al., 2024, Table 5)."""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from neuroute.networks.blocks.all_digits import at_least_float32
from neuroute.networks.kernels import linear as kernels

# -- Linear layers and FFNs, with ReZero: a learnt factor of a branch that starts at 0 (Bachlechner et al., 2021)


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


NormName = Literal["instance", "batch", "batch-untracked", "layer", "rezero", "none"]


class Norm(nn.Module):
    def join(self, x: Tensor, branch: Tensor) -> Tensor:
        """x and what a branch adds to it, (batch, nodes, width) both, normalised -> same shape."""
        joined: Tensor = self(x + branch)
        return joined


class InstanceNorm(Norm):
    """Every channel of an instance has mean 0 and variance 1 over its nodes, then a learnt scale and shift.

    2 W parameters.  The variance is the biased one; nothing is remembered from training.
    """

    def __init__(self, width: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        """x (batch, nodes, width) -> same shape."""
        x = at_least_float32(x)
        centred = x - x.mean(dim=1, keepdim=True)
        variance = (centred * centred).mean(dim=1, keepdim=True)  # on a CPU var_mean takes ten times as long
        return torch.addcmul(self.bias, centred, self.weight * (variance + self.eps).rsqrt())


class BatchNorm(Norm):
    """Every channel over all nodes of all instances of the batch: 2 W parameters.

    What evaluation uses is remembered from training, unless it is not `tracked`.
    """

    def __init__(self, width: int, tracked: bool = True) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(width, track_running_stats=tracked)

    def forward(self, x: Tensor) -> Tensor:
        x = at_least_float32(x)
        normalised: Tensor = self.norm(x.flatten(0, 1))
        return normalised.view_as(x)


class UntrackedBatchNorm(BatchNorm):
    def __init__(self, width: int) -> None:
        super().__init__(width, tracked=False)


class LayerNorm(Norm):
    """Every node over its channels: 2 W parameters."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        x = at_least_float32(x)
        return F.layer_norm(x, x.shape[-1:], self.weight, self.bias)


class ReZero(Norm):
    """x + alpha branch, alpha 0 at first: 1 parameter."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.alpha = alpha()

    def join(self, x: Tensor, branch: Tensor) -> Tensor:
        return torch.addcmul(x, branch, self.alpha)


class NoNorm(Norm):
    """Nothing: no parameters."""

    def __init__(self, width: int) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        return x


NORMS: dict[NormName, type[Norm]] = {
    "instance": InstanceNorm,
    "batch": BatchNorm,
    "batch-untracked": UntrackedBatchNorm,
    "layer": LayerNorm,
    "rezero": ReZero,
    "none": NoNorm,
}
