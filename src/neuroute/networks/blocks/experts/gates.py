"""Which experts see what, and how much each of them counts (MVMoE; Zhou et al., 2024, Appendix B.3 and B.4).

What is routed is a unit: a node or, in the decoder, a tour (level "node"); all of an instance ("instance"); all of a
batch ("problem").  Units of one call of a layer are routed together; several calls may lie side by side.
"""

import math
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from neuroute.networks.blocks.all_digits import at_least_float32
from neuroute.networks.blocks.experts.routing import Balance, Routing

Method = Literal["input-choice", "expert-choice", "soft", "random"]
Level = Literal["node", "instance", "problem"]
METHODS: tuple[Method, ...] = ("input-choice", "expert-choice", "soft", "random")
LEVELS: tuple[Level, ...] = ("node", "instance", "problem")

NOISE_FLOOR = 0.01  # added to softplus(x W_noise) in the paper's code, not in its Equations 15 and 18


class InputChoice(NamedTuple):
    """The experts that each unit takes."""

    experts: Tensor  # (calls, units, k) int64
    weights: Tensor  # (calls, units, k)

    def shares(self, count: int) -> Tensor:
        """How much each of `count` experts counts: (calls, units, count), 0 where it was not chosen."""
        return self.weights.new_zeros(*self.weights.shape[:2], count).scatter(2, self.experts, self.weights)


class ExpertChoice(NamedTuple):
    """The units that each expert takes."""

    units: Tensor  # (calls, K, m) int64, of the call
    weights: Tensor  # (calls, K, m)


class Slots(NamedTuple):
    """Mixtures of all units, k for each expert, those of an expert side by side; and units as mixtures of them."""

    dispatch: Tensor  # (calls, units, m k): sums to 1 over units
    combine: Tensor  # (calls, units, m k): sums to 1 over slots


class Gate(nn.Module):
    """2 W m parameters, of soft mixtures W m (k + 1).

    W_noise is there whatever the method, as in the published code, so sizes can be compared; only noisy input choice
    reads it.  Where the published code starts at 0, so does this: routing is noise at first.  Elsewhere W_gate is
    uniform within 1 / sqrt(its columns).

    Raises ValueError for a method or level that is unknown or does not go with the other, and for k not in 1..m.
    """

    def __init__(self, width: int, experts: int, top: int, method: Method = "input-choice", level: Level = "node"):
        super().__init__()
        if method not in METHODS or level not in LEVELS:
            raise ValueError(f"no gate '{method}' at level '{level}'; methods are {METHODS}, levels {LEVELS}")
        if level == "problem" and method in ("expert-choice", "soft"):
            raise ValueError(f"a batch is one unit at level 'problem', so '{method}' has nothing to choose from")
        if not 1 <= top <= experts:
            raise ValueError(f"each unit takes from 1 to all {experts} experts, not {top}")
        self.experts, self.top, self.method, self.level = experts, top, method, level
        slots = experts * top if method == "soft" else experts
        self.weight = nn.Parameter(torch.zeros(slots, width))
        self.noise = nn.Parameter(torch.zeros(experts, width))
        if method != "input-choice" or level == "problem":
            nn.init.uniform_(self.weight, -1 / math.sqrt(slots), 1 / math.sqrt(slots))

    def forward(self, x: Tensor, routing: Routing) -> InputChoice | ExpertChoice | Slots:
        """x (calls, units, width): what is known of each unit."""
        if self.method == "random":
            return self._random(x, routing)
        if self.method == "input-choice":
            return self._input_choice(x, routing)
        scores = at_least_float32(F.linear(x, self.weight))
        if self.method == "soft":
            return Slots(scores.softmax(dim=1), scores.softmax(dim=2))
        # Rounded down as in the published code; but each expert takes one unit at least, or nothing would come out.
        per_expert = max(1, x.shape[1] * self.top // self.experts)
        weights, units = scores.softmax(dim=1).topk(per_expert, dim=1)
        return ExpertChoice(units, weights)

    def _random(self, x: Tensor, routing: Routing) -> InputChoice:
        """Any k experts, equally weighed."""

        def settle(generator: torch.Generator | None) -> Tensor:
            ranks = torch.rand(*x.shape[:2], self.experts, generator=generator, device=x.device)
            return ranks.topk(self.top, dim=-1).indices

        experts = routing.resolve("experts", len(x), settle)
        return InputChoice(experts, torch.full_like(experts, 1 / self.top, dtype=torch.float32))

    def _input_choice(self, x: Tensor, routing: Routing) -> InputChoice:
        """The k best, by scores that in training are noisy (Equations 15 and 16); not at level "problem"."""
        noisy, deviation = self.training and self.level != "problem", None
        if noisy:
            both = at_least_float32(F.linear(x, torch.cat([self.weight, self.noise])))
            clean, deviation = both.chunk(2, dim=-1)
            deviation = F.softplus(deviation) + NOISE_FLOOR
            normal = routing.resolve("noise", len(x), lambda generator: routing.normal(clean, generator))
            scores = torch.addcmul(clean, normal, deviation)
        else:
            clean = scores = at_least_float32(F.linear(x, self.weight))
        best, experts = scores.topk(min(self.top + noisy, self.experts), dim=-1)
        choice = InputChoice(experts[..., : self.top], best[..., : self.top].softmax(dim=-1))
        if routing.balance and self.level != "problem":
            routing.reports.append(self._balance(choice, clean, scores, deviation, best))
        return choice

    def _balance(
        self, choice: InputChoice, clean: Tensor, scores: Tensor, deviation: Tensor | None, best: Tensor
    ) -> Balance:
        gates = choice.shares(self.experts)
        if deviation is None or self.top == self.experts:
            return Balance(gates.sum(dim=1), (gates > 0).sum(dim=1).to(gates.dtype))
        # The k-th best of the others: what an expert must surpass to be chosen.
        inside, outside = best[..., -1:], best[..., -2:-1]
        threshold = torch.where(scores > inside, inside, outside)
        return Balance(gates.sum(dim=1), torch.special.ndtr((clean - threshold) / deviation).sum(dim=1))
