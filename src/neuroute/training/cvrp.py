"""Training on sub-paths of CVRP solutions: labelled ones (LEHD, BQ), or those that the network itself improves (sit) or
samples (SIGD).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from neuroute.core.device import stream_seed
from neuroute.decoding.cvrp import CvrpBatch, decide_for
from neuroute.decoding.cvrp_search import SEARCH
from neuroute.decoding.sampling import Begin, RoutePrefixes
from neuroute.networks.base import PathNetwork
from neuroute.networks.blocks.routing import Gate, Routing, SharedRouting
from neuroute.problems.cvrp_sub_paths import Draw, arranged, by_load, draw, draw_within, loads
from neuroute.specs.objects import Decoding
from neuroute.training.batches import Scheme
from neuroute.training.self_improvement import Rounds, SelfImprovementBatches
from neuroute.training.supervised import Labelled, SupervisedBatches, labelled


@dataclass(frozen=True)
class CvrpPath:
    """Sub-paths in visiting order; loads are shares of the capacity."""

    coords: Tensor  # (batch, 1 + length, 2), the depot first
    demand: Tensor  # (batch, 1 + length), 0 at the depot
    via: Tensor  # (batch, length) int64: 1 where a stop is reached through the depot
    left: Tensor  # (batch, length): what is in the vehicle after each stop

    def __len__(self) -> int:
        return len(self.via)

    @property
    def shape(self) -> torch.Size:
        return self.via.shape

    def split(self, limit: int) -> Iterator["CvrpPath"]:
        parts = (a.split(limit) for a in (self.coords, self.demand, self.via, self.left))
        return (CvrpPath(*part) for part in zip(*parts, strict=True))


def cut(coords: Tensor, demand: Tensor, capacity: Tensor, solutions: Tensor, draw_now: Draw) -> CvrpPath:
    """The drawn sub-paths of labelled solutions.

    coords (batch, V + 1, 2), demand (batch, V + 1), capacity (batch,), solutions (batch, 2, V)
    """
    return last_stops(coords, demand, capacity, arranged(solutions, draw_now), draw_now.length)


def last_stops(coords: Tensor, demand: Tensor, capacity: Tensor, solutions: Tensor, length: int) -> CvrpPath:
    """The last so many stops of solutions, from 2 to V + 1; of V + 1 the first is the depot.

    BQ-NCO calls the way from the depot to the first customer straight, so it does not learn to go through it again.
    """
    depot = torch.zeros_like(solutions[:, 0, :1])
    load = torch.cat([capacity[:, None], capacity[:, None] - loads(demand, solutions)], dim=1)[:, -length:]
    order = torch.cat([depot, solutions[:, 0]], dim=1)[:, -length:]
    via = torch.cat([depot, depot if length > solutions.shape[2] else solutions[:, 1, :1], solutions[:, 1, 1:]], dim=1)
    nodes = torch.cat([depot, order], dim=1)
    points = coords.gather(1, nodes[..., None].expand(-1, -1, 2))
    share, load = demand.gather(1, nodes) / capacity[:, None], load / capacity[:, None]
    return CvrpPath(points, share.to(coords.dtype), via[:, -length:], load.to(coords.dtype))


def begin_at_depot(path: CvrpPath, at_depot: Tensor) -> CvrpPath:
    """The same paths, but where chosen (batch,) those whose second stop begins a route do so at the depot."""
    here = at_depot & (path.via[:, 1] == 1)
    coords, demand, load = path.coords.clone(), path.demand.clone(), path.left.clone()
    coords[:, 1] = torch.where(here[:, None], coords[:, 0], coords[:, 1])
    demand[:, 1] = torch.where(here, 0, demand[:, 1])
    load[:, 0] = torch.where(here, 1, load[:, 0])
    return CvrpPath(coords, demand, path.via, load)


class CvrpDecision(nn.Module):
    """What is trained, as one module so that DDP and torch.compile see the encoder too."""

    net: PathNetwork

    def __init__(self, net: PathNetwork) -> None:
        super().__init__()
        self.net = net

    def forward(self, coords: Tensor, demand: Tensor, load: Tensor, row: int, routing: Routing | None = None) -> Tensor:
        """Logits (batch, candidates, 2) of the stops after stop `row`: straight, through the depot.

        coords (batch, 1 + length, 2) and demand (batch, 1 + length), depot first; load (batch,) after stop `row`.
        routing: what the gates of a `LehdCvrpLight` draw from.
        """
        rows = self.net.encode(coords, demand).roll(-1, dims=1)[:, row:]  # the depot last, where every route ends
        return self.net.decide(rows, load) if routing is None else self.net.decide(rows, load, 1.0, routing)


class CvrpBatches(SupervisedBatches):
    """Supervised batches of CVRP sub-paths.

    The first stop and the way to it are given; the other length - 1 stops are decisions, the last one too: which
    customer it is goes without saying, but not whether the vehicle returns before it.  A `suffix` is the last 3 to
    V + 1 stops of all, the depot being the first, where the fullest routes come first (BQ-NCO).
    """

    def _sub_path(self, index: int, *arrays: Tensor) -> CvrpPath:
        coords, demand, capacity, solutions = arrays
        if self.training.sub_paths == "suffix":
            generator = torch.Generator().manual_seed(stream_seed(self.run.seed, index))
            length = int(torch.randint(3, self.run.n + 2, (), generator=generator))
            return last_stops(coords, demand, capacity, by_load(demand, solutions), length)
        # An instance's chance depends on its place in the whole batch, of which this process has every size-th.
        draw_now = draw(self.run.seed, index, self.run.n, 0, len(coords) * self.world.size)
        return cut(coords, demand, capacity, solutions, draw_now[self.world.rank :: self.world.size])

    def _rows(self, path: CvrpPath) -> range:
        return range(1) if self.training.step == "decision" else range(path.shape[1] - 1)

    def _loss(self, path: CvrpPath, row: int) -> Tensor:
        return loss(self.model, path, row)


class RoutedBatches(CvrpBatches):
    """Of a network whose gates draw for a whole batch, each from a generator of its own.

    So a batch is learnt from as a whole: in parts, each would be routed by itself, and other weights would come of
    other memory.  Several processes route their parts as the whole is: see `SharedRouting`.
    """

    def __init__(self, scheme: Scheme, data: Labelled) -> None:
        super().__init__(scheme, data)
        size, n = self.training.batch_size, self.run.n
        # Of each token an FFN has two copies and what experts make of them.
        need = 4 * 26 * self.net.width * self.net.depth * (n + 1) * size / self.world.size / 1e9
        self._check_memory(size, n, need)

    def train(self, index: int) -> tuple[Tensor, int]:
        generator = torch.Generator(self.device).manual_seed(stream_seed(self.run.seed, index))
        size = self._size(index)
        self._routing = SharedRouting(generator, size, self.world.rows(size), self.world.sum_with_gradient)
        return super().train(index)

    def _loss(self, path: CvrpPath, row: int) -> Tensor:
        return loss(partial(self.model, routing=self._routing), path, row)

    def _micro_batch(self, tokens: int) -> int:
        batch: int = self.training.batch_size
        return batch


def loss(decide: Any, path: CvrpPath, row: int) -> Tensor:
    """Mean cross-entropy of choosing stop row + 1, and the way to it, among all candidates and both ways.

    The label is always one of the first candidate's two classes, which gives nothing away (see `supervised.loss`).
    """
    logits = decide(path.coords, path.demand, path.left[:, row], row).float()
    return F.cross_entropy(logits.flatten(1), path.via[:, row + 1])


def supervised(scheme: Scheme) -> CvrpBatches:
    """Build the batches of a run.  Raises NeurouteError if labels are missing."""
    kind = RoutedBatches if any(isinstance(module, Gate) for module in scheme.net.modules()) else CvrpBatches
    return kind(scheme, labelled(scheme))


class RouteRounds(Rounds, CvrpBatches):
    """Self-improved training (sit, Appendix B.3): sub-paths of one length in a batch, 4 to the longest.

    Each ends where a route does.
    """

    search = SEARCH

    def _sub_path(self, index: int, *arrays: Tensor) -> CvrpPath:
        coords, demand, capacity, solutions = arrays
        draw_now = draw_within(self.run.seed, index, self.run.n, 0, len(coords) * self.world.size, self.longest)
        return cut(coords, demand, capacity, solutions, draw_now[self.world.rank :: self.world.size])


class RouteSamples(SelfImprovementBatches, CvrpBatches):
    """Sub-paths of sampled solutions.  As published, half of those that may begin at the depot do."""

    def _sub_path(self, index: int, *arrays: Tensor) -> CvrpPath:
        path = super()._sub_path(index, *arrays)
        generator = torch.Generator().manual_seed(stream_seed(self.run.seed, index))
        size = len(path) if self.world.size == 1 else self._size(index)
        at_depot = torch.randint(2, (size,), generator=generator).bool()[self.world.rows(size)]
        return begin_at_depot(path, at_depot.to(self.device))

    @staticmethod
    def prefixes(net: PathNetwork, batch: CvrpBatch, tokens: int) -> Begin:
        decide, nodes = decide_for(net, Decoding(), batch.coords.shape[1] - 1), net.encode(batch.coords, batch.share)
        return lambda: RoutePrefixes(decide, nodes, batch.demand, batch.capacity, tokens)
