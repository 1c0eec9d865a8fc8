"""Training without labels on a pool of instances: the best tours that beams have found so far are imitated (DGL).

After Xiao et al. (2025).  A loop, which is a batch here, is a function of (run, index) and of the pool that the loops
before it have left.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from neuroute.core.device import stream_seed
from neuroute.core.errors import NeurouteError
from neuroute.datasets.problem_spec import spec_of
from neuroute.decoding.memory import autocast, batch_size_for
from neuroute.decoding.sampling import TourPrefixes, search_beams
from neuroute.decoding.tsp import TspBatch, arrive_of, tour_lengths
from neuroute.networks.base import PathNetwork
from neuroute.solvers import nearest
from neuroute.specs.objects import Dataset, Decoding
from neuroute.training.batches import Batches, Scheme
from neuroute_systems.dgl.system import BeamPool

UNLIKELY, FLOOR = 1e-5, 1e-7  # to probabilities up to the first the second is added, before the logarithm is taken
CLOSED = 1e-20  # the probability of a node that is none of the nearest


class PoolBatches(Batches):
    """Loops of a run: in each, the first too, `renewed` instances drawn at random make room for new ones.

    Each of several processes searches and imitates its part.
    """

    training: BeamPool
    net: PathNetwork

    def __init__(self, scheme: Scheme) -> None:
        super().__init__(scheme)
        self.coords = torch.empty(0, self.run.n, 2, device=self.device)  # (pool, n, 2), none yet
        self.tours = torch.empty(0, self.run.n, dtype=torch.long, device=self.device)
        self.lengths = torch.empty(0, dtype=torch.float64, device=self.device)

    # -- what the training loop asks for ------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        return {"coords": self.coords, "tours": self.tours, "lengths": self.lengths}

    def restore(self, state: dict[str, Any]) -> None:
        self.coords, self.tours, self.lengths = (state[name] for name in ("coords", "tours", "lengths"))

    def samples(self, batches: int) -> int:
        """Instances, counted anew in each loop."""
        return batches * self.training.pool

    def learning_rate(self, index: int) -> float:
        t = self.training
        return t.learning_rate * t.decay_gamma ** (index // t.loops // t.decay_every)

    def train(self, index: int) -> tuple[Tensor, int]:
        """Renew, search and imitate."""
        draws = torch.Generator().manual_seed(stream_seed(self.run.seed, index))
        self._renew(index, draws)
        self._search(torch.randperm(self.run.n, generator=draws)[: self.training.starts].tolist())
        shift = int(torch.randint(self.run.n, (), generator=draws))
        self.tours = self.tours.roll(shift, dims=1)
        if (index + 1) % self.training.loops == 0:
            epoch = index // self.training.loops
            self._notes.append({"kind": "pool", "epoch": epoch, "length": float(self.lengths.mean())})
        return self._imitate(self._images(draws), index)

    # -- the pool -----------------------------------------------------------------------------------------------

    def _renew(self, index: int, draws: torch.Generator) -> None:
        """A pool begins with the tours of nearest neighbour; new instances come without one."""
        t, n = self.training, self.run.n
        if not len(self.coords):
            instances = self._instances(0, t.pool)
            tours = np.stack([nearest.solve(each, 0) for each in instances])
            self.coords, self.tours = (torch.from_numpy(each).to(self.device) for each in (instances, tours))
            self.lengths = tour_lengths(self.coords, self.tours[:, None])[:, 0]
        if t.renewed:
            places = torch.randperm(t.pool, generator=draws)[: t.renewed].to(self.device)
            new = torch.from_numpy(self._instances(t.pool + index * t.renewed, t.renewed)).to(self.device)
            self.coords = self.coords.index_copy(0, places, new)
            self.tours = self.tours.index_copy(0, places, torch.arange(n, device=self.device).repeat(t.renewed, 1))
            self.lengths = self.lengths.index_fill(0, places, torch.inf)

    def _instances(self, first: int, count: int) -> np.ndarray:
        """Of the training stream: the same for every seed, as labelled training data are."""
        dataset = Dataset(split="train", n=self.run.n, first=first, count=count)
        coords: np.ndarray = spec_of(self.run.validation).instances(dataset)
        return coords

    @torch.no_grad()
    def _search(self, starts: list[int]) -> None:
        """Keep what beams find from these starts, the same of all instances, where it is shorter."""
        t, n = self.training, self.run.n
        size = batch_size_for(self.net, n, Decoding(method="beam", beam=t.beam), self.memory_gb)
        rows = self.world.part(t.pool)
        slices = (slice(first, min(first + size, rows.stop)) for first in range(rows.start, rows.stop, size))
        parts = [self._search_part(each, starts) for each in slices]
        self.tours, self.lengths = (self.world.gather(torch.cat(each), t.pool) for each in zip(*parts, strict=True))

    def _search_part(self, rows: slice, starts: list[int]) -> tuple[Tensor, Tensor]:
        coords, best, least = self.coords[rows], self.tours[rows], self.lengths[rows]
        with autocast(self.device, self.training.precision):
            nodes = self.net.encode(coords)
            for start in starts:
                prefixes = TourPrefixes(self.net.decide, nodes.roll(-start, dims=1), arrive=arrive_of(self.net))
                moved = TspBatch(coords.roll(-start, dims=1))
                tours, lengths = search_beams(prefixes, moved.lengths, self.training.beam)
                best = torch.where((lengths < least)[:, None], (tours + start) % self.run.n, best)
                least = torch.minimum(lengths, least)
        return best, least

    # -- imitation ----------------------------------------------------------------------------------------------

    def _images(self, draws: torch.Generator) -> Tensor:
        """The stops (pool, n, 2) of all tours, each instance but the first rotated, and half of them reflected."""
        pool = self.training.pool
        angle = 2 * torch.pi * torch.rand(pool, generator=draws)
        side = 1.0 - 2.0 * torch.randint(2, (pool,), generator=draws)
        angle[0], side[0] = 0.0, 1.0
        turn = torch.stack([angle.cos(), -side * angle.sin(), angle.sin(), side * angle.cos()], dim=1).view(-1, 2, 2)
        stops = self.coords.gather(1, self.tours[..., None].expand(-1, -1, 2))
        return stops @ turn.to(stops).transpose(1, 2)

    def _imitate(self, stops: Tensor, index: int) -> tuple[Tensor, int]:
        """One update for each of the n - 1 decisions along stops (pool, n, 2), the last of which is none."""
        rank_rows = self.world.part(len(stops))
        nodes = self.net.encode(stops[rank_rows.start : rank_rows.stop])
        if nodes.requires_grad:
            raise NeurouteError(
                f"{self.run.id}: {type(self.net).__name__} trains its encoder, and a pool is encoded once; take a "
                "network without encoder, such as Dgl"
            )
        rows, total = torch.cat([nodes, nodes[:, :1]], dim=1), torch.zeros((), device=self.device)
        size, updates = self._micro_batch(), self.run.n - 1
        for row in range(updates):
            ahead = rows[:, row:]
            self.net.arrive(ahead)
            for part in ahead.split(size):
                with autocast(self.device, self.training.precision):
                    logits = self.net.decide(part)
                loss = -log_of_first(logits).sum() / len(stops)
                loss.backward()
                total += loss.detach()
            self.world.sum_gradients(self.net)
            self._update(index)
        return total * self.world.size, updates

    def _micro_batch(self) -> int:
        """Instances whose activations fit: about 14 floats per token, channel and layer, as if all nodes were read."""
        each = 4 * 14 * self.net.width * (self.net.depth + 1) * (self.run.n + 1)
        return max(1, int(self.memory_gb * 1e9 / each))


def log_of_first(logits: Tensor) -> Tensor:
    """logits (batch, available) -> log-probability (batch,) of the first, float64; no gradient where it is closed."""
    p = torch.softmax(logits.double(), dim=1)[:, 0]
    p = torch.where(p <= UNLIKELY, p + FLOOR, p)
    return torch.where(logits[:, 0].isneginf(), CLOSED, p).log()


def beam_pool(scheme: Scheme) -> PoolBatches:
    """Self-improvement for the TSP by beams over a pool.

    Raises NeurouteError for more processes than instances, for starts that instances do not have, and for networks of
    many starts.
    """
    run, t = scheme.run, scheme.run.training
    assert isinstance(t, BeamPool)
    if scheme.world.size > t.pool:
        raise NeurouteError(
            f"{run.id}: a pool of {t.pool} instances for {scheme.world.size} processes; ask for fewer GPUs"
        )
    if not isinstance(scheme.net, PathNetwork):
        raise NeurouteError(f"{run.id}: a pool takes a network that builds one path, such as Dgl")
    if t.starts > run.n:
        raise NeurouteError(f"{run.id}: {t.starts} starts of instances of {run.n} nodes; give at most as many")
    return PoolBatches(scheme)
