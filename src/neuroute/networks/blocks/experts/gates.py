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
from neuroute.networks.blocks.experts.mixture import Mixture, join_calls, split_calls
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


# -- A gate that first chooses between experts and a dense layer, for a whole batch (MVMoE; Zhou et al., 2024, 4.2)
# Light decoders (MVMoE/4E-L) run their experts at some of their steps only.

Hierarchy = Literal["none", "step", "episode", "random"]
HIERARCHIES: tuple[Hierarchy, ...] = ("none", "step", "episode", "random")
SPARSE, DENSE = 0, 1  # as in Figure 4; the published code has them the other way round


class Hierarchical(nn.Module):
    """p_0 times the mixture, or p_1 times a dense layer, drawn with these probabilities p = softmax(mean(x) W_G1).

    2 W + (W + 1) out parameters more than the mixture has.  What is drawn holds for a call's whole batch, in evaluation
    too, so solutions are random and depend on the batch; a `Routing` with a generator repeats them.

    `step` (the paper): p is of the inputs of each call.  `episode` (the published code): p is that of an episode's
    first call, given as `first`, and each call draws from it.  `random` (Figure 6 d): either with probability 1/2,
    neither multiplied; there is no W_G1.
    """

    def __init__(self, sparse: Mixture, inputs: int, outputs: int, hierarchy: Hierarchy = "step") -> None:
        super().__init__()
        self.sparse = sparse
        self.dense = nn.Linear(inputs, outputs)
        self.gate = None if hierarchy == "random" else nn.Linear(inputs, 2, bias=False)

    def probabilities(self, x: Tensor, routing: Routing) -> Tensor | None:
        """x (batch, tokens, in) -> (calls, 2): of experts and of the dense layer; None where nothing is learnt."""
        if self.gate is None:
            return None
        scores: Tensor = self.gate(routing.mean(split_calls(x, routing.calls(x.shape[1]))))
        return at_least_float32(scores).softmax(dim=-1)

    def forward(self, x: Tensor, routing: Routing | None = None, first: Tensor | None = None) -> Tensor:
        """x (batch, tokens, in) -> (batch, tokens, out); first (1, 2): probabilities to take instead of x's own."""
        routing = routing or Routing()
        calls = split_calls(x, routing.calls(x.shape[1]))
        p, sparse = self._choose(x, routing, first)
        runs_experts = sparse.cpu()  # what runs is for the host to know; then it knows the numbers of calls, too
        of_sparse, of_dense = (calls_of.nonzero()[:, 0].to(x.device) for calls_of in (runs_experts, ~runs_experts))
        outputs = []
        if len(of_sparse):
            out = self.sparse.side_by_side(_some(calls, of_sparse), routing)
            outputs.append(out if p is None else out * _some(p, of_sparse)[:, SPARSE, None, None, None])
        if len(of_dense):
            out = self.dense(_some(calls, of_dense))
            outputs.append(out if p is None else out * _some(p, of_dense)[:, DENSE, None, None, None])
        if len(outputs) == 1:
            return join_calls(outputs[0])
        return join_calls(torch.cat(outputs)[torch.cat([of_sparse, of_dense]).argsort()])

    @property
    def is_sum_of_linear(self) -> bool:
        """See `Mixture`."""
        return isinstance(self.dense, nn.Linear) and self.sparse.is_sum_of_linear

    def linear(self) -> list[tuple[Tensor, Tensor]]:
        """Weight and bias of each expert and of the dense layer, where all are linear."""
        return [*self.sparse.linear(), (self.dense.weight, self.dense.bias)]

    def shares(self, x: Tensor, routing: Routing, first: Tensor | None = None) -> Tensor:
        """How much each of them counts: x (batch, tokens, in) of one call -> (batch, tokens, m + 1)."""
        p, sparse = self._choose(x, routing, first)
        one = x.new_ones(1) if p is None else p[:, SPARSE if sparse else DENSE]
        if sparse:
            return F.pad(self.sparse.shares(x, routing) * one, (0, 1))
        return F.pad(one.expand(*x.shape[:2], 1), (self.sparse.experts.count, 0))

    def _choose(self, x: Tensor, routing: Routing, first: Tensor | None) -> tuple[Tensor | None, Tensor]:
        """Probabilities (calls, 2), and whether experts run, of each call."""
        calls = routing.calls(x.shape[1])
        p = self.probabilities(x, routing) if first is None else first.expand(calls, 2)
        sparse = routing.resolve("sparse", calls, lambda generator: _draw_branches(p, calls, generator, x.device))
        if routing.balance:
            routing.sparse.append(sparse)
        return p, sparse


def _some(x: Tensor, calls: Tensor) -> Tensor:
    """Of these calls, in their order; all of them without a copy, which would be one more on the way back."""
    return x if len(calls) == len(x) else x[calls]


def _draw_branches(p: Tensor | None, calls: int, generator: torch.Generator | None, device: torch.device) -> Tensor:
    """Whether experts run, of each call."""
    uniform = torch.rand(calls, generator=generator, device=device)
    return uniform < (0.5 if p is None else p[:, SPARSE].detach())
