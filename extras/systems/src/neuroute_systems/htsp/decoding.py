"""H-TSP at work: tours grow where the upper level says, by fragments that the lower level orders (Pan et al., 2023)."""

from dataclasses import dataclass

import numba
import numpy as np
import torch
from scipy.spatial import cKDTree
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.decoding.multi_start import multi_start
from neuroute.decoding.tsp import Coords, TspBatch, TspEnvironment, TspRollout
from neuroute.specs.objects import Decoding
from neuroute_systems.htsp.network import Htsp, place_of

# -- Tours that grow fragment by fragment, those of several instances in step, and what is seen of them (H-TSP)


class Tours:
    """Closed tours of instances with as many nodes each, which begin with node 0 and the node nearest to it.

    coords (batch, n, 2).  At each step as many nodes join all of them: `added`, more while a tour is too short to fill
    a `fragment`, fewer at the end.  They are found from node to node among the nearest `neighbours` of each, and where
    none of these is left, anew from the nearest one that is: so steps are the same for all instances.
    """

    def __init__(self, coords: np.ndarray, fragment: int, added: int, neighbours: int) -> None:
        self.coords = coords.astype(np.float64)
        self.fragment, self.added = fragment, added
        batch, n = self.coords.shape[:2]
        k = min(n, 1 + neighbours)  # a node is among its own, or nodes at its place are
        near = [cKDTree(points).query(points, k=range(1, k + 1))[1] for points in self.coords]
        self.near = np.stack(near).astype(np.int32)
        self.is_visited = np.zeros((batch, n), dtype=np.bool_)
        self.is_visited[:, 0] = True
        second = _closest_each(self.coords, self.is_visited, False, self.coords[:, 0])
        self.tours = np.stack([np.zeros(batch, np.int64), second], axis=1)
        np.put_along_axis(self.is_visited, self.tours, True, axis=1)
        self.anchors = self.tours[:, 0]  # the node at which each tour has grown
        self._old = self._rest = self.tours

    def done(self) -> bool:
        return bool(self.tours.shape[1] == self.coords.shape[1])

    def open(self, places: np.ndarray) -> np.ndarray:
        """Fragments (batch, m) that places (batch, 2) lead to: their first and their last nodes stay where they are.

        The unvisited node nearest to a place has a nearest visited one, the anchor; from there on nodes are found.  On
        both sides of them lies as much of the tour, the anchor first of what comes behind.
        """
        (batch, length), n = self.tours.shape, self.coords.shape[1]
        count = min(n - length, max(self.added, self.fragment - length))
        old_count = min(length, self.fragment - count)
        new = np.empty((batch, count), dtype=np.int64)
        aims = _closest_each(self.coords, self.is_visited, False, places)
        self.anchors = _closest_each(self.coords, self.is_visited, True, self._points(aims[:, None])[:, 0])
        for i in range(batch):
            _find(self.coords[i], self.near[i], self.is_visited[i], self.anchors[i], new[i])
        before = old_count // 2
        at = (self.tours == self.anchors[:, None]).argmax(axis=1)
        order = (at[:, None] - before + np.arange(length)) % length
        turned = np.take_along_axis(self.tours, order, axis=1)
        self._old, self._rest = turned[:, :old_count], turned[:, old_count:]
        fragments: np.ndarray = np.concatenate([self._old[:, :before], new, self._old[:, before:]], axis=1)
        return fragments

    def close(self, paths: np.ndarray) -> np.ndarray:
        """Put paths (batch, m), the fragments in another order, into the tours; returns by how much these grew."""
        self.tours = np.concatenate([paths, self._rest], axis=1)
        growth: np.ndarray = self._length(paths) - self._length(self._old)
        return growth

    def state(self) -> np.ndarray:
        """What the upper level sees of each node, (batch, n, 8); see `network.STATE`."""
        instance = np.arange(len(self.tours))[:, None]
        all_near = self.is_visited[instance[..., None], self.near].all(axis=2)
        beside = np.zeros((*self.is_visited.shape, 4))
        around = [self._points(np.roll(self.tours, shift, axis=1)) for shift in (1, -1)]
        beside[instance, self.tours] = np.concatenate(around, axis=2)
        flags = np.stack([self.is_visited, self.is_visited & ~all_near], axis=2)
        state: np.ndarray = np.concatenate([self.coords, flags, beside], axis=2)
        return state

    def _points(self, nodes: np.ndarray) -> np.ndarray:
        """Coordinates (batch, m, 2) of nodes (batch, m)."""
        points: np.ndarray = self.coords[np.arange(len(nodes))[:, None], nodes]
        return points

    def _length(self, paths: np.ndarray) -> np.ndarray:
        lengths: np.ndarray = np.linalg.norm(np.diff(self._points(paths), axis=1), axis=2).sum(axis=1)
        return lengths


@numba.njit(cache=True)
def _closest(points: np.ndarray, is_visited: np.ndarray, visited: bool, x: float, y: float) -> int:
    """The visited, or unvisited, node nearest to (x, y), of equally near ones the first; 0 if there is none."""
    best, least = 0, np.inf
    for node in range(len(points)):
        apart = (points[node, 0] - x) ** 2 + (points[node, 1] - y) ** 2
        if is_visited[node] == visited and apart < least:
            best, least = node, apart
    return best


@numba.njit(cache=True)
def _closest_each(coords: np.ndarray, is_visited: np.ndarray, visited: bool, places: np.ndarray) -> np.ndarray:
    """`_closest` to the place (2,) of each instance: int64 (batch,)."""
    nodes = np.empty(len(coords), np.int64)
    for i in range(len(coords)):
        nodes[i] = _closest(coords[i], is_visited[i], visited, places[i, 0], places[i, 1])
    return nodes


@numba.njit(cache=True)
def _find(points: np.ndarray, near: np.ndarray, is_visited: np.ndarray, anchor: int, new: np.ndarray) -> None:
    """Fill `new` with unvisited nodes, breadth first from the one nearest to the anchor, and mark them as visited."""
    count, head = 0, 0
    while count < len(new):
        if head == count:
            new[count] = _closest(points, is_visited, False, points[anchor, 0], points[anchor, 1])
            is_visited[new[count]] = True
            count += 1
        for node in near[new[head]]:
            if count < len(new) and not is_visited[node]:
                is_visited[node] = True
                new[count] = node
                count += 1
        head += 1


MARGIN = 0.05  # of the unit square, on each side of a fragment


class PathRollout(TspRollout):
    """Tours under construction in which the last node is beside the first: after either comes the other one."""

    def __init__(self, starts: Tensor, nodes: int, dtype: torch.dtype) -> None:
        super().__init__(starts, nodes, dtype)
        self._show()

    def step(self, stops: Tensor) -> None:
        self.action_mask = self._open
        super().step(stops)
        self._show()

    def select(self, parents: Tensor) -> None:
        self.action_mask = self._open
        super().select(parents)
        self._show()

    def _show(self) -> None:
        self._open, last = self.action_mask, self.action_mask.shape[2] - 1
        other = torch.where(self.current == 0, last, 0)[..., None]
        forced = ((self.current == 0) | (self.current == last))[..., None] & (self._open.gather(2, other) == 0)
        alone = torch.full_like(self._open, -torch.inf).scatter_(2, other, 0.0)
        self.action_mask = torch.where(forced, alone, self._open)


@dataclass(frozen=True)
class PathBatch(TspBatch):
    """Paths from the first to the last of coords (batch, m, 2)."""

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
    while not episode.tours.done():
        episode.grow(net.upper.act(episode.state()))
    return torch.from_numpy(episode.tours.tours).to(batch.coords.device)
