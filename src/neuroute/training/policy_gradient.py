"""The loss of REINFORCE: log-probabilities of sampled solutions, weighed by their advantages over the others."""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from neuroute.decoding.environment import Choose, Rollout
from neuroute.networks.base import MultiStartNetwork
from neuroute.networks.blocks.precision import at_least_float32
from neuroute.specs.trainings import Elite


class SplitBackward:
    """Back-propagate decisions in parts, and send their summed gradient through the encoder once.

    Each part's graph ends at leaves, one for each field of what is prepared that the encoder's graph leads to.
    """

    def __init__(self, prepared: Any) -> None:
        """prepared: a NamedTuple.  Leaves gather gradients in at least float32."""
        self.prepared = prepared
        self._leaves = [
            at_least_float32(field.detach()).requires_grad_()
            if isinstance(field, Tensor) and field.requires_grad
            else None
            for field in prepared
        ]

    def detached(self) -> Any:
        """What is prepared, on the leaves: anew for each part."""
        pairs = zip(self.prepared, self._leaves, strict=True)
        return type(self.prepared)(*(field if leaf is None else leaf.to(field.dtype) for field, leaf in pairs))

    def backward(self, loss: Tensor | None = None) -> None:
        """Carry the leaves' gradients through the encoder, and those of a loss of its own."""
        pairs = zip(self.prepared, self._leaves, strict=True)
        roots: list[tuple[Tensor, Tensor | None]] = [
            (field, leaf.grad.to(field.dtype)) for field, leaf in pairs if leaf is not None and leaf.grad is not None
        ]
        if loss is not None and loss.requires_grad:
            roots.append((loss, None))
        if roots:  # of several processes one may have learnt from nothing
            torch.autograd.backward([root for root, _ in roots], [gradient for _, gradient in roots])


# -- Decisions that were made, once more: for the gradients of a rollout without keeping what led to each of them
# A rollout with gradients keeps several numbers of each decision, tour and node until they are taken: of 6
# instances of 500 nodes from every start, each of these is 750 million. Without gradients and recomputed by parts,
# it keeps a part's.


class Decisions(NamedTuple):
    """Of several moves, side by side in the second axis: `decide` takes them as so many tours."""

    context: Tensor  # (batch, moves * tours, ...)
    current: Tensor  # (batch, moves * tours) int64
    mask: Tensor  # (batch, moves * tours, nodes)
    chosen: Tensor  # (batch, moves * tours) int64


class RecordedChoices:
    """A way to choose that keeps what was chosen."""

    def __init__(self, choose: Choose) -> None:
        self._choose = choose
        self.stops: list[Tensor] = []  # of each move (batch, tours)

    def __call__(self, logits: Tensor) -> Tensor:
        self.stops.append(self._choose(logits))
        return self.stops[-1]


def recompute(rollout: Rollout, stops: list[Tensor], moves: int) -> Iterator[Decisions]:
    """A rollout as it was before the first of the stops -> its decisions, `moves` of them at a time.

    The order of the second axis: all tours of a move, then those of the next.
    """
    for first in range(0, len(stops), moves):
        decisions = []
        for stop in stops[first : first + moves]:
            decisions.append((rollout.context, rollout.current, rollout.action_mask.clone(), stop))
            with torch.no_grad():
                rollout.step(stop)
        yield Decisions(*(torch.cat(parts, dim=1) for parts in zip(*decisions, strict=True)))


Scaled = Literal["largest", "deviation"]
TINY = 1e-8  # added to a standard deviation, as published (Jin et al., 2023)


def advantages(lengths: Tensor, scaled: Scaled | None = None) -> Tensor:
    """lengths (batch, solutions) -> by how much each is shorter than its instance's mean (POMO; icam, Eq. 8 and 9).

    scaled: as shares of the largest one of their instance (Gao et al., 2024), which stay 0 where all solutions are as
    long, or in biased standard deviations of its lengths (Jin et al., 2023).
    """
    ahead = lengths.mean(dim=1, keepdim=True) - lengths
    if scaled == "largest":
        largest = ahead.amax(dim=1, keepdim=True)
        return ahead / torch.where(largest > 0, largest, 1)
    if scaled == "deviation":
        return ahead / (lengths.std(dim=1, correction=0, keepdim=True) + TINY)
    return ahead


def weights(lengths: Tensor, elite: Elite | None, *, scaled: Scaled | None = None) -> Tensor:
    """What the log-probabilities of solutions (batch, solutions) are weighed with, per instance.

    The loss of an instance is minus their weighed sum: Eq. 7 of icam, with elites Eq. 11.  Of solutions of one length
    that are not all among the elite, the first ones are.  scaled: see `advantages`.
    """
    advantage = advantages(lengths, scaled)
    weight = advantage / lengths.shape[1]
    if elite is None:
        return weight
    best = lengths.argsort(dim=1, stable=True)[:, : elite.k]
    again = torch.zeros_like(weight).scatter_(1, best, advantage.gather(1, best) / elite.k)
    return weight + elite.beta * again


def log_probabilities(net: MultiStartNetwork, prepared: Any, decisions: Decisions) -> Tensor:
    """Of what was chosen (batch, decisions)."""
    logits = net.decide(prepared, decisions.context, decisions.current, decisions.mask)
    logits = at_least_float32(logits).flatten(0, 1)
    return -F.cross_entropy(logits, decisions.chosen.flatten(), reduction="none").view_as(decisions.chosen)


class LogProbability(torch.autograd.Function):
    """log p of what was chosen, by probabilities that sampling has computed already."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, probabilities: Tensor, stops: Tensor) -> Tensor:
        """logits and their probabilities (batch, tours, nodes), chosen (batch, tours) -> (batch, tours)."""
        ctx.save_for_backward(probabilities, stops[..., None])
        ctx.dtype = logits.dtype
        return probabilities.gather(2, stops[..., None]).squeeze(2).log()

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        probabilities, stops = ctx.saved_tensors
        gradient = gradients[0][..., None]
        return (probabilities * -gradient).scatter_add_(2, stops, gradient).to(ctx.dtype), None, None


class AuxiliaryLoss:
    """What a batch is learnt from besides its solutions: nothing, unless a network's own draws come with a loss."""

    def for_sampling(self, prepared: Any) -> Any:
        """What is prepared, for decisions that are sampled with their graph."""
        return prepared

    def for_replay(self, prepared: Any) -> Any:
        """What is prepared, for some of the decisions that were sampled, in their order."""
        return prepared

    def skip(self, decisions: Decisions) -> None:
        """Go on behind decisions that another process learns from."""

    def decision_loss(self) -> Tensor | None:
        """A loss of those with a graph since it was last asked for."""
        return None

    def encoder_loss(self) -> Tensor | None:
        return None
