"""DIFUSCO: edges of the optimal tour, denoised step by step (Sun and Yang, 2023), with categorical noise.

An edge is in the tour, or not (Austin et al., 2021).  A step of noise keeps it as it is with probability 1 - beta / 2.
Of many steps a share c, the product of 1 - beta, remains: Qbar = c I + (1 - c) / 2 11^T, both directions alike.
"""

import math
from itertools import pairwise

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from neuroute.core.device import stream_seed
from neuroute.networks.base import Count
from neuroute.networks.blocks.layers import LayerNorm
from neuroute.networks.blocks.precision import FullLinear, at_least_float32
from neuroute_systems.blocks.gated_graph import GatedGraphLayer, nearest_nodes
from neuroute_systems.edge_maps.network import EdgeMapNetwork, Map, symmetric_map

STEPS = 1000
BETAS = 1e-4, 2e-2  # of the first and of the last step, linear between them
PERIOD = 10_000.0  # of the slowest wave
GROUPS = 32  # of channels that are normalised together
FLOOR = 1e-6  # added to every edge, as published
KEPT, KEPT_OF_NODE = 10, 3  # edges a node that are searched: of the whole map, and of each node at least
CLOSENESS, BONUS = 0.01, 0.01  # weight of 1 - distance in a search's map; added to each edge that is kept


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


