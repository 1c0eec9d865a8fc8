"""REINFORCE with a greedy rollout as baseline: of a frozen copy of the best weights so far (Kool et al., 2019).

A sampled solution is weighed by how much shorter it is than the copy's greedy one of the same instance.  At the end of
each epoch the weights take the copy's place if they build shorter solutions of instances that neither learns from.  The
copy is what is left of a stage, and of the run.
"""

import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import ttest_rel
from torch import Tensor, nn

from neuroute.datasets.problem_spec import SPEC
from neuroute.decoding.environment import Batch
from neuroute.decoding.memory import autocast, bytes_of_decision
from neuroute.decoding.multi_start import images_of, multi_start, roll_out
from neuroute.specs.objects import Dataset
from neuroute.specs.trainings import Stage
from neuroute.training.batches import Scheme
from neuroute.training.network_checks import check
from neuroute.training.policy_gradient import AuxiliaryLoss
from neuroute.training.reinforce import BatchSpec, Reinforcement
from neuroute.training.sampling_streams import Draw
from neuroute_systems.rollouts.spec import GreedyBaseline, Rollouts

# -- The policy that others are compared with: the best weights so far, until better ones come (Kool et al., 2019)


class BaselinePolicy:
    """A frozen copy of the best weights so far, which the present ones challenge.

    Args:
        net: the network that is trained.
        costs: (network, number, *what) -> (count,): of greedy solutions of the instances of the challenge with that
            number; `what` else they depend on is given with each challenge.
        alpha, margin: when present weights take the place of the copy's, see `is_shorter`.
        agree: makes what this process finds the answer of all: rounding may differ from process to process.
    """

    def __init__(
        self,
        net: nn.Module,
        costs: Callable[..., np.ndarray],
        alpha: float | None,
        margin: float = 0.0,
        agree: Callable[[bool], bool] = bool,
    ) -> None:
        self.net, self.costs, self.alpha, self.margin, self.agree = net, costs, alpha, margin, agree
        self.frozen: Any = copy.deepcopy(net).eval().requires_grad_(False)
        self.number = 0  # of replacements, and of the present challenge
        self._before: tuple[Any, np.ndarray] | None = None  # the copy's costs, and what they depend on

    def challenge(self, *what: Any) -> tuple[float, bool]:
        """Compare the weights.  Returns the mean cost of the present ones, and whether they are now the copy's."""
        if self._before is None or self._before[0] != what:
            self._before = what, self.costs(self.frozen, self.number, *what)
        training = self.net.training
        present = self.costs(self.net.eval(), self.number, *what)
        self.net.train(training)
        replaced = self.agree(is_shorter(present, self._before[1], self.alpha, self.margin))
        if replaced:
            self.frozen.load_state_dict(self.net.state_dict())
            self.number, self._before = self.number + 1, None
        return float(present.mean()), replaced

    def state(self) -> dict[str, Any]:
        return {"frozen": self.frozen.state_dict(), "number": self.number}

    def restore(self, state: dict[str, Any]) -> None:
        self.frozen.load_state_dict(state["frozen"])
        self.number, self._before = state["number"], None


def is_shorter(present: np.ndarray, before: np.ndarray, alpha: float | None, margin: float = 0.0) -> bool:
    """Whether costs (count,) are lower than those before by more than `margin` in the mean.

    alpha: what a one-sided paired t-test must stay below as well; None: no test.
    """
    if not present.mean() < before.mean() - margin:
        return False
    if alpha is None or np.ptp(present - before) == 0:  # no spread, no doubt
        return True
    return bool(ttest_rel(present, before, alternative="less").pvalue < alpha)


def running_mean(before: Tensor | None, costs: Tensor, past: float) -> Tensor:
    """The mean of costs, of which `past` is the mean before, where there was one."""
    mean = costs.detach().mean()
    return mean if before is None else past * before + (1 - past) * mean


CHALLENGES = 1 << 32  # number of the first instance that weights are compared on: far behind those of validation


