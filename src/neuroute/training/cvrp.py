"""Training on sub-paths of CVRP solutions: labelled ones (LEHD), or those that the network itself improves (sit)."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from neuroute.core.errors import NeurouteError
from neuroute.core.seeds import stream_seed
from neuroute.decoding.cvrp_search import SEARCH
from neuroute.networks.blocks.gates import Gate
from neuroute.networks.blocks.routing import Routing
from neuroute.problems.cvrp_sub_paths import Draw, arranged, draw, draw_within, loads
from neuroute.training.reconstruction import ReconstructedSet, Rounds
from neuroute.training.supervised import Labelled, Scheme, SupervisedBatches, labelled


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


def cut(coords: Tensor, demand: Tensor, capacity: Tensor, solutions: Tensor, drawn: Draw) -> CvrpPath:
    """The drawn sub-paths of labelled solutions.

    coords (batch, V + 1, 2), demand (batch, V + 1), capacity (batch,), solutions (batch, 2, V)
    """
    solutions = arranged(solutions, drawn)
    first = solutions.shape[2] - drawn.length
    left = (capacity[:, None] - loads(demand, solutions)[:, first:]) / capacity[:, None]
    order, via = solutions[:, :, first:].unbind(1)
    nodes = torch.cat([torch.zeros_like(order[:, :1]), order], dim=1)
    points = coords.gather(1, nodes[..., None].expand(-1, -1, 2))
    share = demand.gather(1, nodes) / capacity[:, None]
    return CvrpPath(points, share.to(coords.dtype), via, left.to(coords.dtype))


class CvrpDecision(nn.Module):
    """What is trained, as one module so that DDP and torch.compile see the encoder too."""

    def __init__(self, net: Any) -> None:
        super().__init__()
        self.net = net

    def forward(self, coords: Tensor, demand: Tensor, left: Tensor, row: int, routing: Routing | None = None) -> Tensor:
        """Logits (batch, candidates, 2) of the stops after stop `row`: straight, through the depot.

        coords (batch, 1 + length, 2) and demand (batch, 1 + length), depot first; left (batch,) after stop `row`.
        routing: what the gates of a `LehdCvrpLight` draw from.
        """
        net: Any = self.net
        rows = net.encode(coords, demand).roll(-1, dims=1)  # the depot last, where every route ends
        return net.decide(rows[:, row:], left) if routing is None else net.decide(rows[:, row:], left, 1.0, routing)


class CvrpBatches(SupervisedBatches):
    """Supervised batches of CVRP sub-paths.

    The first stop and the way to it are given; the other length - 1 stops are decisions, the last one too: which
    customer it is goes without saying, but not whether the vehicle returns before it.
    """

    def _sub_path(self, index: int, *arrays: Tensor) -> CvrpPath:
        if self.training.sub_paths != "random":
            raise NeurouteError(f"{self.run.id}: CVRP sub-paths are cut at random; set `sub_paths: random`")
        coords, demand, capacity, solutions = arrays
        # An instance's chance depends on its place in the whole batch, of which this process has every size-th.
        drawn = draw(self.run.seed, index, self.run.n, 0, len(coords) * self.world.size)
        return cut(coords, demand, capacity, solutions, drawn[self.world.rank :: self.world.size])

    def _rows(self, path: CvrpPath) -> range:
        return range(1) if self.training.step == "decision" else range(path.shape[1] - 1)

    def _loss(self, path: CvrpPath, row: int) -> Tensor:
        return loss(self.model, path, row)


class RoutedBatches(CvrpBatches):
    """Of a network whose gates draw for a whole batch, each from a generator of its own.

    So a batch is learnt from as a whole, in one process: in parts, each would be routed by itself, and other weights
    would come of other memory.
    """

    def __init__(self, scheme: Scheme, data: Labelled) -> None:
        super().__init__(scheme, data)
        t = self.training
        if self.world.size > 1:
            raise NeurouteError(
                f"{self.run.id}: its experts are trained in one process, not in {self.world.size}; set gpus_per_run: 1"
            )
        # Of each token an FFN has two copies and what experts make of them.
        need = 4 * 26 * self.net.width * self.net.depth * (self.run.n + 1) * t.batch_size / 1e9
        if need > self.memory_gb:
            raise NeurouteError(
                f"{self.run.id}: experts learn from whole batches, and {t.batch_size} instances of {self.run.n} "
                f"customers take about {need:.2g} GB; memory_gb is {self.memory_gb:.2g}: give more, or smaller batches"
            )

    def train(self, index: int) -> tuple[Tensor, int]:
        self._routing = Routing(torch.Generator(self.device).manual_seed(stream_seed(self.run.seed, index)))
        return super().train(index)

    def _loss(self, path: CvrpPath, row: int) -> Tensor:
        return loss(partial(self.model, routing=self._routing), path, row)

    def _micro_batch(self, tokens: int) -> int:
        batch: int = self.training.batch_size
        return batch


def loss(decide: Any, path: CvrpPath, row: int) -> Tensor:
    """Mean cross-entropy of choosing stop row + 1, and the way to it, among all candidates and both ways.

    The label is always one of the first candidate's two classes, which gives nothing away (see `decisions.loss`).
    """
    logits = decide(path.coords, path.demand, path.left[:, row], row).float()
    return F.cross_entropy(logits.flatten(1), path.via[:, row + 1])


def supervised(scheme: Scheme) -> CvrpBatches:
    """Raises NeurouteError when labels are missing."""
    kind = RoutedBatches if any(isinstance(module, Gate) for module in scheme.net.modules()) else CvrpBatches
    return kind(scheme, labelled(scheme))


class RouteRounds(Rounds, CvrpBatches):
    """Sub-paths of improved solutions, of one length in a batch: 4 to the longest.  Each ends where a route does."""

    def _sub_path(self, index: int, *arrays: Tensor) -> CvrpPath:
        coords, demand, capacity, solutions = arrays
        drawn = draw_within(self.run.seed, index, self.run.n, 0, len(coords), self.longest)
        return cut(coords, demand, capacity, solutions, drawn)


def reconstruction(scheme: Scheme) -> RouteRounds:
    """Self-improved training (sit, Appendix B.3).

    Raises NeurouteError when labels are missing, for several processes, and for sub-paths that cannot be.
    """
    return RouteRounds(scheme, ReconstructedSet(scheme, SEARCH))