def waves(x: Tensor, width: int) -> Tensor:
    """x (...) -> (..., width): sine and cosine in turns, slower and slower."""
    period = PERIOD ** (2 * torch.arange(width // 2, dtype=x.dtype, device=x.device) / width)
    angles = x[..., None] / period
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)


def time_waves(steps: Tensor, width: int) -> Tensor:
    """steps (batch,) -> (batch, width): all cosines, then all sines."""
    half = width // 2
    slower = torch.exp(-math.log(PERIOD) * torch.arange(half, dtype=steps.dtype, device=steps.device) / half)
    angles = steps[:, None] * slower
    return torch.cat([angles.cos(), angles.sin()], dim=-1)


class DenoisingLayer(GatedGraphLayer):
    """The nodes' part is `GatedGraphLayer`'s; e' = e + Out(ReLU(LN(a)) + Linear(ReLU(time))), Out zero at first."""

    def __init__(self, width: int) -> None:
        super().__init__(width, gate="new", total="sum", norm="layer", activation="relu")
        self.of_time = nn.Linear(width // 2, width)
        self.out_norm = LayerNorm(width)
        self.out = nn.Linear(width, width)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def denoise(self, nodes: Tensor, edges: Tensor, neighbours: Tensor, time: Tensor) -> tuple[Tensor, Tensor]:
        """As `forward`; time (batch, W / 2)."""
        more_nodes, more_edges = self.convolve(nodes, edges, neighbours)
        more_edges = more_edges + self.of_time(torch.relu(time))[:, None, None]
        return nodes + more_nodes, edges + self.out(F.silu(self.out_norm(more_edges)))


class Difusco(EdgeMapNetwork):
    """Says how likely each edge of a graph is in the tour, given edges with noise.

    D (6 W^2 + W^2 / 2 + 13 W) + 2.75 W^2 + 7 W + 2 parameters: 5,333,762 as published.

    Nodes see their coordinates as waves, edges their noisy value, and layers the time; no distances.  The graph is
    dense, or of the nearest `neighbours`, a node itself among them.  Noisy values come as -1 and 1, in training and
    later; the published code trains on these and infers from 0 and 1.
    """

    def __init__(
        self,
        depth: int = 12,
        width: int = 256,
        steps: int = 50,
        neighbours: int = 0,
        actions: int = 100,
        train_nodes: int = 100,
    ) -> None:
        super().__init__()
        if width % 4:
            raise ValueError(f"width {width} must be a multiple of 4: waves of two coordinates, in pairs")
        if steps < 1:
            raise ValueError(f"{steps} steps of inference: at least one is needed")
        self.width, self.depth, self.train_nodes = width, depth, train_nodes
        self.steps, self.neighbours, self.actions = steps, neighbours, actions
        self.embed_nodes = FullLinear(width, width)
        self.embed_edges = FullLinear(width, width)
        self.time = nn.Sequential(nn.Linear(width, width // 2), nn.ReLU(), nn.Linear(width // 2, width // 2))
        self.layers = nn.ModuleList(DenoisingLayer(width) for _ in range(depth))
        self.norm = nn.GroupNorm(math.gcd(GROUPS, width), width)
        self.head = FullLinear(width, 2)

    def edges_of(self, n: int) -> int:
        """Edges of a node of the graph."""
        return min(n, self.neighbours or n)

    def graph(self, coords: Tensor) -> Tensor:
        """coords (batch, n, 2) -> the ends (batch, n, k) int64 of edges, in the order of the nodes if it is dense."""
        n = coords.shape[1]
        if self.edges_of(n) == n:
            return torch.arange(n, device=coords.device).expand(len(coords), n, n)
        return nearest_nodes(coords, self.neighbours, itself=True)[0]

    def denoise(self, coords: Tensor, neighbours: Tensor, noisy: Tensor, time: Tensor) -> Tensor:
        """Logits (batch, n, k, 2) of being no edge, or one, of the tour.

        coords (batch, n, 2), neighbours and noisy (batch, n, k), of about -1 and 1, time (batch,).
        """
        nodes = self.embed_nodes(waves(2 * math.pi * coords, self.width // 2).flatten(-2))
        edges, step = self.embed_edges(waves(noisy, self.width)), self.time(time_waves(time, self.width))
        for layer in self.layers:
            assert isinstance(layer, DenoisingLayer)
            nodes, edges = layer.denoise(nodes, edges, neighbours, step)
        normed = self.norm(at_least_float32(edges).flatten(1, 2).transpose(1, 2)).transpose(1, 2).view_as(edges)
        logits: Tensor = self.head(torch.relu(normed))
        return logits

    def encode(self, coords: Tensor, first: int = 0) -> tuple[Tensor, ...]:
        """Ends of edges (batch, n, k), and how likely these are after `steps` of inference.

        coords (batch, n, 2); noise hangs on the instances' numbers, of which the first is `first`.
        """
        neighbours, times = self.graph(coords), cosine_steps(self.steps)
        shape, c = neighbours.shape[1:], remaining().tolist()
        generators = [torch.Generator().manual_seed(stream_seed(0, first + i)) for i in range(len(coords))]

        def draw() -> Tensor:
            return torch.stack([torch.rand(shape, generator=each) for each in generators]).to(coords)

        likely = noisy = (draw() < 0.5).to(coords)
        for now, before in pairwise(times):
            time = coords.new_full((len(coords),), now)
            likely = self.denoise(coords, neighbours, 2 * noisy - 1, time).softmax(dim=-1)[..., 1]
            likely = posterior(likely, noisy, c[before], c[now])
            if before > 0:
                noisy = (draw() < likely).to(coords)
        return neighbours, likely + FLOOR

    def edges(self, points: np.ndarray, *encoded: np.ndarray, search: bool) -> Map:
        """See `EdgeMapNetwork`.  For a search nearer ones are a little likelier, and the best ones remain."""
        neighbours, heat = encoded
        if not search:
            return neighbours, heat
        n, k = neighbours.shape
        apart = np.linalg.norm(points[neighbours] - points[:, None], axis=-1)
        score = heat + CLOSENESS * (1 - apart)
        score[neighbours == np.arange(n)[:, None]] = -np.inf
        best_of_node = np.argsort(-score, axis=1, kind="stable")[:, :KEPT_OF_NODE]
        keep = np.zeros((n, k), dtype=bool)
        np.put_along_axis(keep, best_of_node, True, axis=1)
        keep.flat[np.argsort(-score, axis=None, kind="stable")[: KEPT * n]] = True
        tail, slot = np.nonzero(keep & (score > -BONUS))
        return symmetric_map(n, tail, neighbours[tail, slot], score[tail, slot] + BONUS)

    def count_flops(self, count: Count, coords: Tensor) -> tuple[int, int]:
        """See `base.Count`: all steps are alike."""
        neighbours = self.graph(coords)
        noisy, time = torch.zeros_like(neighbours, dtype=coords.dtype), torch.zeros_like(coords[:, 0, 0])
        return self.steps * count(lambda: self.denoise(coords, neighbours, noisy, time))[1], 0
