"""A gate that first chooses between experts and a dense layer, for a whole batch (MVMoE; Zhou et al., 2024, 4.2).

Light decoders (MVMoE/4E-L) run their experts at some of their steps only.
"""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from neuroute.networks.blocks.all_digits import at_least_float32
from neuroute.networks.blocks.experts.mixture import Mixture, join_calls, split_calls
from neuroute.networks.blocks.experts.routing import Routing

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
