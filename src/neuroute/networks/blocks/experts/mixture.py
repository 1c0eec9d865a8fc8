"""Mixtures of experts: layers of which each token sees a few (MVMoE; Zhou et al., 2024, Section 4.1).

What is not routed is not computed: tokens are sorted by expert, and each expert works on its own in one product.
"""

import math
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from neuroute.kernels.linear import feed_forward, linear
from neuroute.networks.blocks.experts.gates import ExpertChoice, Gate, InputChoice, Level, Method, Slots
from neuroute.networks.blocks.experts.routing import Routing


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
        every = zip(x.split(rows), self.weight.unbind(), self.bias.unbind(), strict=True)
        return torch.cat([linear(part, (weight, bias)) for part, weight, bias in every])

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
        every = zip(
            x.split(rows),
            self.up.weight.unbind(),
            self.up.bias.unbind(),
            self.down.weight.unbind(),
            self.down.bias.unbind(),
            strict=True,
        )
        # One expert after the other: what stands between its two layers stays in the cache.
        return torch.cat([feed_forward(part, (up, a), (down, b)) for part, up, a, down, b in every])

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
    by_unit = _Back.apply(outputs, order, back)  # type: ignore[no-untyped-call]
    weights, by_unit = choice.weights.flatten(0, 1), by_unit.view(units, top, -1)
    out: Tensor = by_unit[:, 0] * weights[:, :1]
    for which in range(1, top):
        out = torch.addcmul(out, by_unit[:, which], weights[:, which : which + 1])
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


class _Back(torch.autograd.Function):
    """Sorted rows in the order that they had before; each is there once."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, order: Tensor, back: Tensor) -> Tensor:
        ctx.save_for_backward(order)
        return rows.index_select(0, back)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (order,) = ctx.saved_tensors
        return gradients[0].index_select(0, order), None, None
