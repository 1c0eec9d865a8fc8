"""H-TSP at work: tours grow where the upper level says, by fragments that the lower level orders (Pan et al., 2023)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.decoding.multi_start import multi_start
from neuroute.decoding.tsp import Coords, TspBatch, TspEnvironment, TspRollout
from neuroute.plan.objects import Decoding
from neuroute.systems.htsp.network import Htsp, place_of
from neuroute.systems.htsp.tours import Tours

MARGIN = 0.05  # of the unit square, on each side of a fragment


class PathRollout(TspRollout):
    """Tours under construction in which the last node is beside the first: after either comes the other one."""

    def __init__(self, starts: Tensor, nodes: int, dtype: torch.dtype) -> None:
        super().__init__(starts, nodes, dtype)
        self._show()

    def go(self, stops: Tensor) -> None:
        self.mask = self._open
        super().go(stops)
        self._show()

    def pick(self, parents: Tensor) -> None:
        self.mask = self._open
        super().pick(parents)
        self._show()

    def _show(self) -> None:
        self._open, last = self.mask, self.mask.shape[2] - 1
        other = torch.where(self.current == 0, last, 0)[..., None]
        forced = ((self.current == 0) | (self.current == last))[..., None] & (self._open.gather(2, other) == 0)
        alone = torch.full_like(self._open, -torch.inf).scatter_(2, other, 0.0)
        self.mask = torch.where(forced, alone, self._open)


@dataclass(frozen=True)
class PathBatch(TspBatch):
    """Paths from the first to the last of coords (batch, m, 2)."""

    def __getitem__(self, rows: slice | Tensor) -> "PathBatch":
        return PathBatch(self.coords[rows])

    def repeat(self, times: int) -> "PathBatch":
        return PathBatch(self.coords.repeat(times, 1, 1))

    def at(self, coords: Tensor) -> "PathBatch":
        return PathBatch(coords)

    def to(self, dtype: torch.dtype) -> "PathBatch":
        return PathBatch(self.coords.to(dtype))

    def rollout(self, starts: Tensor, dtype: torch.dtype) -> PathRollout:
        return PathRollout(starts, self.coords.shape[1], dtype)


class PathEnvironment(TspEnvironment):
    """Closed paths as tours."""

    def batch(self, instances: Coords, device: torch.device) -> PathBatch:
        return PathBatch(torch.as_tensor(instances).to(device))


PATHS = PathEnvironment()


def solve_paths(net: Htsp, points: Tensor, memory_gb: float, *, augment: bool = True) -> Tensor:
    """Orders (batch, m) int64 on the CPU, from 0 to m - 1, of the best greedy paths through points (batch, m, 2).

    They start at every node, and in eight images with `augment`; points as `fit_to_square` leaves them.
    """
    precision = "bf16" if torch.is_autocast_enabled(points.device.type) else "fp32"
    tours = multi_start(PATHS, net.lower, points, augment=augment, memory_gb=memory_gb, precision=precision)
    m = tours.shape[1]
    first = (tours == 0).int().argmax(dim=1, keepdim=True)
    tours = tours.gather(1, (first + torch.arange(m)) % m)
    backwards = torch.cat([tours[:, :1], tours[:, 1:].flip(1)], dim=1)
    return torch.where(tours[:, -1:] == m - 1, tours, backwards)


def fit_to_square(points: Tensor) -> Tensor:
    """points (batch, m, 2) moved and scaled alike on both axes, so that a margin is left on each side of the square."""
    low, high = points.aminmax(dim=1, keepdim=True)
    extent = (high - low).amax(dim=2, keepdim=True)
    return (points - low) * (1 - 2 * MARGIN) / torch.where(extent > 0, extent, 1) + MARGIN


class Episode:
    """Tours of a batch of instances (batch, n, 2) while they grow, as both levels see them."""

    def __init__(self, net: Htsp, coords: Tensor, memory_gb: float, *, augment: bool = True) -> None:
        self.net, self.memory_gb, self.augment = net, memory_gb, augment
        self.tours = Tours(coords.cpu().numpy(), net.fragment, net.added, net.neighbours)
        self._like = next(net.parameters())

    def state(self) -> Tensor:
        """(batch, n, 8), for the upper level."""
        return torch.from_numpy(self.tours.state()).to(self._like)

    def grow(self, action: Tensor) -> tuple[Tensor, Tensor]:
        """Let tours grow where actions (batch, 2) say; returns the fragments (batch, m, 2), and growth, float64."""
        nodes = torch.from_numpy(self.tours.open(place_of(action).double().cpu().numpy()))
        points = torch.from_numpy(self.tours.coords).gather(1, nodes[..., None].expand(-1, -1, 2))
        points = fit_to_square(points).to(self._like)
        order = solve_paths(self.net, points, self.memory_gb, augment=self.augment)
        return points, torch.from_numpy(self.tours.close(nodes.gather(1, order).numpy()))


def grow(net: Htsp, batch: TspBatch, decoding: Decoding, memory_gb: float, first: int) -> Tensor:
    """Tours (batch, n), each step where the upper level finds it best.

    Raises NeurouteError for other networks.
    """
    if not isinstance(net, Htsp):
        raise NeurouteError(f"method 'grow' is for Htsp, not for {type(net).__name__}")
    episode = Episode(net, batch.coords, memory_gb)
    while not episode.tours.is_complete():
        episode.grow(net.upper.act(episode.state()))
    return torch.from_numpy(episode.tours.tours).to(batch.coords.device)
