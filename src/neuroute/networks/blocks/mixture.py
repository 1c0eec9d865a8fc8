"""Mixtures of experts: layers of which each token sees a few (MVMoE; Zhou et al., 2024, Section 4.1).

What is not routed is not computed: tokens are sorted by expert, and each expert works on its own in one product.
"""

import math
from typing import Any, Literal, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from neuroute.networks.blocks.precision import at_least_float32
from neuroute.networks.blocks.routing import ExpertChoice, Gate, InputChoice, Level, Method, Routing, Slots
from neuroute.networks.kernels.linear import grouped


class Experts(Protocol):
    """m networks of the same shape."""

    count: int
    quick: bool  # one product each

    def __call__(self, x: Tensor, rows: list[int]) -> Tensor:
        """x (all rows, in), the first rows[0] of them for expert 0, and so on -> (all rows, out)."""

    def equally(self, x: Tensor) -> Tensor:
        """x (m, rows, in) -> (m, rows, out)."""


class LinearExperts(nn.Module):
    """Linear layers with biases: m (in + 1) out parameters, initialised as torch's."""

    quick = True

    def __init__(self, count: int, inputs: int, outputs: int) -> None:
        super().__init__()
        self.count = count
        self.weight = nn.Parameter(torch.empty(count, outputs, inputs))
        self.bias = nn.Parameter(torch.empty(count, outputs))
        for parameter in (self.weight, self.bias):
            nn.init.uniform_(parameter, -1 / math.sqrt(inputs), 1 / math.sqrt(inputs))

    def forward(self, x: Tensor, rows: list[int]) -> Tensor:
        return grouped(x, rows, self.weight, self.bias)

    def equally(self, x: Tensor) -> Tensor:
        return torch.baddbmm(self.bias[:, None], x, self.weight.transpose(1, 2))


class MlpExperts(nn.Module):
    """FFNs (ReLU) with biases: m (2 W F + W + F) parameters."""

    quick = False

    def __init__(self, count: int, width: int, feed_forward: int) -> None:
        super().__init__()
        self.count = count
        self.up = LinearExperts(count, width, feed_forward)
        self.down = LinearExperts(count, feed_forward, width)

    def forward(self, x: Tensor, rows: list[int]) -> Tensor:
        return grouped(x, rows, self.up.weight, self.up.bias, self.down.weight, self.down.bias)

    def equally(self, x: Tensor) -> Tensor:
        return self.down.equally(F.relu(self.up.equally(x)))


class Mixture(nn.Module):
    """Sum over experts of gate_j(x) expert_j(x) (Equation 2): the experts' parameters and those of the `Gate`.

    Expert choice and soft mixtures mix all units of a batch; there, and at level "problem", what comes out depends on
    what else is in the batch.
    """

    def __init__(
        self, experts: Experts, inputs: int, top: int, method: Method = "input-choice", level: Level = "node"
    ) -> None:
        super().__init__()
        self.experts = experts
        self.gate = Gate(inputs, experts.count, top, method, level)

    def forward(self, x: Tensor, routing: Routing | None = None) -> Tensor:
        """x (batch, tokens, in) -> (batch, tokens, out)."""
        routing = routing or Routing()
        calls = routing.calls(x.shape[1])
        return join_calls(self.side_by_side(split_calls(x, calls), routing))

    @property
    def is_sum_of_linear(self) -> bool:
        """Whether the experts' weights and biases, and `shares`, say it all."""
        return isinstance(self.experts, LinearExperts) and self.gate.method in ("input-choice", "random")

    def linear(self) -> list[tuple[Tensor, Tensor]]:
        """Weight and bias of each expert, where it `is_sum_of_linear`."""
        assert isinstance(self.experts, LinearExperts)
        return list(zip(self.experts.weight, self.experts.bias, strict=True))

    def shares(self, x: Tensor, routing: Routing) -> Tensor:
        """How much each of m experts counts: x (batch, tokens, in) of one call -> (batch, tokens, m)."""
        _, routed = self._routed(x[None], routing)
        assert isinstance(routed, InputChoice)
        units = routed.shares(self.experts.count)[0]
        shares: Tensor = units.unflatten(0, (min(len(x), len(units)), -1)).expand(*x.shape[:2], -1)
        return shares

    def side_by_side(self, x: Tensor, routing: Routing) -> Tensor:
        """x (calls, batch, tokens, in) -> (calls, batch, tokens, out)."""
        calls, batch, tokens, _ = x.shape
        parts, routed = self._routed(x, routing)
        if isinstance(routed, InputChoice):
            from_all = self.experts.quick and x.device.type == "cuda"
            out = (_from_all if from_all else _from_chosen)(self.experts, parts.flatten(0, 1), routed)
        elif isinstance(routed, ExpertChoice):
            out = _from_taken(self.experts, parts, routed)
        else:
            out = _slots(self.experts, parts, routed)
        return out.view(calls, batch, tokens, -1)

    def _routed(self, x: Tensor, routing: Routing) -> tuple[Tensor, InputChoice | ExpertChoice | Slots]:
        """x (calls, batch, tokens, in) -> (calls, units, tokens of a unit, in), and where units go."""
        calls, batch, tokens, width = x.shape
        units = {"node": batch * tokens, "instance": batch, "problem": 1}[self.gate.level]
        parts = x.reshape(calls, units, -1, width)  # tokens of each unit
        summaries = parts.squeeze(2) if parts.shape[2] == 1 else parts.mean(dim=2)
        return parts, self.gate(summaries, routing)


