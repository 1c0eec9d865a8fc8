"""REINFORCE with multiple optima: sampled solutions from many starts, and a baseline that they share (POMO; icam, 3.3).

Where the memory holds the graph of a whole construction, a batch is learnt from in one pass.  Elsewhere it takes two:
the first samples solutions without a graph, the second makes the same decisions again, some moves at a time, and adds
up their gradients: what one graph gives, but for rounding, in memory that does not grow with the length.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.datasets.problem_spec import SPEC
from neuroute.decoding.environment import BYTES, ENVIRONMENT, Batch, precision_of
from neuroute.decoding.memory import autocast
from neuroute.decoding.multi_start import roll_out, start_rollout
from neuroute.networks.blocks.layers import BatchNorm
from neuroute.networks.weights import all_finite, are_finite
from neuroute.specs.objects import Dataset, Distribution
from neuroute.specs.trainings import LARGEST_BATCH, Reinforced, Stage
from neuroute.training import sampling_streams as streams
from neuroute.training.batches import Batches, Scheme
from neuroute.training.network_checks import check
from neuroute.training.policy_gradient import (
    AuxiliaryLoss,
    LogProbability,
    RecordedChoices,
    SplitBackward,
    log_probabilities,
    recompute,
    weights,
)
from neuroute.training.train import keep_stage, recall_moments

LEARNING_BYTES = 128  # of a decision and a node while it is learnt from
GRAPH_BYTES, GRAPH_CHANNEL_BYTES = 32, 64  # of a decision that is kept to be learnt from: of each node, each channel
ENCODED_BYTES = 80  # of a token's channel that a decision encodes anew
# Nodes of the decisions that are learnt from together: enough to keep the device busy; on a CPU more of them bring
# cache misses only.
MAX_NODES_PER_BATCH = {"cpu": 1 << 19, "cuda": 1 << 27}
LEAST_NODES = 1 << 15  # of them that keep a CPU busy


class BatchSpec(NamedTuple):
    """What a batch is made of."""

    stage: Stage
    n: int
    capacity: int | None
    number: int  # of the batch, which those of earlier runs are counted in
    size: int  # instances, of all processes
    variant: str | None = None  # of a VRP
    distribution: Distribution = "uniform"


class Reinforcement(Batches):
    """Batches of a run: each is a function of (run, index), the weights and the optimizer's moments.

    Several processes share a batch, each with its part of the instances; their gradients are added up.
    Weights and moments at the end of each stage are kept in `<state>/stages`.  With `moments` the optimizer goes on
    with those of that file, if it is there and the training is not to start `fresh`.
    """

    bytes_per_tour_node = BYTES  # of a tour and a node while a decision is sampled
    encoder_floats = 14  # of a token and a channel in a layer of the encoder
    processes_per_instance = 1  # that learn from the same instances, from other moves each
    training: Reinforced

    def __init__(self, scheme: Scheme, moments: Path | None = None) -> None:
        super().__init__(scheme, decoupled=scheme.training.decoupled)
        self.problem = scheme.run.validation.dataset.problem
        self.environment = ENVIRONMENT.of(self.problem)
        self.policy: Any = scheme.model  # encodes and decides as the network does; it may be compiled
        self.needs_whole_batch = any(isinstance(part, BatchNorm) for part in self.net.modules())
        if self.needs_whole_batch:
            self.processes_per_instance = self.world.size
        if moments is not None and not self.training.fresh:
            recall_moments(moments, self.net, self.optimizer)
        self._seen = streams.instances_seen(self.training, scheme.run.seed)

    # -- what the training loop asks for ------------------------------------------------------------------------

    def learning_rate(self, index: int) -> float:
        return self.training.learning_rate(index)

    def samples(self, batches: int) -> int:
        """Instances in the first so many batches."""
        return int(self._seen[batches])

    def train(self, index: int) -> tuple[Tensor, int]:
        """Train on batch `index`.  Returns the loss (a scalar on the device) and the number of updates, 1.

        Raises NeurouteError when the weights are, or lead to, what is no finite number: no decision follows from that,
        and routes of which none ever ends.
        """
        number, within = self.training.place(index)
        spec = self.batch_spec(index)
        if within == 0:
            self._notes.append({"kind": "stage", "stage": spec.stage.name})
        loss = self.accumulate(spec)
        self._update(index)
        if not all_finite(self.net):
            raise self._diverged(spec)
        self._end_batch(spec, within)
        if index + 1 == self.training.ends[number] and self.world.leads:
            keep_stage(self.scheme.state_dir, spec.stage.name, self._stage_network(), self.optimizer)
        return loss, 1

    def leave(self, batches: int) -> None:
        if self.world.leads:  # stages that never began end with the same weights
            for stage in self.training.stages[self.training.place(batches - 1)[0] :]:
                keep_stage(self.scheme.state_dir, stage.name, self._stage_network(), self.optimizer)

    def _end_batch(self, spec: BatchSpec, within: int) -> None:
        """What follows an update, the one after so many batches of its stage."""

    def _stage_network(self) -> Any:
        """The network that a stage leaves."""
        return self.net

    # -- a batch ------------------------------------------------------------------------------------------------

    def batch_spec(self, index: int) -> BatchSpec:
        stage = self.training.stages[self.training.place(index)[0]]
        number = self.training.batches_before + index
        sizes, capacities = streams.shapes(stage, self.scheme.run.seed, number, 1)
        n = int(sizes[0])
        (variant,) = streams.variants(stage, self.scheme.run.seed, number, 1) if stage.variants else (None,)
        capacity = None if capacities is None else int(capacities[0])
        kind = streams.distribution(stage, self.scheme.run.seed, number)
        return BatchSpec(stage, n, capacity, number, stage.batch_of(n), variant, kind)

    def accumulate(self, spec: BatchSpec) -> Tensor:
        """Leave the gradient of a batch in the parameters; returns this process's share of the loss, times processes.

        The loss is the mean over the batch of minus the weighed log-probabilities (icam, Eq. 7 to 11), and what is
        learnt aside.
        """
        rows = self._rows(spec)
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        if rows:
            batch, size = self.batch(spec, rows), self._instances_per_part(spec, len(rows))
            for first in range(0, len(rows), size):
                total += self._learn(spec, rows[first : first + size], batch[first : first + size])
        self.world.sum_gradients(self.net)
        return total * self.world.size

    def batch(self, spec: BatchSpec, rows: range | None = None) -> Batch:
        """Some of the instances of a batch, or all, of the training stream, in the network's precision."""
        rows = range(spec.size) if rows is None else rows
        dataset = Dataset(
            problem=self.problem,
            variant=spec.variant,
            distribution=spec.distribution,
            split="train",
            n=spec.n,
            capacity=spec.capacity,
            first=spec.number * LARGEST_BATCH + rows.start,
            count=len(rows),
        )
        batch: Batch = self.environment.batch(SPEC.of(self.problem).instances(dataset), self.device)
        return batch.to(next(self.net.parameters()).dtype)

    def _learn(self, spec: BatchSpec, rows: Sequence[int], batch: Batch) -> Tensor:
        """Add the gradient of some instances of a batch; returns their share of its loss."""
        starts = self._first_stops(spec, rows, batch)
        with autocast(self.device, self.training.precision):
            prepared, auxiliary = self._prepare(spec, rows, batch, starts)
        if not are_finite(field for field in prepared if isinstance(field, Tensor)):
            raise self._diverged(spec)
        split = SplitBackward(prepared)
        learn = self._learn_in_one_pass if self._in_one_pass(spec, len(rows)) else self._learn_in_two_passes
        total = learn(spec, rows, batch, starts, split, auxiliary)
        encoder_loss = auxiliary.encoder_loss() if self._learns_from(0) else None
        split.backward(encoder_loss)
        return total if encoder_loss is None else total + encoder_loss.detach()

    def _learn_in_one_pass(
        self,
        spec: BatchSpec,
        rows: Sequence[int],
        batch: Batch,
        starts: Tensor,
        split: SplitBackward,
        auxiliary: AuxiliaryLoss,
    ) -> Tensor:
        """Sample solutions with their graph; returns the decisions' share of the loss."""
        draw, logs = streams.drawing(self._uniform(spec, rows, starts.shape[1], self._moves(spec))), []
        rollout = start_rollout(self.net, batch, starts, precision_of(split.prepared))
        with autocast(self.device, self.training.precision):
            while not rollout.done():
                prepared = auxiliary.for_sampling(split.detached())
                logits = self.policy.decide(prepared, rollout.context, rollout.current, rollout.action_mask)
                probabilities = streams.probabilities_of(logits.detach())
                stops = draw(probabilities)
                logs.append(LogProbability.apply(logits, probabilities, stops))  # type: ignore[no-untyped-call]
                rollout.step(stops)
        weight = self._weights(spec, rows, batch, batch.lengths(rollout.solutions())) / spec.size
        loss = -(weight.to(logs[0].dtype) * torch.stack(logs).sum(dim=0)).sum()
        if (balance := auxiliary.decision_loss()) is not None:
            loss = loss + balance
        loss.backward()
        return loss.detach().double()

    def _learn_in_two_passes(
        self,
        spec: BatchSpec,
        rows: Sequence[int],
        batch: Batch,
        starts: Tensor,
        split: SplitBackward,
        auxiliary: AuxiliaryLoss,
    ) -> Tensor:
        """Sample solutions, then make the same decisions with their graph; returns the decisions' share of the loss."""
        prepared = split.prepared
        recorded = RecordedChoices(streams.sampling(self._uniform(spec, rows, starts.shape[1], self._moves(spec))))
        with torch.no_grad(), autocast(self.device, self.training.precision):
            lengths = batch.lengths(roll_out(self.policy, prepared, batch, starts, recorded))
        stops, weight = recorded.stops, self._weights(spec, rows, batch, lengths) / spec.size
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        rollout = start_rollout(self.net, batch, starts, precision_of(prepared))
        moves = min(self._moves_per_part(spec, len(rows)), -(-len(stops) // self.processes_per_instance))
        for number, decisions in enumerate(recompute(rollout, stops, moves)):
            if not self._learns_from(number):
                auxiliary.skip(decisions)
                continue
            with autocast(self.device, self.training.precision):
                logs = log_probabilities(self.policy, auxiliary.for_replay(split.detached()), decisions)
            loss = -(weight.to(logs.dtype)[:, None] * logs.unflatten(1, (-1, starts.shape[1]))).sum()
            if (balance := auxiliary.decision_loss()) is not None:
                loss = loss + balance
            loss.backward()
            total += loss.detach()
        return total

    def _uniform(
        self, spec: BatchSpec, rows: Sequence[int], *each: int, what: streams.Draw = streams.Draw.SAMPLE
    ) -> Tensor:
        """What is drawn of these rows of a batch, which has one for each image of an instance: (rows, *each)."""
        every = spec.size * spec.stage.images
        return streams.noise_on(self.device, self.scheme.run.seed, spec.number, rows, every, each, what)

    def _diverged(self, spec: BatchSpec) -> NeurouteError:
        return NeurouteError(
            f"{self.scheme.run.id}: diverged at batch {spec.number}, stage '{spec.stage.name}': weights or scores are "
            "not finite; lower the learning rate, or set `clip`"
        )

    # -- what may differ from batch to batch --------------------------------------------------------------------

    def _starts(self, spec: BatchSpec) -> int:
        """Solutions of an instance."""
        return spec.stage.starts_of(spec.n)

    def _first_stops(self, spec: BatchSpec, rows: Sequence[int], batch: Batch) -> Tensor:
        """Where the solutions (batch, starts) begin."""
        return batch.start_nodes(self._starts(spec))

    def _moves(self, spec: BatchSpec) -> int:
        """The most decisions that a solution takes."""
        return self.environment.max_moves(spec.n)

    def _weights(self, spec: BatchSpec, rows: Sequence[int], batch: Batch, lengths: Tensor) -> Tensor:
        """What log-probabilities (batch, starts) are weighed with, for a loss that is the sum over them."""
        return weights(lengths, spec.stage.elite, scaled=self.training.scaled)

    def _prepare(self, spec: BatchSpec, rows: Sequence[int], batch: Batch, starts: Tensor) -> tuple[Any, AuxiliaryLoss]:
        """What the decisions of instances share, with the graph of its encoder, and what is learnt besides."""
        return self.policy.prepare(self.policy.encode(*batch.features)), AuxiliaryLoss()

    def _rows(self, spec: BatchSpec) -> range:
        """The instances of a batch that this process learns from."""
        return self.world.part(spec.size) if self.processes_per_instance == 1 else range(spec.size)

    def _learns_from(self, part: int) -> bool:
        """Whether this process learns from this part of its instances' moves."""
        return part % self.processes_per_instance == self.world.rank % self.processes_per_instance

    # -- memory -------------------------------------------------------------------------------------------------
    # Half of it is for the encoder's graph and for solutions while they are sampled, half for the decisions' graphs.

    @property
    def _half(self) -> float:
        return self.scheme.memory_gb * 1e9 / 2

    def _in_one_pass(self, spec: BatchSpec, instances: int) -> bool:
        """Whether so many instances are learnt from in one pass: not where processes share their moves."""
        return self.processes_per_instance == 1 and instances <= self._graphs(spec)

    def _graphs(self, spec: BatchSpec) -> int:
        """Instances whose whole constructions keep their graphs: one pass is enough for so many."""
        decisions = self._starts(spec) * self._moves(spec)
        return int(self._half / (decisions * self._bytes_of_decision(spec, GRAPH_BYTES)))

    def _instances_per_part(self, spec: BatchSpec, count: int) -> int:
        """How many of so many instances are in hand at a time.

        On a CPU they may be as few as one pass takes, if they keep it busy.  Norms over a batch look at all of it,
        unless the memory is too small.
        """
        starts, graphs = self._starts(spec), self._graphs(spec)
        nodes, in_memory = starts * self.environment.nodes(spec.n), self._half / self._bytes_of(spec.n, starts)
        if self.needs_whole_batch:
            return max(1, min(count, int(in_memory)))
        fit = max(1, int(min(in_memory, MAX_NODES_PER_BATCH[self.device.type] / nodes)))
        busy = self.device.type == "cpu" and graphs * nodes >= LEAST_NODES
        return min(fit, graphs) if busy and graphs < count else fit

    def _moves_per_part(self, spec: BatchSpec, instances: int) -> int:
        """Moves of so many instances that are learnt from together where one pass is too much."""
        decisions = instances * self._starts(spec)
        nodes = self.environment.nodes(spec.n) + self.net.decision_tokens
        most = MAX_NODES_PER_BATCH[self.device.type] / (decisions * nodes)
        return max(1, int(min(self._half / (decisions * self._bytes_of_decision(spec, LEARNING_BYTES)), most)))

    def _bytes_of_decision(self, spec: BatchSpec, of_node: int) -> int:
        """Of its graph, with so many of each node."""
        of_channel = GRAPH_CHANNEL_BYTES + ENCODED_BYTES * self.net.decision_tokens
        each: int = of_node * self.environment.nodes(spec.n) + of_channel * self.net.width
        return each

    def _bytes_of(self, n: int, starts: int) -> int:
        """Of the encoder's graph of one instance, and of its solutions while they are sampled.

        About `encoder_floats` per token, channel and layer, and 4 per pair of tokens and layer where attention has a
        bias.
        """
        nodes = self.environment.nodes(n)
        encoded: int = 4 * self.net.depth * nodes * (self.encoder_floats * self.net.width + 4 * nodes)
        return encoded + starts * (self.bytes_per_tour_node * nodes + 12 * self.environment.max_moves(n))


def reinforce(scheme: Scheme) -> Reinforcement:
    """Reinforcement learning for the TSP and the CVRP: solutions from every node, or every customer (POMO; icam)."""
    check(scheme)
    return Reinforcement(scheme, scheme.moments)
