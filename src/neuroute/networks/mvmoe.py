"""MVMoE: one network for 16 VRPs, with mixtures of experts (Zhou et al., 2024); POMO-MTL and POMO, without any."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from neuroute.networks.blocks.attention import ClippedNetwork, attend, best_of, fits, fold, packed
from neuroute.networks.blocks.layers import NORMS, Norm, NormName, PostNormLayer, UntrackedBatchNorm, rows_of
from neuroute.networks.blocks.mixture import (
    HIERARCHIES,
    Experts,
    Hierarchical,
    Hierarchy,
    LinearExperts,
    Mixture,
    MlpExperts,
)
from neuroute.networks.blocks.precision import in_all_digits
from neuroute.networks.blocks.routing import Gate, Level, Method, Routing
from neuroute.networks.kernels import decision as kernel
from neuroute.networks.kernels.decision import Decisions
from neuroute.problems.vrp import Switches, Variant

ALL = "all"  # inputs: whatever the variant
POSITIONS = ("enc", "dec")  # as published


class Inputs(NamedTuple):
    windows: bool  # whether customers come with theirs
    columns: list[int]  # columns of load, time, length, open that a decision reads


def places(positions: Sequence[str], depth: int) -> set[str]:
    """ "raw", "dec" and "enc0", "enc1", ... that are meant; "enc" is all of these.

    Raises ValueError for a position that is not there.
    """
    layers = [f"enc{number}" for number in range(depth)]
    members = {name: [name] for name in ("raw", "dec", *layers)} | {"enc": layers}
    strange = sorted(set(positions) - set(members))
    if strange:
        raise ValueError(f"no position '{strange[0]}' for experts; there are {', '.join(members)}")
    return {place for name in positions for place in members[name]}


class VrpEmbedding(nn.Module):
    """9 W parameters, 7 W without windows: of the depot its coordinates, of customers their demands and windows too.

    Times are those of the unit square at speed 1, and not scaled.  The paper writes of one projection of all nodes; the
    depot has one of its own as in the published code, and as the printed sizes demand.
    """

    def __init__(self, width: int, windows: bool, layer: Callable[[int, int], nn.Module] = nn.Linear) -> None:
        super().__init__()
        self.windows = windows
        self.depot = layer(2, width)
        self.customers = layer(5 if windows else 3, width)

    def forward(self, coords: Tensor, demand: Tensor, windows: Tensor | None, routing: Routing) -> Tensor:
        """coords (batch, 1 + V, 2), demand (batch, 1 + V) in shares of the capacity, windows (batch, 1 + V, 2) or None
        -> (batch, 1 + V, width).
        """
        features = [coords[:, 1:], demand[:, 1:, None]]
        if self.windows:
            features.append(torch.zeros_like(coords[:, 1:]) if windows is None else windows[:, 1:])
        parts = (self.depot, coords[:, :1]), (self.customers, torch.cat(features, dim=-1))
        return torch.cat([in_all_digits(partial(through, layer, routing=routing), x) for layer, x in parts], dim=1)


class VrpContext(nn.Module):
    """W [h_current, d], d what is known of the route (Equation 12): W^2 + W parameters for each number in d."""

    def __init__(self, width: int, columns: list[int]) -> None:
        super().__init__()
        self.columns = columns
        self.project = nn.Linear(width + len(columns), width, bias=False)

    def forward(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """nodes (batch, n, width) -> what ones in d add (len(d), width), and each node where a tour is there."""
        width = nodes.shape[2]
        weight = self.project.weight
        return weight[:, width:].T.contiguous(), F.linear(nodes, weight[:, :width])

    def query(self, of_context: Tensor, of_current: Tensor, context: Tensor, current: Tensor) -> Tensor:
        """context (batch, tours, 4): load, time, length, open; current (batch, tours) -> (batch, tours, width)."""
        from_context = in_all_digits(torch.matmul, self.read(context), of_context.to(context))
        return rows_of(of_current, current).to(context) + from_context

    def read(self, context: Tensor) -> Tensor:
        """What is known of the route, of all that may be."""
        # Not `context[..., columns]`: a list would be carried to a GPU at each decision.
        return torch.cat([context[..., column : column + 1] for column in self.columns], dim=-1)


def through(layer: nn.Module, x: Tensor, routing: Routing) -> Tensor:
    """x through a layer that may be a mixture of experts."""
    out: Tensor = layer(x, routing) if isinstance(layer, Mixture) else layer(x)
    return out


class Prepared(NamedTuple):
    """What the decisions of an instance share."""

    nodes: Tensor  # (batch, nodes, width): logits are products with them
    offsets: Tensor  # (batch, 1, nodes): which are added to these
    keys: Tensor  # (batch, heads, nodes, d_k)
    values: Tensor
    of_context: Tensor  # what a tour's query gets of load, time, length, open
    of_current: Tensor  # (batch, nodes, width): what it gets of where the tour is
    routing: Routing
    decisions: Decisions | None = None  # all of this for a kernel, where there is one
    first: Tensor | None = None  # (1, 2): what a hierarchical gate found when the episode began


class ExpertLayer(PostNormLayer):
    """An encoder layer whose FFN is a mixture."""

    def __init__(self, width: int, heads: int, mixture: Mixture, norm: type[Norm]) -> None:
        super().__init__(width, heads, 0, norm)
        self.mixture = mixture

    def feed(self, h: Tensor, routing: Routing) -> Tensor:
        fed: Tensor = self.mixture(h, routing)
        return fed


class MvMoe(ClippedNetwork):
    """Scores the depot and the customers that may come next in each of several tours, which differ in where they start.

    `experts` m in each mixture, of which a token sees `top` k; with 0 of them it is POMO-MTL, and with `inputs` a
    variant's name besides, POMO for this variant alone.  `positions` of mixtures: "raw" (both embeddings), "enc" (the
    FFNs of all layers), "enc0", "enc1", ... (that of one layer), "dec" (the projection after the decoder's attention).
    `method` and `level` of their gates: see `routing.Gate`; `decoder_method`: where the decoder has another (Figure
    6 d).
    `hierarchy`: "step" for the light decoder of MVMoE/4E-L, see `mixture.Hierarchical`.

    1,254,656 parameters as published for POMO-MTL, 3,682,176 with m = 4 (MVMoE/4E), 3,698,944 of MVMoE/4E-L.

    Where paper and published code differ, the default is the paper's if it is explicit: the gate of MVMoE/4E-L looks
    at each step (`hierarchy="episode"`: at the first one), and the weight of the balance loss is a matter of training
    (0.01, Equation 3; 1e-3 in the code).  As in the published code, and as in `Pomo`: products with the encoded nodes
    over sqrt(W), not sqrt(d_k); a projection of its own for the depot; a floor of the gate's noise.

    Raises ValueError for positions that are not there and what `routing.Gate` does not take, NeurouteError for inputs
    of no variant.
    """

    problem: ClassVar[str] = "vrp"

    def __init__(
        self,
        depth: int = 6,
        width: int = 128,
        heads: int = 8,
        feed_forward: int = 512,
        clipping: float = 10.0,
        experts: int = 4,
        top: int = 2,
        positions: Sequence[str] = POSITIONS,
        method: Method = "input-choice",
        level: Level = "node",
        decoder_method: Method | None = None,
        hierarchy: Hierarchy = "none",
        norm: NormName = "instance",
        inputs: str = ALL,
        train_nodes: int = 100,
    ) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"width {width} is not divisible by {heads} heads")
        if norm not in NORMS or hierarchy not in HIERARCHIES:
            raise ValueError(f"no norm '{norm}' or hierarchy '{hierarchy}'; there are {list(NORMS)} and {HIERARCHIES}")
        self.width, self.depth, self.train_nodes = width, depth, train_nodes
        self.heads, self.clipping = heads, clipping
        self.hierarchy = hierarchy if experts else "none"
        expert_places = places(positions, depth) if experts else set()
        if self.hierarchy != "none" and "dec" not in expert_places:
            raise ValueError(f"hierarchy '{hierarchy}' is of experts in the decoder, which are not in {positions}")

        def mixture(of: Experts, inputs: int, method: Method = method) -> Mixture:
            return Mixture(of, inputs, top, method, level)

        def linear(inputs: int, outputs: int) -> nn.Module:
            return mixture(LinearExperts(experts, inputs, outputs), inputs)

        def layer(number: int) -> PostNormLayer:
            if f"enc{number}" in expert_places:
                return ExpertLayer(width, heads, mixture(MlpExperts(experts, width, feed_forward), width), NORMS[norm])
            return PostNormLayer(width, heads, feed_forward, NORMS[norm])

        on = Switches(open=True, limit=True, windows=True) if inputs == ALL else Variant(inputs).switches
        features = Inputs(on.windows, [0] + [1] * on.windows + [2] * on.limit + [3] * on.open)
        self.embed = VrpEmbedding(width, features.windows, linear if "raw" in expert_places else nn.Linear)
        self.layers = nn.ModuleList(layer(number) for number in range(depth))
        self.context = VrpContext(width, features.columns)
        self.key_value = nn.Linear(width, 2 * width, bias=False)
        self.combine: nn.Module = nn.Linear(width, width)
        if "dec" in expert_places:
            self.combine = mixture(LinearExperts(experts, width, width), width, decoder_method or method)
            if hierarchy != "none":
                self.combine = Hierarchical(self.combine, width, width, hierarchy)

    @property
    def is_batch_dependent(self) -> bool:
        """By gates that draw, that choose for all of a batch or among all of it, or by a norm over it (Appendix B.4).

        Noisy input choice of single nodes or instances, the default, neither draws nor mixes in evaluation.
        """
        return any(
            (module.method != "input-choice" or module.level == "problem")
            if isinstance(module, Gate)
            else isinstance(module, Hierarchical | UntrackedBatchNorm)
            for module in self.modules()
        )

    def encode(
        self, coords: Tensor, demand: Tensor, windows: Tensor | None = None, routing: Routing | None = None
    ) -> Tensor:
        """coords (batch, 1 + V, 2), the depot first, in the unit square; demand (batch, 1 + V) in shares of the
        capacity, negative of backhauls; windows (batch, 1 + V, 2), None where there are none -> (batch, 1 + V, width).
        """
        routing = routing or Routing()
        h: Tensor = self.embed(coords, demand, windows, routing)
        for layer in self.layers:
            h = layer(h, routing)
        return h

    def prepare(self, encoded: Tensor, routing: Routing | None = None) -> Prepared:
        """encoded (batch, nodes, width) -> what is computed once for all decisions.  routing: theirs."""
        keys, values = (self._heads(part) for part in self.key_value(encoded).chunk(2, dim=-1))
        scale = 1 / math.sqrt(self.width)
        if isinstance(self.combine, nn.Linear):
            nodes, offsets = fold(encoded, self.combine.weight, self.combine.bias, scale)
        else:
            nodes, offsets = encoded * scale, encoded.new_zeros(())
        of_context, of_current = self.context(encoded)
        targets, biases = nodes, offsets
        if (
            isinstance(self.combine, Mixture | Hierarchical)
            and self.combine.is_sum_of_linear
            and kernel.fits(keys, keys.new_empty(0, dtype=torch.float32))
        ):
            every = [fold(encoded, weight, bias, scale) for weight, bias in self.combine.linear()]
            targets, biases = (
                torch.stack([each[0] for each in every], dim=1),
                torch.cat([each[1] for each in every], dim=1),
            )
        decisions = packed(keys, values, targets, biases, of_current, of_context)
        return Prepared(nodes, offsets, keys, values, of_context, of_current, routing or Routing(), decisions)

    def begin_episode(self, prepared: Prepared, context: Tensor, current: Tensor, mask: Tensor) -> Prepared:
        """As it was prepared, and what the first decision (see `decide`) adds for those that follow.

        Nothing, but for the hierarchy "episode": there, learning calls this with a graph before it cuts what is
        prepared from it.
        """
        if self.hierarchy != "episode":
            return prepared
        assert isinstance(self.combine, Hierarchical)
        attended = self._attended(prepared, context, current, mask)
        return prepared._replace(first=self.combine.probabilities(attended, Routing()))

    def decide_best(self, prepared: Prepared, context: Tensor, current: Tensor, mask: Tensor) -> Tensor:
        """What `decide` finds best: (batch, tours)."""
        decisions = prepared.decisions
        if decisions is None:
            return best_of(self._fits(prepared, context, current, mask), mask)
        read = self.context.read(context)
        if isinstance(self.combine, nn.Linear):
            return decisions.best(read, current, mask)
        glimpsed = decisions.glimpse(read, current, mask)
        assert isinstance(self.combine, Mixture | Hierarchical)
        if not self.combine.is_sum_of_linear:
            return decisions.point(self._combined(prepared, glimpsed), mask)
        first = (self._first(prepared, glimpsed),) if isinstance(self.combine, Hierarchical) else ()
        return decisions.point(glimpsed, mask, self.combine.shares(glimpsed, prepared.routing, *first))

    def _fits(self, p: Prepared, context: Tensor, current: Tensor, mask: Tensor) -> Tensor:
        """context (batch, tours, 4): load as a share of the capacity, time, length, whether routes are open."""
        return fits(self._combined(p, self._attended(p, context, current, mask)), p.nodes, p.offsets)

    def _attended(self, p: Prepared, context: Tensor, current: Tensor, mask: Tensor) -> Tensor:
        """What the attention of each tour brings together: (batch, tours, width)."""
        query = self._heads(self.context.query(p.of_context, p.of_current, context, current))
        scale = 1 / math.sqrt(self.width // self.heads)
        return attend(query, p.keys, p.values, scale, mask[:, None]).transpose(1, 2).flatten(2)

    def _combined(self, p: Prepared, attended: Tensor) -> Tensor:
        """What the experts make of it; a dense layer is part of the nodes already."""
        if isinstance(self.combine, nn.Linear):
            return attended
        if not isinstance(self.combine, Hierarchical):
            return through(self.combine, attended, p.routing)
        combined: Tensor = self.combine(attended, p.routing, self._first(p, attended))
        return combined

    def _first(self, p: Prepared, attended: Tensor) -> Tensor | None:
        """What a hierarchical gate found when the episode began, where that counts."""
        if self.hierarchy != "episode" or p.first is not None:
            return p.first
        if p.routing.first is None:  # a new episode
            assert isinstance(self.combine, Hierarchical)
            p_first = self.combine.probabilities(attended, p.routing)
            if p_first is None or p_first.requires_grad:
                raise ValueError("hierarchy 'episode' can only be trained after `begin_episode`")
            p.routing.first = p_first
        return p.routing.first

    def _heads(self, x: Tensor) -> Tensor:
        out: Tensor = x.unflatten(2, (self.heads, -1)).transpose(1, 2)
        return out
