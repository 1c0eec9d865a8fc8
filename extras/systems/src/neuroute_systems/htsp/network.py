"""H-TSP: an upper level says where a tour grows next, a lower level orders what joins it there (Pan et al., 2023)."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from neuroute.networks.base import Count, RoutingNetwork
from neuroute.networks.blocks.layers import BatchNorm, InstanceNorm, PostNormLayer, TourContext
from neuroute.networks.blocks.precision import FullLinear
from neuroute.networks.pomo import Pomo
from neuroute_systems.htsp.system import IMAGES

STATE = 8  # numbers of a node: coordinates, is it visited, may a tour grow there, the coordinates of its two neighbours
POINT = 64  # channels of a node before nodes of a cell become a pixel
LOG_DEVIATION = -1.0  # of actions, at first


class PathContext(TourContext):
    """W_first h_first + W_current h_current + W_whole [mean h, h_source, h_target]: 5 W^2 parameters.

    A path goes from the first row, its source, to the last one, its target.
    """

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.whole = nn.Linear(3 * width, width, bias=False)

    def forward(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """nodes (batch, n, width) -> as in `TourContext`; what is the same for all tours is added to where they are."""
        of_first, of_current = super().forward(nodes)
        of_path = torch.cat([nodes.mean(dim=1, keepdim=True), nodes[:, :1], nodes[:, -1:]], dim=-1)
        return of_first, of_current + self.whole(of_path)


class PathPomo(Pomo):
    """POMO for paths, which are closed tours in which the target is beside the source.

    D (4 W^2 + 2 W F + 6 W + F) + 8 W^2 + 4 W parameters: 2,506,240 as published, 1,318,912 of 6 layers.  Batch norms.
    """

    context_of = PathContext

    def __init__(
        self, depth: int, width: int, heads: int, feed_forward: int, clipping: float, train_nodes: int
    ) -> None:
        super().__init__(depth, width, heads, feed_forward, clipping, train_nodes)
        self.layers = nn.ModuleList(PostNormLayer(width, heads, feed_forward, BatchNorm) for _ in range(depth))


class Residual(nn.Module):
    """x + conv(ReLU(conv(ReLU(x)))): 18 C^2 + 2 C parameters."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        """x (batch, channels, rows, columns) -> same shape."""
        added: Tensor = self.second(F.relu(self.first(F.relu(x))))
        return x + added


class PixelEncoder(nn.Module):
    """Nodes become pixels of an image of cells x cells, which a convolutional network reads (IMPALA's).

    A node has its state and how far it lies from the middle of its cell, and from the mean of the nodes there; a pixel
    is the largest of each channel.  799,632 parameters as published.
    """

    def __init__(self, cells: int, channels: Sequence[int], width: int) -> None:
        super().__init__()
        self.cells = cells
        self.embed = nn.Linear(STATE + 4, POINT, bias=False)
        self.norm = InstanceNorm(POINT, eps=1e-3)
        blocks, side = [], cells
        for before, after in zip((POINT, *channels), channels, strict=False):
            convolution = nn.Conv2d(before, after, 3, padding=1)
            blocks += [convolution, nn.MaxPool2d(3, stride=2, padding=1), Residual(after), Residual(after)]
            side = (side + 1) // 2
        self.blocks = nn.Sequential(*blocks)
        self.out = nn.Linear(channels[-1] * side * side, width)

    def forward(self, state: Tensor) -> Tensor:
        """state (batch, n, 8) -> (batch, width).  What lies outside of the unit square is of the nearest cell."""
        points, squares = state[..., :2], self.cells * self.cells
        column, row = (points * self.cells).long().clamp(0, self.cells - 1).unbind(-1)
        cell = row * self.cells + column
        middle = (torch.stack([column, row], dim=-1) + 0.5) / self.cells
        sums = torch.cat([points, torch.ones_like(points[..., :1])], dim=-1)
        zeros = sums.new_zeros(len(points), squares, 3)
        total = zeros.scatter_add(1, cell[..., None].expand_as(sums), sums)
        mean = total[..., :2] / total[..., 2:].clamp(min=1)
        of_cell = mean.gather(1, cell[..., None].expand_as(points))
        nodes = F.relu(self.norm(self.embed(torch.cat([state, points - middle, points - of_cell], dim=-1))))
        pixels = nodes.new_zeros(len(nodes), squares, POINT)
        pixels = pixels.scatter_reduce(1, cell[..., None].expand_as(nodes), nodes, "amax")
        image = pixels.transpose(1, 2).unflatten(2, (self.cells, self.cells))
        features: Tensor = F.relu(self.out(F.relu(self.blocks(image)).flatten(1)))
        return features


class Upper(nn.Module):
    """Where a tour grows next, and what its growth will cost: 799,632 + 49,796 + 591,873 parameters as published.

    Linear layers of actor and critic begin as orthogonal matrices, the last of the actor's as a hundredth of one.
    """

    def __init__(self, cells: int, channels: Sequence[int], width: int, critic_width: int) -> None:
        super().__init__()
        self.encoder = PixelEncoder(cells, channels, width)
        linear = [nn.Linear(width, width) for _ in range(3)]
        self.actor = nn.Sequential(
            linear[0], nn.ReLU(), linear[1], nn.ReLU(), linear[2], nn.Hardswish(), FullLinear(width, 2)
        )
        self.log_deviation = nn.Parameter(torch.full((2,), LOG_DEVIATION))
        wide = [nn.Linear(before, critic_width) for before in (width, critic_width, critic_width)]
        self.critic = nn.Sequential(
            wide[0], nn.ReLU(), wide[1], nn.ReLU(), wide[2], nn.Hardswish(), FullLinear(critic_width, 1)
        )
        for layer in (*self.actor, *self.critic):
            if isinstance(layer, nn.Linear):
                nn.init.orthogonal_(layer.weight, 0.01 if layer is self.actor[-1] else 1.0)
                nn.init.constant_(layer.bias, 1e-6)

    def forward(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """state (batch, n, 8) -> the means (batch, 2) of actions, and values (batch,)."""
        features = self.encoder(state)
        return self.actor(features), self.critic(features).squeeze(-1)

    def act(self, state: Tensor) -> Tensor:
        """The means of actions alone."""
        means: Tensor = self.actor(self.encoder(state))
        return means

    def value(self, state: Tensor) -> Tensor:
        """The values alone."""
        values: Tensor = self.critic(self.encoder(state)).squeeze(-1)
        return values


def place_of(action: Tensor) -> Tensor:
    """An action (..., 2), any numbers, as a place in the unit square."""
    return (action.tanh() + 1) / 2


class Htsp(RoutingNetwork):
    """Both levels: 3,947,541 parameters as published, the critic's, which decoding does not use, included.

    A tour begins with two nodes.  At each step `added` nodes join it, and those of the tour that are near, `fragment`
    of both together: the upper level says where, the lower level in which order.
    """

    own_method = "htsp:grow"  # by which alone it is decoded

    def __init__(
        self,
        depth: int = 12,
        width: int = 128,
        heads: int = 8,
        feed_forward: int = 512,
        clipping: float = 10.0,
        fragment: int = 200,
        added: int = 190,
        neighbours: int = 40,
        cells: int = 100,
        channels: Sequence[int] = (16, 32, 32),
        upper_width: int = 128,
        critic_width: int = 512,
        train_nodes: int = 1000,
    ) -> None:
        super().__init__()
        if not 1 <= added <= fragment - 2:
            raise ValueError(f"added {added} of a fragment of {fragment} nodes; two of these are of the tour, at least")
        self.width, self.depth, self.train_nodes = width, depth, train_nodes
        self.fragment, self.added, self.neighbours = fragment, added, neighbours
        self.lower = PathPomo(depth, width, heads, feed_forward, clipping, fragment)
        self.upper = Upper(cells, channels, upper_width, critic_width)

    def encode(self, coords: Tensor) -> Tensor:
        """Fragments (batch, m, 2) -> (batch, m, width), of the lower level."""
        return self.lower.encode(coords)

    def decide(self, *state: Any) -> Tensor:
        """A decision of the lower level; see `Pomo.decide`."""
        return self.lower.decide(*state)

    def count_flops(self, count: Count, coords: Tensor) -> tuple[int, int]:
        """See `base.Count`.  As if a tour grew by `added` nodes always, and all fragments were full ones.

        A decision is a node's share of those of all starts and images of a fragment.
        """
        n, m = coords.shape[1], self.fragment
        fragment, mask = coords.new_ones(1, m, 2), coords.new_zeros(1, 1, m)
        one, two = (count(lambda size=size: self.upper.act(coords.new_ones(1, size, STATE)))[1] for size in (1, 2))  # type: ignore[misc]
        prepared, lower = count(lambda: self.lower.prepare(self.lower.encode(fragment)))
        stop = torch.ones(1, 1, dtype=torch.int64, device=coords.device)
        _, step = count(lambda: self.lower.decide(prepared, stop, stop, mask))
        each, more = (2 * one - two + IMAGES * lower) // self.added, (two - one) // self.added
        return n * each + n * n * more, IMAGES * m * (m - 2) * step // self.added
