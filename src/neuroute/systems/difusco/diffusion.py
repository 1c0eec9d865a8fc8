"""Categorical diffusion of edges: in the tour, or not (Austin et al., 2021; Sun and Yang, 2023).

A step of noise keeps an edge as it is with probability 1 - beta / 2.  Of many steps a share c, the product of
1 - beta, remains: Qbar = c I + (1 - c) / 2 11^T, both directions alike.
"""

import math

import torch
from torch import Tensor

STEPS = 1000
BETAS = 1e-4, 2e-2  # of the first and of the last step, linear between them


def remaining() -> Tensor:
    """c of 0, 1, ..., STEPS steps: (STEPS + 1,) float64, from 1 to nearly 0."""
    betas = torch.linspace(*BETAS, STEPS, dtype=torch.float64)
    return torch.cat([torch.ones(1, dtype=torch.float64), torch.cumprod(1 - betas, dim=0)])


def cosine_steps(count: int) -> list[int]:
    """The times (count + 1,) that so many steps of inference pass, from STEPS to 0: densest near 0."""
    return [STEPS - math.floor(STEPS * math.sin(i * math.pi / (2 * count))) for i in range(count + 1)]


def add_noise(edges: Tensor, c: Tensor, uniform: Tensor) -> Tensor:
    """edges (batch, ...) of 0 and 1 after noise that leaves c (batch,); uniform: draws, of the shape of edges."""
    c = c.view(-1, *[1] * (edges.dim() - 1))
    return (uniform < c * edges + (1 - c) / 2).to(edges)


def posterior(likely: Tensor, noisy: Tensor, c_before: float, c_now: float) -> Tensor:
    """How likely edges are 1 at an earlier time, given `noisy` ones (0 or 1) now, and how `likely` clean ones are 1.

    By Bayes' rule for a clean edge of 0 and of 1, and the mean of the two.  c_before, c_now: what remains then and now.
    """
    towards_one = (2 * noisy.to(likely) - 1) * c_now / c_before

    def earlier(clean: float) -> Tensor:
        one, none = ((1 + sign * c_before * (2 * clean - 1)) / 2 for sign in (1, -1))  # at the earlier time
        from_one, from_none = one * (1 + towards_one), none * (1 - towards_one)  # to what it is now
        return from_one / (from_one + from_none)

    return likely * earlier(1.0) + (1 - likely) * earlier(0.0)
