"""Training of GLOP-G's partition by the lengths that revisers leave of its routes (Ye et al., 2024)."""

import math

import numpy as np
import torch
from torch import Tensor

from neuroute.core.device import stream_seed
from neuroute.core.errors import NeurouteError
from neuroute.datasets.problem_spec import SPEC
from neuroute.decoding.cvrp import CvrpBatch
from neuroute.decoding.revision import builder, revise
from neuroute.networks.weights import check_weights, load_checkpoint
from neuroute.problems.sub_paths import path_lengths
from neuroute.problems.vrp import to_routes
from neuroute.solvers.insertion import insert_in_order
from neuroute.specs.decodings import Revision
from neuroute.specs.objects import Dataset
from neuroute.training.batches import Scheme
from neuroute.training.policy_gradient import RecordedChoices, SplitBackward, log_probabilities, recompute
from neuroute_systems.glop.decoding import PartitionRollout, walk
from neuroute_systems.glop.network import Glop, GlopPartition
from neuroute_systems.glop.system import Partitioning
from neuroute_systems.own_solutions import OwnSolutions

NODES_AT_ONCE = 1 << 24  # of decisions that are learnt from together
PATHS_AT_ONCE = 4096  # that a reviser builds together


class PartitioningBatches(OwnSolutions):
    """Batches of a run: each is a function of (run, index), the weights and the optimizer's moments.

    Instances are heated one at a time, so each has norms of its own.  Each of several processes heats all, for what the
    norms remember, and learns from its part.
    """

    training: Partitioning
    net: GlopPartition

    def __init__(self, scheme: Scheme, revisers: Glop) -> None:
        super().__init__(scheme, decoupled=True)
        self.revisers = revisers

    def learning_rate(self, index: int) -> float:
        """Half a cosine to 0, one step an epoch."""
        epoch = index // self.training.batches_per_epoch
        return self.training.learning_rate * (1 + math.cos(math.pi * epoch / self.training.epochs)) / 2

    def train(self, index: int) -> tuple[Tensor, int]:
        first, stop = self.samples(index), self.samples(index + 1)
        dataset = Dataset(
            problem="cvrp",
            split="train",
            n=self.scheme.run.n,
            capacity=self.training.capacity,
            first=first,
            count=stop - first,
        )
        batch = CvrpBatch.of(SPEC.of("cvrp").instances(dataset), self.device)
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        rows = self.world.part(len(batch))
        for i in range(len(batch)):
            one = batch[i : i + 1]
            if i in rows:
                total += self._learn(one, stream_seed(self.scheme.run.seed, first + i), len(batch))
            else:
                with torch.no_grad():
                    self.net.encode(one.coords, one.share)
        self.world.sum_gradients(self.net)
        self._update(index)
        return total * self.world.size, 1

    def _learn(self, one: CvrpBatch, seed: int, size: int) -> Tensor:
        """Add the gradient of one instance of a batch of that size; returns its share of the loss."""
        solutions = self.training.solutions
        heat = self.net.encode(one.coords, one.share)
        split = SplitBackward(heat)
        recorded = RecordedChoices(gumbel(torch.Generator(self.device).manual_seed(seed)))
        with torch.no_grad():
            sampled = walk(self.net, heat, one, solutions, recorded)[0]
        costs = revised_costs(self.revisers, one.coords[0], sampled, self.training.revision).to(self.device)
        weight = (costs - costs.mean()) / (solutions * size)
        moves = max(1, NODES_AT_ONCE // (solutions * one.coords.shape[1]))
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        rollout = PartitionRollout(one, solutions, heat.weights.dtype)
        for decisions in recompute(rollout, recorded.stops, moves):
            logs = log_probabilities(self.net, split.detached(), decisions)  # type: ignore[arg-type]
            loss = (weight.to(logs.dtype) * logs.view(-1, solutions)).sum()
            loss.backward()
            total += loss.detach()
        split.backward()
        return total


def revised_costs(revisers: Glop, coords: Tensor, solutions: Tensor, revision: Revision) -> Tensor:
    """Lengths (solutions,), float64, of solutions (solutions, 2, V) of one instance, each route revised.

    coords (1 + V, 2), depot first.  A route starts as insertion of its customers in the order of the walk; all are
    padded with copies of the depot to the longest, or to the largest block, which add nothing to a tour that visits
    them in a row.
    """
    routes = [route for solution in solutions.cpu().numpy() for route in to_routes(solution)]
    whose = [i for i, solution in enumerate(solutions.cpu().numpy()) for _ in to_routes(solution)]
    longest = max(max(map(len, routes)) + 1, *(nodes for nodes, _ in revision.blocks))
    padded = np.zeros((len(routes), longest), dtype=np.int64)
    points = coords.cpu().numpy().astype(np.float64)
    for row, route in zip(padded, routes, strict=True):
        row[1 : 1 + len(route)] = route
        row[:] = row[insert_in_order(points[row])]
    tours = torch.from_numpy(padded).to(coords.device)
    each = coords[tours]
    places = torch.arange(longest, device=coords.device).expand(len(routes), -1)
    flips = revision.flips == "blocks"
    with torch.inference_mode():
        for nodes, iterations in revision.blocks:
            places = revise(
                builder(revisers, revisers.decide),
                revisers.encode,
                each,
                places,
                nodes,
                iterations,
                flips=flips,
                batch_size=PATHS_AT_ONCE,
            )
    along = each.double().gather(1, places[..., None].expand(-1, -1, 2)).clone()
    lengths = path_lengths(torch.cat([along, along[:, :1]], dim=1))
    total = torch.zeros(len(solutions), dtype=torch.float64, device=coords.device)
    return total.index_add_(0, torch.tensor(whose, device=coords.device), lengths)


def gumbel(generator: torch.Generator):  # type: ignore[no-untyped-def]
    """Choose by the probabilities of the logits."""

    def choose(logits: Tensor) -> Tensor:
        noise = torch.empty_like(logits).exponential_(generator=generator)
        return (logits - noise.log()).argmax(dim=-1)

    return choose


def partitioning(scheme: Scheme) -> PartitioningBatches:
    """Raises NeurouteError for a network that makes no partitions, and for a start of no revisers or damaged."""
    run = scheme.run
    scheme.require(GlopPartition)
    if scheme.start is None:
        raise NeurouteError(f"{run.id}: routes are revised: let the run start from one that trains GLOP's revisers")
    revisers, about = load_checkpoint(scheme.start, trusted=())
    check_weights(scheme.start, revisers, about["run"])
    if not isinstance(revisers, Glop):
        raise NeurouteError(f"{scheme.start}: holds no revisers of GLOP, by which {run.id} is judged")
    return PartitioningBatches(scheme, revisers.to(scheme.device).eval().requires_grad_(False))
