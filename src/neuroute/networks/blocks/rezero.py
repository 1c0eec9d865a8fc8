"""ReZero: residual branches with a learnt factor that starts at 0 (Bachlechner et al., 2021)."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


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
    return F.linear(x, factor * linear.weight, None if linear.bias is None else factor * linear.bias)
