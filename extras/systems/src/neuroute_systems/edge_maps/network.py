"""Networks that say how likely each edge of the TSP is, and build nothing: a search makes tours of that."""

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.networks.base import Count, RoutingNetwork

Map = tuple[np.ndarray, np.ndarray]  # neighbours (n, k) and how likely each is, at least 0, in one direction (n, k)


class EdgeMapNetwork(RoutingNetwork):
    """encode(coords (1, n, 2), number of the instance) -> tensors, the last one how likely edges are, of which `edges`
    makes a map on the host.

    Tours come of `edge_maps.decoding`: by tree search with so many `actions` a node, or by merging and 2-opt.
    """

    own_method: ClassVar[str] = "edge_maps:tree_search"
    other_methods: ClassVar[tuple[str, ...]] = ("edge_maps:merging",)
    actions: int

    @abstractmethod
    def encode(self, coords: Tensor, first: int = 0) -> tuple[Tensor, ...]: ...

    @abstractmethod
    def edges(self, points: np.ndarray, *encoded: np.ndarray, search: bool) -> Map:
        """The map of points (n, 2) of what `encode` says of them; search: for tree search, which reads probabilities
        of rows that sum to 1, or for merging.
        """

    def decide(self, *args: Any, **kwargs: Any) -> Tensor:
        """Raises NeurouteError: there are no decisions."""
        raise NeurouteError(f"{type(self).__name__} makes a map of edges and decides on no stop")

    def count_flops(self, count: Count, coords: Tensor) -> tuple[int, int]:
        """See `base.Count`."""
        return count(lambda: self.encode(coords))[1], 0


def symmetric_map(n: int, tail: np.ndarray, head: np.ndarray, heat: np.ndarray) -> Map:
    """A map of edges (E,), each in both directions with the sum of their heats; rows sum to 1.

    Where a node has fewer edges than another its row goes on with edges of no heat to itself.
    """
    apart = tail != head
    tail, head = (np.concatenate([a[apart], b[apart]]) for a, b in ((tail, head), (head, tail)))
    pairs, place = np.unique(tail * n + head, return_inverse=True)
    sums = np.bincount(place, np.tile(heat[apart].astype(np.float64), 2), len(pairs))
    tail, head = pairs // n, pairs % n
    first = np.searchsorted(tail, np.arange(n + 1))
    k = max(1, int(np.diff(first).max(initial=0)))
    neighbours, rows = np.tile(np.arange(n)[:, None], (1, k)), np.zeros((n, k))
    slot = np.arange(len(pairs)) - first[tail]
    neighbours[tail, slot], rows[tail, slot] = head, sums
    return neighbours, rows / np.maximum(rows.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
