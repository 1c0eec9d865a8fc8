"""The decisions of one instance, one at a time and at any point of its construction, for what they take to be measured.

Which nodes are left, and the weights, are of no account: only how many there are.
"""

from typing import Any

import torch
from torch import Tensor

from neuroute.datasets.streams import cvrp_dataset, dataset_coordinates
from neuroute.decoding.cvrp import CvrpBatch
from neuroute.decoding.environment import choose_best, empty_mask
from neuroute.decoding.greedy import closed_tour_rows
from neuroute.evaluation.accounting.counts import Counts
from neuroute.networks.base import MultiStartNetwork, PathNetwork, RoutingNetwork
from neuroute.specs.objects import Dataset


class OneSolution:
    """A tour of the TSP or, with demands, a solution of the CVRP, by a network that reads what is left.

    coords (1, nodes, 2), demand (1, nodes) in shares of the capacity, the depot first.
    """

    share = 1.0  # of the instance's solutions that are built at once; the others take as long again

    def __init__(self, net: PathNetwork, coords: Tensor, *demand: Tensor) -> None:
        self.net, self.features, self.nodes = net, (coords, *demand), coords.shape[1]
        self.most = self.nodes + 1  # tokens of the first decision: what is left, where it is and where it ends
        self.fewest = 3 if demand else 4  # tokens of the last one that is computed
        self.context = [torch.full_like(share[:, 0], 0.5) for share in demand]
        self.scale = net.attention_scale(self.nodes)

    def encode(self) -> Tensor:
        """What is computed once, and kept for all decisions."""
        return closed_tour_rows(self.net.encode(*self.features))

    def state(self, encoded: Tensor, tokens: int) -> Tensor:
        """What is there before a decision on so many tokens."""
        return encoded[:, -tokens:]  # as in construction: a view, which moves on by a row with every decision

    def decide(self, state: Tensor) -> Tensor:
        """The decision; may be repeated on the same state."""
        logits: Tensor = self.net.decide(state, *self.context, self.scale)
        return logits.flatten(1).argmax(dim=1)

    def flops(self, counts: Counts, tokens: int) -> float:
        """Of one decision, for all of the instance's solutions."""
        return counts.decision(tokens)


class Starts:
    """Solutions from every start, `tours` of them at a time; coords (1, nodes, 2), of the CVRP shares (1, nodes) too.

    They do not shrink: every decision is on all nodes, those that were visited left out afterwards.  Of the CVRP the
    decisions that serve a customer are counted, not the ways back to the depot: how many these are, weights decide.
    """

    def __init__(self, net: MultiStartNetwork, coords: Tensor, *demand: Tensor, tours: int | None = None) -> None:
        self.net, self.features, self.nodes = net, (coords, *demand), coords.shape[1]
        self.most = self.nodes + 1
        self.fewest = 3 if demand else 4
        self.starts = self.nodes - len(demand)  # every node, every customer
        self.tours = self.starts if tours is None else min(tours, self.starts)
        self.share = self.tours / self.starts

    def encode(self) -> Any:
        return self.net.prepare(self.net.encode(*self.features))

    def state(self, encoded: Any, tokens: int) -> Any:
        """The same nodes are closed to all tours: a real set of tours would have closed as many, others to each.

        Vehicles are half full.
        """
        cvrp = self.starts < self.nodes
        starts = torch.arange(self.nodes - self.starts, self.nodes, device=encoded.nodes.device)[None, : self.tours]
        mask = empty_mask(starts, self.nodes, encoded.nodes.dtype)
        mask[..., cvrp : self.most - tokens + 1] = -torch.inf
        context = torch.full_like(starts, 0.5, dtype=encoded.nodes.dtype) if cvrp else starts
        return encoded, context, starts, mask

    def decide(self, state: Any) -> Tensor:
        return choose_best(self.net.decide(*state))

    def flops(self, counts: Counts, tokens: int) -> float:
        return self.starts * counts.decision(self.most)


Construction = OneSolution | Starts  # one instance, which a network builds a solution of


def pose_single_step(
    net: RoutingNetwork, dataset: Dataset, nodes: int | None = None, tours: int | None = None
) -> Construction:
    """The first instance of a TSP or CVRP data set, or that of its first so many nodes, on the network's device."""
    one, place = dataset.model_copy(update={"count": 1}), next(net.parameters()).device
    if dataset.problem == "cvrp":
        batch = CvrpBatch.of(cvrp_dataset(one), place)
        features: tuple[Tensor, ...] = (batch.coords[:, :nodes], batch.share[:, :nodes])
    else:
        features = (torch.from_numpy(dataset_coordinates(one)).to(place)[:, :nodes],)
    if net.multi_start:
        return Starts(net, *features, tours=tours)  # type: ignore[arg-type]
    return OneSolution(net, *features)  # type: ignore[arg-type]
