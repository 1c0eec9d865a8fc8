"""The TSP for decoding: batches, tours from many starts, and greedy tours of path networks."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from neuroute.decoding.environment import Batch, Environment
from neuroute.decoding.greedy import Arrive, Decide, greedy_tours
from neuroute.decoding.memory import pair_floats
from neuroute.decoding.rollout import empty_mask, mask_stops, no_numbers, pick_masks, pick_tours
from neuroute.networks.base import PathNetwork
from neuroute.specs.objects import Decoding

Coords = np.ndarray | Tensor


class TspRollout:
    """Tours under construction; `context` is where they began.  The last stop goes without saying: it is not asked."""

    def __init__(self, starts: Tensor, nodes: int, dtype: torch.dtype) -> None:
        self.context = self.current = starts
        self.mask = mask_stops(empty_mask(starts, nodes, dtype), starts)
        self._stops = [starts]

    def is_complete(self) -> bool:
        return len(self._stops) >= self.mask.shape[2] - 1

    def go(self, stops: Tensor) -> None:
        self.current, self.mask = stops, mask_stops(self.mask, stops)
        self._stops.append(stops)

    def pick(self, parents: Tensor) -> None:
        self.context, self.current, *self._stops = (
            pick_tours(each, parents) for each in (self.context, self.current, *self._stops)
        )
        self.mask = pick_masks(self.mask, parents)

    def solutions(self) -> Tensor:
        """(batch, tours, n).  Raises NeurouteError unless one stop is left, as after scores that are no numbers."""
        is_open = self.mask == 0
        if not bool((is_open.sum(dim=-1) == 1).all()):
            raise no_numbers()
        return torch.stack([*self._stops, is_open.int().argmax(dim=-1)], dim=-1)


@dataclass(frozen=True)
class TspBatch(Batch):
    @property
    def features(self) -> tuple[Tensor, ...]:
        return (self.coords,)

    def start_nodes(self, number: int) -> Tensor:
        return torch.arange(number, device=self.coords.device).expand(len(self.coords), -1)

    def rollout(self, starts: Tensor, dtype: torch.dtype) -> TspRollout:
        return TspRollout(starts, self.coords.shape[1], dtype)

    def lengths(self, solutions: Tensor) -> Tensor:
        return tour_lengths(self.coords, solutions)


class TspEnvironment(Environment[TspBatch]):
    """Instances are coordinates (count, n, 2) anywhere, solutions tours (n,)."""

    noun, depots = "nodes", 0

    def size(self, instances: Coords) -> int:
        return instances.shape[1]

    def shape(self, n: int) -> tuple[int, ...]:
        return (n,)

    def batch(self, instances: Coords, device: torch.device) -> TspBatch:
        return TspBatch(torch.as_tensor(instances).to(device))

    def max_moves(self, n: int) -> int:
        return n - 2  # the last stop goes without saying

    def build_greedily(
        self, net: PathNetwork, batch: TspBatch, decoding: Decoding, memory_gb: float, first: int
    ) -> Tensor:
        """Tours (batch, n); what a network keeps of pairs of nodes is computed once."""
        pairs: Callable[[Tensor], Tensor | None] | None = None
        if decoding.cached:
            pairs = partial(net.pairs, floats=pair_floats(memory_gb))
        decide = decide_for(net, decoding, batch.coords.shape[1])
        return greedy_tours(decide, encode(net, batch.coords, decoding, first), pairs, arrive_of(net))


def encode(net: PathNetwork, coords: Tensor, decoding: Decoding, first: int) -> Tensor:
    """What `decide` reads of coords (batch, n, 2), stretched by the decoding's factor; lengths are of the original.

    `first`: the place of the first instance in its test set, for a network whose embeddings are random.
    """
    net.draw, net.first = decoding.draw, first
    return encode_again(net, coords, decoding)


def encode_again(net: PathNetwork, coords: Tensor, decoding: Decoding) -> Tensor:
    """As `encode`, of parts of instances: with the draws that are set already."""
    if decoding.rescale == "best":
        raise ValueError("the best factor has to be looked up before decoding")
    rows: Tensor = net.encode(coords * decoding.rescale)
    return rows


def decide_for(net: PathNetwork, decoding: Decoding, nodes: int) -> Decide:
    """The network's decisions on instances of `nodes` nodes.

    The entropy scaling factor follows what is left of an instance (pens, Table 3: BQ changes at the training size
    too), the log(n) factor of scaling the instance.
    """
    if decoding.esf:
        return lambda rows, *pairs: net.decide(rows, math.log(rows.shape[1]) / math.log(net.train_nodes), *pairs)
    scale = net.attention_scale(nodes) if decoding.log_n else 1.0
    return lambda rows, *pairs: net.decide(rows, scale, *pairs)


def arrive_of(net: PathNetwork) -> Arrive | None:
    """How rows learn of a new stop, where the network remembers."""
    return net.arrive if net.remembers else None


def tour_lengths(coords: Tensor, tours: Tensor) -> Tensor:
    """Lengths (batch, tours), float64, of closed tours (batch, tours, n) over coords (batch, n, 2).

    One stop after the other: of all points at once there would be three times as many numbers as of the tours.
    """
    points = coords.double()
    instance = torch.arange(len(coords), device=coords.device)[:, None]
    total = torch.zeros(tours.shape[:2], dtype=torch.float64, device=coords.device)
    for stop in range(tours.shape[2]):
        total += (points[instance, tours[..., stop]] - points[instance, tours[..., stop - 1]]).norm(dim=-1)
    return total


TSP = TspEnvironment()
