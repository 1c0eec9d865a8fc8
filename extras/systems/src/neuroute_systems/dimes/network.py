"""DIMES: a map of edges that a few steps by the lengths of its tours make one of the instance (Qiu et al., 2022)."""

from copy import deepcopy
from typing import NamedTuple

import numpy as np
import torch
from scipy.special import softmax
from torch import Tensor
from torch.optim import AdamW

from neuroute.core.device import stream_seed
from neuroute.networks.base import Count
from neuroute.solvers.base import check_map
from neuroute_systems.blocks.gated_graph import EdgeHead, GatedGraph, nearest_nodes
from neuroute_systems.edge_maps.network import EdgeMapNetwork, Map

KEPT, LEAST = 5, 1e-4  # edges of a node that are searched, and how likely each of them is at least
INNER_DECAY = 1e-4  # of the weights in steps on one instance


class Instance(NamedTuple):
    """What the tours of one instance are drawn of."""

    points: np.ndarray  # (n, 2) float64
    neighbours: np.ndarray  # (n, k)
    random: np.ndarray  # the state of draws


class Dimes(EdgeMapNetwork):
    """Says of the edges to the nearest nodes how a tour that is drawn should weigh them.

    D (5 W^2 + 9 W) + 2 W^2 + 8 W + 1 parameters: 67,201 as published.

    At a test the embeddings of edges and the head go on to learn from that instance's drawn tours: `search_steps` of
    AdamW with `search_tours` each (active search).  Norms are over one instance, in training and later, as the
    published tests take them.
    """

    def __init__(
        self,
        depth: int = 12,
        width: int = 32,
        neighbours: int = 50,
        inner_rate: float = 0.01,
        search_steps: int = 0,
        search_tours: int = 500,
        actions: int = 100,
        train_nodes: int = 500,
    ) -> None:
        super().__init__()
        self.width, self.depth, self.train_nodes = width, depth, train_nodes
        self.neighbours, self.inner_rate, self.actions = neighbours, inner_rate, actions
        self.search_steps, self.search_tours = search_steps, search_tours
        self.graph = GatedGraph(depth, width, 2, 1, norm="instance")
        self.head = EdgeHead(width)

    def embed(self, coords: Tensor) -> tuple[Tensor, Tensor]:
        """coords (1, n, 2) -> ends of edges (n, k) int64, and their embeddings (n, k, W)."""
        neighbours, apart = nearest_nodes(coords, self.neighbours)
        return neighbours[0], self.graph(coords, apart[..., None], neighbours)[0]

    def encode(self, coords: Tensor, first: int = 0) -> tuple[Tensor, ...]:
        """Ends of edges (1, n, k), and theta (1, n, k), after the search; draws hang on the instance's number."""
        with torch.inference_mode(mode=False):
            coords = coords.clone()
            with torch.no_grad():
                neighbours, edges = self.embed(coords)
            head = self.head
            if self.search_steps:
                instance = instance_of(coords, neighbours, stream_seed(0, first))
                edges, head = self.learn(instance, edges, self.search_steps, self.search_tours)
            with torch.no_grad():
                return neighbours[None], head(edges)[None, ..., 0]

    def learn(self, instance: Instance, edges: Tensor, steps: int, tours: int) -> tuple[Tensor, EdgeHead]:
        """Copies of edges (n, k, W) and of the head after so many steps on the instance, of so many tours each."""
        head = deepcopy(self.head)
        edges = edges.detach().clone().requires_grad_()
        optimizer = AdamW([edges, *head.parameters()], lr=self.inner_rate, weight_decay=INNER_DECAY, fused=True)
        for _ in range(steps):
            follow(instance, edges, head, tours)
            optimizer.step()
            optimizer.zero_grad()
        return edges, head

    def edges(self, points: np.ndarray, *encoded: np.ndarray, search: bool) -> Map:
        """See `EdgeMapNetwork`.  For a search the best edges of a node remain, and are not too unlike."""
        neighbours, theta = encoded
        theta = theta.astype(np.float64)
        if not search:
            return neighbours, softmax(theta, axis=1)
        best = np.argsort(-theta, axis=1, kind="stable")[:, :KEPT]
        neighbours, theta = (np.take_along_axis(each, best, axis=1) for each in (neighbours, theta))
        while (heat := softmax(theta, axis=1)).min() < LEAST:
            theta = theta / 2
        return neighbours, heat

    def count_flops(self, count: Count, coords: Tensor) -> tuple[int, int]:
        """See `base.Count`: a step of the search is one of the head's forward passes, and a backward pass."""
        (_, edges), embedding = count(lambda: self.embed(coords))
        return embedding + (1 + 3 * self.search_steps) * count(lambda: self.head(edges))[1], 0


def instance_of(coords: Tensor, neighbours: Tensor, seed: int) -> Instance:
    """coords (1, n, 2), neighbours (n, k)."""
    random = np.random.SeedSequence(seed).generate_state(1, np.uint64)
    return Instance(coords[0].cpu().double().numpy(), neighbours.cpu().numpy(), random)


def follow(instance: Instance, edges: Tensor, head: EdgeHead, tours: int) -> float:
    """Add the gradient of the mean length of drawn tours to that of edges (n, k, W) and head; returns the length.

    Raises NeurouteError for a map that is not finite.
    """
    from neuroute_systems.dimes.sampling import estimate  # numba takes half a second

    with torch.enable_grad():
        theta = head(edges)[..., 0]
    numbers = theta.detach().cpu().double().numpy()
    check_map(numbers)
    gradient, lengths = estimate(instance.points, instance.neighbours, numbers, tours, instance.random)
    theta.backward(torch.from_numpy(gradient).to(theta))
    return float(lengths.mean())