def split_calls(x: Tensor, calls: int) -> Tensor:
    """x (batch, calls * tokens, width) -> (calls, batch, tokens, width)."""
    out: Tensor = x.unflatten(1, (calls, -1)).transpose(0, 1)
    return out


def join_calls(x: Tensor) -> Tensor:
    """x (calls, batch, tokens, width) -> (batch, calls * tokens, width)."""
    return x.transpose(0, 1).flatten(1, 2)


def _from_chosen(experts: Experts, parts: Tensor, choice: InputChoice) -> Tensor:
    """parts (units, tokens, in) -> (units, tokens * out); each unit k times, sorted by expert."""
    units, tokens, _ = parts.shape
    of_unit = choice.experts.flatten(0, 1)
    top = of_unit.shape[1]
    order = of_unit.flatten().argsort(stable=True)
    back = torch.empty_like(order)
    back[order] = torch.arange(len(order), device=order.device)
    counts = of_unit.flatten() == torch.arange(experts.count, device=order.device)[:, None]
    rows = (tokens * counts.sum(dim=1)).tolist()
    inputs = _Sorted.apply(parts.flatten(1), order, back, top)  # type: ignore[no-untyped-call]
    outputs = experts(inputs.view(-1, parts.shape[2]), rows).view(units * top, -1)
    out: Tensor = _Weighed.apply(outputs, choice.weights.flatten(0, 1), order, back)  # type: ignore[no-untyped-call]
    return out


def _from_all(experts: Experts, parts: Tensor, choice: InputChoice) -> Tensor:
    """As `_from_chosen`, but for rounding: every expert works on all units, and what was not chosen counts 0.

    A GPU does that sooner than it sorts units of one product each, and the host need not wait for how many there are.
    """
    weights = choice.shares(experts.count).flatten(0, 1)
    outputs = experts.equally(parts.flatten(0, 1).expand(experts.count, -1, -1)).view(experts.count, len(parts), -1)
    out: Tensor = (outputs * weights.T[..., None]).sum(dim=0)
    return out


def _from_taken(experts: Experts, parts: Tensor, choice: ExpertChoice) -> Tensor:
    """parts (calls, units, tokens, in) -> (calls * units, tokens * out), 0 where no expert took a unit."""
    calls, units, _, width = parts.shape
    first = units * torch.arange(calls, device=parts.device)
    which = (choice.units + first[:, None, None]).permute(2, 0, 1).flatten(1)  # (m, calls * K)
    inputs = parts.flatten(0, 1).flatten(1).index_select(0, which.flatten())
    outputs = experts.equally(inputs.view(experts.count, -1, width)).view(*which.shape, -1)
    outputs = outputs * choice.weights.permute(2, 0, 1).flatten(1)[..., None]
    out = outputs.new_zeros(calls * units, outputs.shape[2])
    for units_of_one, found_of_one in zip(which, outputs, strict=True):  # no unit twice: sums have an order
        out = out.index_add(0, units_of_one, found_of_one)
    return out


def _slots(experts: Experts, parts: Tensor, slots: Slots) -> Tensor:
    """parts (calls, units, tokens, in) -> (calls, units, tokens * out)."""
    calls, width = parts.shape[0], parts.shape[3]
    mixed = slots.dispatch.transpose(1, 2).to(parts.dtype) @ parts.flatten(2)
    outputs = experts.equally(mixed.view(calls, experts.count, -1, width).transpose(0, 1).flatten(1, 2))
    outputs = outputs.unflatten(1, (calls, -1)).transpose(0, 1).reshape(calls, mixed.shape[1], -1)
    out: Tensor = slots.combine.to(outputs.dtype) @ outputs
    return out


class _Sorted(torch.autograd.Function):
    """Rows k times each, sorted by expert.  Backwards each sums up its k copies: torch would add row by row."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, order: Tensor, back: Tensor, top: int) -> Tensor:
        ctx.save_for_backward(back)
        ctx.top = top
        return rows.index_select(0, order // top)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (back,) = ctx.saved_tensors
        return gradients[0].index_select(0, back).unflatten(0, (-1, ctx.top)).sum(dim=1), None, None, None


class _Weighed(torch.autograd.Function):
    """Sorted rows (units * top, out) by weights (units, top), summed up for each unit."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weights: Tensor, order: Tensor, back: Tensor) -> Tensor:
        by_unit = rows.index_select(0, back).view(*weights.shape, -1)
        ctx.save_for_backward(by_unit, weights, order)
        out = by_unit[:, 0] * weights[:, :1]
        for which in range(1, weights.shape[1]):
            out = torch.addcmul(out, by_unit[:, which], weights[:, which : which + 1])
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        by_unit, weights, order = ctx.saved_tensors
        given = gradients[0].index_select(0, order // weights.shape[1])
        d_rows = given * weights.flatten().index_select(0, order)[:, None]
        d_weights = (by_unit * gradients[0][:, None]).sum(dim=2)
        return d_rows.to(by_unit.dtype), d_weights.to(weights.dtype), None, None


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
