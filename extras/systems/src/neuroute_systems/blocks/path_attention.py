"""Kool's attention model, as it builds paths between two given ends (Kool et al., 2019; Ye et al., 2024)."""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from neuroute.networks.blocks.attention import attend
from neuroute.networks.blocks.layers import BatchNorm, Norm, PostNormLayer
from neuroute.networks.blocks.precision import FullLinear, in_all_digits


class KoolLayer(PostNormLayer):
    """The layer of Kool's encoder (2019): batch norm, and no bias in attention.  4 W^2 + 2 W F + 5 W + F parameters."""

    def __init__(self, width: int, heads: int, feed_forward: int, norm: type[Norm] = BatchNorm) -> None:
        super().__init__(width, heads, feed_forward, norm)
        self.out = nn.Linear(width, width, bias=False)


class Prepared(NamedTuple):
    """What a node brings to the decisions of its path, each (batch, m, width)."""

    keys: Tensor  # of the glimpse
    values: Tensor
    targets: Tensor  # what glimpses are multiplied with: the logits' keys behind the projection of the glimpse
    queries: Tensor  # of a path that has come to the node

    def rows(self) -> Tensor:
        """All of it side by side: (batch, m, 4 width)."""
        return torch.cat(self, dim=-1)


class PathAttention(nn.Module):
    """Kool's attention model for paths whose two ends are given: closed tours, and what GLOP's revisers rebuild.

    D (4 W^2 + 2 W F + 5 W + F) + 7 W^2 + 5 W parameters: 1,301,888 as published with 6 layers.

    The query knows the first row of the path as it was given: where a tour begins; where a reviser's path starts, or
    ends if it is built backwards, as in the published code.  The destination shows by its absence from the glimpse
    alone.  In place of first and current node the first decision of a tour has a placeholder, which a given start makes
    idle.
    """

    channels: Tensor

    def __init__(self, depth: int, width: int, heads: int, feed_forward: int, clipping: float) -> None:
        super().__init__()
        self.heads, self.clipping = heads, clipping
        self.embed = FullLinear(2, width)
        self.layers = nn.ModuleList(KoolLayer(width, heads, feed_forward) for _ in range(depth))
        self.project_nodes = nn.Linear(width, 3 * width, bias=False)  # the glimpse's keys and values, the logits' keys
        self.project_mean = nn.Linear(width, width, bias=False)
        self.project_step = nn.Linear(2 * width, width, bias=False)
        self.project_glimpse = nn.Linear(width, width, bias=False)
        self.placeholder = nn.Parameter(torch.empty(2 * width).uniform_(-1, 1))
        channels = torch.eye(heads).repeat_interleave(width // heads, dim=1)
        self.register_buffer("channels", channels, persistent=False)  # (heads, width): which are whose

    def prepare(self, points: Tensor) -> Prepared:
        """points (batch, m, 2), the path's start first."""
        h, keys, values, targets = self._encode(points)
        of_first, of_current = self.project_step.weight.chunk(2, dim=1)
        same = self.project_mean(h.mean(dim=1, keepdim=True)) + h[:, :1] @ of_first.T
        return Prepared(keys, values, targets, h @ of_current.T + same)

    def decide_first(self, points: Tensor) -> Tensor:
        """Logits (batch, m) of where a tour through points (batch, m, 2) begins."""
        h, keys, values, targets = self._encode(points)
        query = self.project_mean(h.mean(dim=1, keepdim=True)) + self.project_step(self.placeholder)
        return self.decide_all(Prepared(keys, values, targets, query), h.new_zeros(1, points.shape[1]))[:, 0]

    def decide(self, rows: Tensor) -> Tensor:
        """rows (batch, 1 + available + 1, 4 width) -> logits (batch, available).

        A single query is spread over its heads, zero where channels are another's: three products with the rows as they
        lie take a fifth of the time of attention on a CPU, whose kernel is for many queries.
        """
        width = rows.shape[2] // 4
        keys, values, targets = rows[:, 1:-1, : 3 * width].split(width, dim=-1)
        queries = rows[:, :1, 3 * width :] * self.channels
        context = torch.softmax(queries @ keys.transpose(1, 2) * self._scale(width), dim=-1) @ values
        return self._logits((context * self.channels).sum(dim=1, keepdim=True), targets)[:, 0]

    def decide_all(self, prepared: Prepared, mask: Tensor) -> Tensor:
        """Logits (batch, steps, m) of all decisions of paths whose nodes lie in the order in which they were visited.

        mask (steps, m): -inf at what a step, which is at the node of its number, may not see, 0 elsewhere.
        """
        steps, width = mask.shape[0], prepared.queries.shape[2]
        of_heads = (part.unflatten(2, (self.heads, -1)).transpose(1, 2) for part in prepared)
        keys, values, _, queries = of_heads
        glimpse = attend(queries[:, :, :steps], keys, values, self._scale(width), mask)
        logits = self._logits(glimpse.transpose(1, 2).flatten(2), prepared.targets)
        return logits + mask.to(logits)

    def _encode(self, points: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Nodes (batch, m, width) behind all layers, and their keys, values and targets."""
        h: Tensor = self.embed(points)
        for layer in self.layers:
            h = layer(h)
        keys, values, targets = self.project_nodes(h).chunk(3, dim=-1)
        return h, keys, values, targets @ self.project_glimpse.weight

    def _logits(self, glimpse: Tensor, targets: Tensor) -> Tensor:
        """glimpse (batch, steps, width), targets (batch, nodes, width) -> (batch, steps, nodes)."""
        products = in_all_digits(torch.matmul, glimpse, targets.transpose(1, 2))
        return self.clipping * torch.tanh(products * (1 / math.sqrt(glimpse.shape[2])))

    def _scale(self, width: int) -> float:
        return 1 / math.sqrt(width // self.heads)
