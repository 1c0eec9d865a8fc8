"""A small policy that sees the nearest nodes of where a tour is, in polar coordinates (ELG; Gao et al., 2024)."""

import math

import torch
from torch import Tensor, nn

from neuroute.networks.blocks.all_digits import in_all_digits


def rank_codes(ranks: int, width: int) -> Tensor:
    """Sinusoidal codes (ranks, width) of the ranks 0, 1, ...: the sines of all frequencies, then the cosines.

    Frequencies are 10000^(-i / (width / 2 - 1)) for i = 0..width/2-1, as in the published code.
    """
    half = width // 2
    frequencies = 10_000 ** (-torch.arange(half, dtype=torch.float64) / (half - 1))
    angles = torch.arange(ranks, dtype=torch.float64)[:, None] * frequencies
    return torch.cat([angles.sin(), angles.cos()], dim=-1).to(torch.get_default_dtype())


class LocalPolicy(nn.Module):
    """Scores neighbours by one attention to them, whose query is learnt and the same everywhere.

    w F + 4 w^2 + 3 w parameters, w its width and F the numbers of a neighbour: e = W x + b + code(rank); one
    query attends to all e; the score of a neighbour is out(attended) . e / sqrt(w).

    As the query is the same everywhere, products with its keys are those with one vector a head, and as e is linear in
    x, no e is ever made: what a neighbour costs is a few products of F numbers.  The results are the same.
    """

    codes: Tensor

    def __init__(self, features: int, ranks: int, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.width, self.heads = width, heads
        self.embed = nn.Linear(features, width)
        self.state = nn.Parameter(torch.empty(width).uniform_(-1, 1))
        self.query = nn.Linear(width, width, bias=False)
        self.key_value = nn.Linear(width, 2 * width, bias=False)
        self.out = nn.Linear(width, width)
        self.register_buffer("codes", rank_codes(ranks, width), persistent=False)

    def forward(self, x: Tensor, is_open: Tensor) -> Tensor:
        """x (batch, tours, k, F), nearest first; is_open (batch, tours, k) bool -> scores (batch, tours, k).

        Those of what is closed mean nothing, nor do any where nothing is open.
        """
        return in_all_digits(self._scores, x.to(self.embed.weight.dtype), is_open)

    def _scores(self, x: Tensor, is_open: Tensor) -> Tensor:
        constant = self.embed.bias + self.codes[: x.shape[2]]  # (k, w)
        keys, values = (part.unflatten(0, (self.heads, -1)) for part in self.key_value.weight.chunk(2))  # (h, d, w)
        query = self.query(self.state).view(self.heads, -1, 1)
        probe = (query * keys).sum(dim=1) / math.sqrt(self.width // self.heads)  # (h, w)
        fits = x @ (probe @ self.embed.weight).T + constant @ probe.T  # (batch, tours, k, h)
        fits = fits.masked_fill(~is_open[..., None], torch.finfo(fits.dtype).min)
        share = fits.softmax(dim=2).transpose(2, 3)  # (batch, tours, h, k)
        context = (share @ x) @ self.embed.weight.T + share @ constant  # (batch, tours, h, w)
        context = torch.einsum("bthw,hdw->bthd", context, values).flatten(2)
        attended = self.out(context) / math.sqrt(self.width)  # (batch, tours, w)
        scores: Tensor = (x @ (attended @ self.embed.weight)[..., None]).squeeze(-1) + attended @ constant.T
        return scores
