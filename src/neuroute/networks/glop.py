"""GLOP's revisers: attention models that rebuild a path of so many nodes (Ye et al., 2024; Kool et al., 2019).

A reviser is for blocks of one size.  `Glop` holds one for each size, and takes paths as every path network does.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from neuroute.networks.base import PathNetwork
from neuroute.networks.blocks.all_digits import FullLinear, in_all_digits
from neuroute.networks.blocks.attention import attend
from neuroute.networks.blocks.post_norm_layer import KoolLayer

LEAST_EXTENT = 1e-10  # of a path whose nodes coincide


def fit_to_square(points: Tensor) -> Tensor:
    """points (batch, m, 2) moved, with axes swapped where it is higher than wide, and scaled: x spans [0, 1].

    y begins at 0 and reaches no further than x.  Paths keep their shape; where all nodes coincide they come to 0.
    """
    points = points - points.amin(dim=1, keepdim=True)
    extent = points.amax(dim=1, keepdim=True)
    points = torch.where(extent[..., 1:] > extent[..., :1], points.flip(2), points)
    return points / (extent.amax(dim=2, keepdim=True) + LEAST_EXTENT)


class Prepared(NamedTuple):
    """What a node brings to the decisions of its path, each (batch, m, width)."""

    keys: Tensor  # of the glimpse
    values: Tensor
    targets: Tensor  # what glimpses are multiplied with: the logits' keys behind the projection of the glimpse
    queries: Tensor  # of a path that has come to the node

    def rows(self) -> Tensor:
        """All of it side by side: (batch, m, 4 width)."""
        return torch.cat(self, dim=-1)


class Reviser(nn.Module):
    """Kool's attention model for paths whose two ends are given.

    D (4 W^2 + 2 W F + 5 W + F) + 7 W^2 + 5 W parameters: 1,301,888 as published.

    As in the published code the query knows the first row of the path as it was given, in both directions: where it
    starts, or where it ends if it is built backwards.  The destination shows by its absence from the glimpse alone.
    What the model says before its first step is a parameter that the given start makes idle.
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
        h = self.embed(points)
        for layer in self.layers:
            h = layer(h)
        keys, values, targets = self.project_nodes(h).chunk(3, dim=-1)
        of_first, of_current = self.project_step.weight.chunk(2, dim=1)
        same = self.project_mean(h.mean(dim=1, keepdim=True)) + h[:, :1] @ of_first.T
        return Prepared(keys, values, targets @ self.project_glimpse.weight, h @ of_current.T + same)

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

    def _logits(self, glimpse: Tensor, targets: Tensor) -> Tensor:
        """glimpse (batch, steps, width), targets (batch, nodes, width) -> (batch, steps, nodes)."""
        products = in_all_digits(torch.matmul, glimpse, targets.transpose(1, 2))
        return self.clipping * torch.tanh(products * (1 / math.sqrt(glimpse.shape[2])))

    def _scale(self, width: int) -> float:
        return 1 / math.sqrt(width // self.heads)


class Glop(PathNetwork):
    """A reviser for each size of block; where they are `shared`, one for all.

    A path goes to the reviser of the smallest block that is no shorter than it, or of the largest.  It is moved and
    scaled as `fit_to_square` says, so that one reviser can serve blocks of several sizes.  How many random insertions
    a revision starts from, where nothing else is said, are `insertions`: of tours no longer than the largest block, of
    longer ones, of large ones, and of TSPLIB's.
    """

    def __init__(
        self,
        depth: int = 6,
        width: int = 128,
        heads: int = 8,
        feed_forward: int = 512,
        clipping: float = 10.0,
        blocks: Sequence[int] = (100, 50, 20),
        shared: bool = False,
        insertions: Sequence[int] = (35, 10, 1, 128),
        train_nodes: int = 100,
    ) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"width {width} is not divisible by {heads} heads")
        if list(blocks) != sorted(set(blocks), reverse=True) or not blocks or min(blocks) < 4:
            raise ValueError(f"blocks {list(blocks)} must be falling numbers of at least 4 nodes")
        self.width, self.depth, self.train_nodes = width, depth, train_nodes
        self.blocks, self.insertions, self.heads = tuple(blocks), tuple(insertions), heads
        self.revisers = nn.ModuleList(
            Reviser(depth, width, heads, feed_forward, clipping) for _ in blocks[: 1 if shared else None]
        )

    def reviser(self, nodes: int) -> Reviser:
        """The one for paths of so many nodes."""
        fitting = [i for i, block in enumerate(self.blocks) if block >= nodes]
        number = fitting[-1] if fitting and len(self.revisers) > 1 else 0
        chosen_reviser: Reviser = self.revisers[number]  # type: ignore[assignment]
        return chosen_reviser

    def encode(self, coords: Tensor) -> Tensor:
        """coords (batch, nodes, 2), where the path starts first -> rows (batch, nodes, 4 width)."""
        prepared: Prepared = self.reviser(coords.shape[1]).prepare(fit_to_square(coords))
        return prepared.rows()

    def decide(self, rows: Tensor, attention_scale: float = 1.0) -> Tensor:
        """rows (batch, 1 + available + 1, 4 width) -> logits (batch, available); no factor depends on the size."""
        return self.reviser(0).decide(rows)  # rows hold all that is learnt: any will do

    def build(self, rows: Tensor) -> Tensor:
        """rows (batch, m, 4 width) on the CPU -> the greedy orders (2 batch, m) of their places, from either end.

        Each goes from place 0 to place m - 1; the second half was built backwards.
        """
        from neuroute.networks.blocks.kool_paths import paths_from_either_end  # numba takes half a second

        return paths_from_either_end(rows, self.heads)
