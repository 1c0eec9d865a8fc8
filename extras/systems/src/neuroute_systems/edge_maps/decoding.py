"""Tours of maps of edges: by tree search (Fu et al., 2021), or by merging edges and 2-opt (Sun and Yang, 2023)."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.decoding.memory import autocast, device_of
from neuroute.decoding.tsp import TspBatch
from neuroute.solvers.base import check_map
from neuroute.specs.objects import Decoding
from neuroute_systems.edge_maps.network import EdgeMapNetwork

MOST_MOVES = 1000  # of 2-opt, as published
# (coordinates (n, 2) float64, neighbours (n, k), probabilities (n, k), number of the instance) -> tour (n,)
Build = Callable[[np.ndarray, np.ndarray, np.ndarray, int], np.ndarray]


def tree_search(net: EdgeMapNetwork, batch: TspBatch, decoding: Decoding, memory_gb: float, first: int) -> Tensor:
    """Tours (batch, n) that a search of the network's actions finds on its map.  Raises NeurouteError as `_build`."""
    from neuroute_systems.edge_maps.tree_search import search  # numba takes half a second

    def build(points: np.ndarray, neighbours: np.ndarray, heat: np.ndarray, number: int) -> np.ndarray:
        return search(points, neighbours, heat, net.actions, number)

    return _build(net, batch, first, True, build)


def merging(net: EdgeMapNetwork, batch: TspBatch, decoding: Decoding, memory_gb: float, first: int) -> Tensor:
    """Tours (batch, n) of the likeliest edges, improved by 2-opt.  Raises NeurouteError as `_build`."""
    from neuroute_systems.edge_maps.merging import merge, two_opt  # numba takes half a second

    def build(points: np.ndarray, neighbours: np.ndarray, heat: np.ndarray, number: int) -> np.ndarray:
        tour: np.ndarray = two_opt(points, merge(points, neighbours, heat), MOST_MOVES)
        return tour

    return _build(net, batch, first, False, build)


def _build(net: EdgeMapNetwork, batch: TspBatch, first: int, search: bool, build: Build) -> Tensor:
    """Map the instances one at a time: none depends on which others there are.

    Raises NeurouteError for networks that make no maps, and for maps that are not finite.
    """
    if not isinstance(net, EdgeMapNetwork):
        raise NeurouteError(f"tours of a map of edges: {type(net).__name__} makes no map")
    tours = []
    with autocast(device_of(net), "fp32"):
        for i in range(len(batch)):
            coords = batch.coords[i : i + 1]
            encoded = net.encode(coords, first + i)
            points, *arrays = (part[0].cpu().numpy() for part in (coords, *encoded))
            points = points.astype(np.float64)
            check_map(arrays[-1])
            tours.append(build(points, *net.edges(points, *arrays, search=search), first + i))
    return torch.from_numpy(np.stack(tours)).to(batch.coords.device)
