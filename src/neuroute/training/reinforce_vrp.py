"""Reinforcement learning for the 16 vehicle routing problems, with the loss that balances experts (MVMoE, Section 4).

Each batch is of one of its stage's variants, all of them equally likely.  What is learnt from is the mean REINFORCE
loss of the batch and, weighed by `Reinforced.balance`, the sum over encoder layers and decisions of the balance loss
(Equations 3 and 19), as in the published code.  There the last way back to the depot, which is certain, is a decision
more; here it goes without saying.

Gates draw: noise of each token, and whether a light decoder runs its experts.  Where a batch takes two passes, they
draw the same in both, see `networks.blocks.routing`, as in one with gradients; the draws are those of a generator that
is seeded by the run and the number of the batch, so a run that is killed ends with the same weights.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from neuroute.core.device import stream_seed
from neuroute.core.errors import NeurouteError
from neuroute.datasets.streams import BACKHAULS_ONE_IN
from neuroute.decoding.environment import BYTES, Batch, precision_of
from neuroute.networks.blocks.layers import BatchNorm
from neuroute.networks.blocks.routing import Gate, Replay, Routing, Tape
from neuroute.problems.vrp import Variant
from neuroute.training.batches import Scheme
from neuroute.training.policy_gradient import AuxiliaryLoss, Decisions
from neuroute.training.reinforce import BatchSpec, Reinforcement


def most_starts(variant: str, n: int) -> int:
    """Customers of an instance that solutions may start at: those that are more than a pick-up."""
    return n - n // BACKHAULS_ONE_IN if Variant(variant).switches.backhaul else n


class BalanceLoss(AuxiliaryLoss):
    """The loss that balances experts, and gates that draw in a second pass what they drew in the first."""

    def __init__(self, weight: float, generator: torch.Generator, tours: int) -> None:
        self.weight, self.tours = weight, tours
        self.encoder, self.tape = Routing(generator, balance=weight > 0), Tape(generator)
        self._replay: Replay | None = None
        self._sampled = Routing(generator, balance=weight > 0)

    def for_sampling(self, prepared: Any) -> Any:
        return prepared._replace(routing=self._sampled)

    def for_replay(self, prepared: Any) -> Any:
        return prepared._replace(routing=self.replay())

    def replay(self) -> Replay:
        """What was drawn, from the first decision on."""
        if self._replay is None:
            self._replay = self.tape.replay(self.tours, balance=self.weight > 0)
        return self._replay

    def skip(self, decisions: Decisions) -> None:
        self.replay().skip(decisions.chosen.shape[1] // self.tours)

    def decision_loss(self) -> Tensor | None:
        return self._weighed(self._replay or self._sampled)

    def encoder_loss(self) -> Tensor | None:
        return self._weighed(self.encoder)

    def _weighed(self, routing: Routing | None) -> Tensor | None:
        return self.weight * routing.loss() if routing is not None and routing.reports else None


class VrpReinforcement(Reinforcement):
    """Batches of one variant each.

    Gates look at a whole batch: at how many of its tokens an expert gets, at all of them where an expert chooses, at
    their mean where it is the batch that is routed.  So, of a network with gates or with batch norms, whole batches are
    sampled and encoded by each of several processes, and learnt from, some moves by each of them.  What has neither, as
    POMO-MTL, learns in parts and processes as other problems' networks do.
    """

    bytes_per_tour_node = 2 * BYTES  # ways and times of all nodes are in double precision

    def __init__(self, scheme: Scheme) -> None:
        super().__init__(scheme, scheme.moments)
        self.needs_whole_batch = any(isinstance(module, Gate | BatchNorm) for module in scheme.net.modules())
        # Of each token an FFN has two copies and what experts make of them.
        self.encoder_floats = 26 if self.needs_whole_batch else Reinforcement.encoder_floats
        self.processes_per_instance = self.world.size if self.needs_whole_batch else 1
        for stage in self.training.stages if self.needs_whole_batch else ():
            n = stage.sizes[1]
            batch = stage.batch_of(n)
            self._check_memory(batch, n, 2 * batch * self._bytes_of(n, stage.starts_of(n)) / 1e9)

    def _starts(self, spec: BatchSpec) -> int:
        assert spec.variant is not None
        return min(spec.stage.starts_of(spec.n), most_starts(spec.variant, spec.n))

    def _prepare(self, spec: BatchSpec, rows: Sequence[int], batch: Batch, starts: Tensor) -> tuple[Any, AuxiliaryLoss]:
        generator = torch.Generator(self.device).manual_seed(stream_seed(self.scheme.run.seed, spec.number))
        auxiliary = BalanceLoss(self.training.balance, generator, starts.shape[1])
        prepared = self.policy.prepare(self.policy.encode(*batch.features, auxiliary.encoder), auxiliary.tape)
        first = batch.rollout(starts, precision_of(prepared))
        return self.net.begin_episode(prepared, first.context, first.current, first.action_mask), auxiliary


def reinforce(scheme: Scheme) -> VrpReinforcement:
    """Raises NeurouteError for a network of another problem, stages that name no variants or fewer starts than elites,
    and for batches that are more than the memory holds where they must be learnt from as a whole.
    """
    if scheme.net.problem != "vrp":
        raise NeurouteError(f"{scheme.run.id}: problem 'vrp' takes a network for its 16 variants, such as MvMoe")
    for stage in scheme.training.stages:
        if not stage.variants:
            raise NeurouteError(f"{scheme.run.id}: stage '{stage.name}' names no variants; give some, such as [CVRP]")
        n = stage.sizes[0]
        fewest = min(min(stage.starts_of(n), most_starts(name, n)) for name in stage.variants)
        if stage.elite and stage.elite.k > fewest:
            raise NeurouteError(
                f"{scheme.run.id}: elite.k is {stage.elite.k}; instances of {n} customers with backhauls have as few "
                f"as {fewest} solutions"
            )
    return VrpReinforcement(scheme)