class RolloutBaseline(Reinforcement):
    """Solutions of each of an instance's images, as many as the stage has `starts`.

    Starts of the TSP are random nodes, others for the copy than for what is sampled; routes of the CVRP begin where the
    network says.
    """

    training: Rollouts

    def __init__(self, scheme: Scheme, moments: Path | None = None) -> None:
        super().__init__(scheme, moments)
        self.rule: GreedyBaseline = self.training.baseline
        self._most_images = max(stage.images for stage in self.training.stages)
        self.baseline = BaselinePolicy(
            self.net,
            self._greedy_lengths,
            self.rule.alpha,
            self.rule.margin,
            agree=lambda shorter: self.world.tell(float(shorter), self.device) > 0,
        )

    # -- what the training loop asks for ------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        return self.baseline.state()

    def restore(self, state: dict[str, Any]) -> None:
        self.baseline.restore(state)

    def _stage_network(self) -> Any:
        return self.baseline.frozen

    def _end_batch(self, spec: BatchSpec, within: int) -> None:
        if (within + 1) % spec.stage.batches_per_epoch:
            return
        length, replaced = self.baseline.challenge(spec.stage)
        self._notes.append({"kind": "baseline", "length": length, "replaced": replaced})

    def _greedy_lengths(self, net: Any, number: int, stage: Stage) -> np.ndarray:
        """The best of the images, (instances,), on those of the challenge with that number."""
        dataset = Dataset(
            problem=self.problem,
            split="val",
            n=stage.sizes[1],
            capacity=stage.capacities and stage.capacities[1],
            first=CHALLENGES + number * self.rule.instances,
            count=self.rule.instances,
        )
        spec = SPEC.of(self.problem)
        instances = spec.instances(dataset)
        return spec.lengths(instances, self._build(net, instances, stage))

    def _build(self, net: Any, instances: Any, stage: Stage) -> np.ndarray:
        """Greedy solutions (count, ...) of instances in host memory."""
        return multi_start(
            self.environment,
            net,
            instances,
            1,
            images=stage.images,
            memory_gb=self.scheme.memory_gb,
            precision=self.training.precision,
        ).numpy()

    # -- a batch ------------------------------------------------------------------------------------------------

    def _learn(self, spec: BatchSpec, rows: Sequence[int], batch: Batch) -> Tensor:
        """Every image is a row of its own, the first ones of all instances before the second ones."""
        images = spec.stage.images
        each = [row * images + image for image in range(images) for row in rows]
        return super()._learn(spec, each, batch.repeat(images))

    def _first_stops(self, spec: BatchSpec, rows: Sequence[int], batch: Batch) -> Tensor:
        return self._draw_starts(spec, rows, Draw.START)

    def _draw_starts(self, spec: BatchSpec, rows: Sequence[int], what: Draw) -> Tensor:
        places = self._uniform(spec, rows, spec.stage.starts_of(spec.n), what=what)
        return (places * (0 if self.environment.depots else spec.n)).long()

    def _moves(self, spec: BatchSpec) -> int:
        """The first customer is a decision too."""
        return super()._moves(spec) + self.environment.depots

    def _in_images(self, spec: BatchSpec, rows: Sequence[int], batch: Batch) -> Batch:
        """The images."""
        images = spec.stage.images
        if images == 1:
            return batch
        turns = self._uniform(spec, rows, 1, what=Draw.IMAGE).view(images, -1)
        return batch.at(images_of(batch.coords[: len(batch) // images], turns).flatten(0, 1))

    def _prepare(self, spec: BatchSpec, rows: Sequence[int], batch: Batch, starts: Tensor) -> tuple[Any, AuxiliaryLoss]:
        return super()._prepare(spec, rows, self._in_images(spec, rows, batch), starts)

    def _weights(self, spec: BatchSpec, rows: Sequence[int], batch: Batch, lengths: Tensor) -> Tensor:
        with torch.no_grad(), autocast(self.device, self.training.precision):
            frozen, starts = self.baseline.frozen, self._draw_starts(spec, rows, Draw.BASELINE)
            prepared = frozen.prepare(frozen.encode(*self._in_images(spec, rows, batch).features))
            greedy = batch.lengths(roll_out(frozen, prepared, batch, starts))
        return (greedy.mean(dim=1, keepdim=True) - lengths) / (lengths.shape[1] * spec.stage.images)

    # -- memory -------------------------------------------------------------------------------------------------

    def _bytes_of(self, n: int, starts: int) -> int:
        """Of one instance: all images, and all that their decisions encode."""
        return self._most_images * (super()._bytes_of(n, starts) + starts * bytes_of_decision(self.net))


def reinforce(scheme: Scheme) -> RolloutBaseline:
    """Raises NeurouteError for networks and stages that `Reinforcement` is not for."""
    check(scheme)
    return RolloutBaseline(scheme, scheme.moments)
