"""Training of MDAM: each decoder samples a solution, compared with the best of the copy's (Xin et al., 2021).

Besides that, decoders are held apart by the divergence of what they say of the first stop.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.decoding.environment import Batch
from neuroute.decoding.memory import autocast
from neuroute.networks.weights import are_finite
from neuroute.specs.trainings import Stage
from neuroute.training import sampling_streams as streams
from neuroute.training.batches import Scheme
from neuroute.training.network_checks import check_stages
from neuroute.training.policy_gradient import LogProbability, SplitBackward
from neuroute.training.reinforce import BatchSpec
from neuroute_systems.mdam.decoding import Steps, build, build_all
from neuroute_systems.mdam.network import Mdam
from neuroute_systems.mdam.system import MdamTraining, WarmBaseline
from neuroute_systems.own_solutions import OwnSolutions
from neuroute_systems.rollouts.training import RolloutBaseline, running_mean

FLOOR = -1e9  # of a logarithm


class DecoderBatches(OwnSolutions, RolloutBaseline):
    """Instances are encoded once for all decoders, and the graph of one decoder's solutions is there at a time.

    Norms look at whole batches, so each of several processes has all of a batch and learns from some decoders.
    """

    training: MdamTraining
    rule: WarmBaseline

    def __init__(self, scheme: Scheme, start: Path | None = None) -> None:
        super().__init__(scheme, start)
        self._means: list[Tensor] = []  # of each decoder's lengths, while there is no copy to compare with

    def state(self) -> dict[str, Any]:
        return super().state() | {"means": list(self._means)}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._means = state["means"]

    def _stage_network(self) -> Any:
        return self.net

    def _moves(self, spec: BatchSpec) -> int:
        """The first stop is a decision too."""
        return self.environment.max_moves(spec.n) + 1

    def _build(self, net: Any, instances: Any, stage: Stage) -> np.ndarray:
        return self.solve(instances, net)

    def _learn(self, spec: BatchSpec, rows: Sequence[int], batch: Batch) -> Tensor:
        """Add the gradient of some instances of a batch; returns their share of its loss."""
        with autocast(self.device, self.training.precision):
            encoded = self.net.encode(*batch.features)
        if not are_finite(encoded):
            raise self._diverged(spec)
        split, count = SplitBackward(encoded), len(self.net.decoders)
        noise = self._uniform(spec, rows, count, self._moves(spec))
        best, total = self._best(spec, batch), torch.zeros((), dtype=torch.float64, device=self.device)
        for decoder in range(count):
            learns = self._learns_from(decoder)
            if best is not None and not learns:
                continue
            with torch.set_grad_enabled(learns):
                lengths, log_p = self._sample(decoder, split, batch, noise[:, decoder : decoder + 1])
            compared = self._mean(decoder, lengths) if best is None else best
            if not learns:
                continue
            weight = (compared - lengths) / (count * spec.size)
            loss = -(weight.to(log_p.dtype) * log_p).sum()
            loss.backward()
            total += loss.detach()
        if self._learns_from(count):
            with autocast(self.device, self.training.precision):
                logits = [Steps(self.net, number, split.detached(), batch).logits()[:, 0] for number in range(count)]
            first_moves = torch.stack(logits)[..., self.environment.depots :].log_softmax(dim=-1)
            loss = -self.training.divergence * divergence(first_moves).sum() / spec.size
            loss.backward()
            total += loss.detach()
        split.backward()
        return total

    def _sample(self, decoder: int, split: SplitBackward, batch: Batch, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Lengths (batch, 1), float64, and log-probabilities (batch, 1) of one decoder's solutions."""
        draw, logs = streams.drawing(noise), list[Tensor]()

        def choose(logits: Tensor) -> Tensor:
            probabilities = streams.probabilities_of(logits.detach())
            stops = draw(probabilities)
            logs.append(LogProbability.apply(logits, probabilities, stops))  # type: ignore[no-untyped-call]
            return stops

        with autocast(self.device, self.training.precision):
            solutions = build(self.net, decoder, split.detached(), batch, choose)
        return batch.lengths(solutions), torch.stack(logs).sum(dim=0)

    def _best(self, spec: BatchSpec, batch: Batch) -> Tensor | None:
        """The lengths (batch, 1) of the copy's best greedy solutions; None while a mean stands for them."""
        if self.rule.warm_up is not None and spec.number < spec.stage.batches_per_epoch:
            return None
        with torch.no_grad(), autocast(self.device, self.training.precision):
            solutions = build_all(self.baseline.frozen, self.baseline.frozen.encode(*batch.features), batch)
        return batch.lengths(solutions).amin(dim=1, keepdim=True)

    def _mean(self, decoder: int, lengths: Tensor) -> Tensor:
        """The running mean of a decoder's lengths, these included."""
        assert self.rule.warm_up is not None
        before = self._means[decoder] if decoder < len(self._means) else None
        self._means[decoder : decoder + 1] = [running_mean(before, lengths, self.rule.warm_up)]
        return self._means[decoder]

    def _instances_per_part(self, spec: BatchSpec, count: int) -> int:
        """All, unless the memory is too small for the graph of one decoder's solutions."""
        tokens, net = self.environment.nodes(spec.n), self.net
        of_glimpses = self._moves(spec) / net.glimpse_every * (2 * net.last.up.out_features + 12 * net.width)
        each = self._bytes_of(spec.n, 1) + 4 * tokens * of_glimpses
        return max(1, min(count, int(self.scheme.memory_gb * 1e9 / 2 / each)))


def divergence(log_p: Tensor) -> Tensor:
    """log_p (decoders, batch, options) -> the mean of KL(p_i || p_j) over all ordered pairs of decoders: (batch,)."""
    logs, count = log_p.clamp(min=FLOOR), len(log_p)
    each = (log_p.exp()[:, None] * (logs[:, None] - logs)).sum(dim=-1)
    return each.sum(dim=(0, 1)) / max(1, count * (count - 1))


def decoders(scheme: Scheme) -> DecoderBatches:
    """Raises NeurouteError for other networks, and for stages with several starts or images."""
    run = scheme.run
    scheme.require(Mdam)
    training = check_stages(scheme)
    if any((stage.starts, stage.images) != (1, 1) for stage in training.stages):
        raise NeurouteError(f"{run.id}: each decoder builds one solution: give stages `starts: 1` and no images")
    return DecoderBatches(scheme, scheme.start)
