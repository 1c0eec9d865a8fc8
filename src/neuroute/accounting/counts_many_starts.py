"""Parameters and FLOPs of networks that decode from many starts, from their arguments and without building them.

Classes and letters are as in `counts`.  Counted is one solution.  A decision on k tokens is that of k - 1 nodes, as
many as there are when a tour begins: visited nodes are computed and then left out, so the last decision costs as much
as the first.  Ways back to the depot are decisions more, and not counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from neuroute.accounting.counts import Counts, Transformer, layer_parameters
from neuroute.accounting.flops import attention, ffn, linear
from neuroute.networks.mvmoe_shape import ALL, POSITIONS, Inputs, inputs_of, places


def _features(nodes: int, width: int, cvrp: bool) -> int:
    """Count the embedding: coordinates, and of the CVRP's customers the demand."""
    return linear(1, 2, width) + linear(nodes - 1, 3, width) if cvrp else linear(nodes, 2, width)


def _outside(width: int, cvrp: bool) -> int:
    """Count the parameters of embedding, context, keys and values: 4 W^2 + 3 W, of the CVRP 3 W^2 + 8 W."""
    return 3 * width**2 + 8 * width if cvrp else 4 * width**2 + 3 * width


def _folded(nodes: int, width: int) -> int:
    """Count `pointer.fold`: a projection of the nodes, and its bias."""
    return linear(nodes, width, width) + linear(nodes, width, 1)


@dataclass(frozen=True)
class Pomo(Transformer):
    clipping: float = 10.0
    cvrp: ClassVar[bool] = False

    @property
    def parameters(self) -> int:
        """1,269,760 as published for the TSP, 1,254,016 for the CVRP."""
        w, layer = self.width, layer_parameters(self.width, self.feed_forward) + 4 * self.width
        return self.depth * layer + _outside(w, self.cvrp) + w**2 + w

    def encoder(self, nodes: int) -> int:
        """The embedding, the layers, and keys, values and what nodes add to the queries (of the CVRP one fewer).

        So are nodes projected, instead of what each decision multiplies them with.
        """
        shared = (3 if self.cvrp else 4) * linear(nodes, self.width, self.width) + _folded(nodes, self.width)
        return self.layers(nodes) + _features(nodes, self.width, self.cvrp) + shared

    def decision(self, tokens: int) -> int:
        """Attention to all nodes, and the logits, which are clipped."""
        w, n = self.width, tokens - 1
        return attention(w, self.heads, 1, n) + linear(1, w, n) + n


@dataclass(frozen=True)
class PomoCvrp(Pomo):
    cvrp = True


@dataclass(frozen=True)
class Icam(Counts):
    depth: int = 12
    width: int = 128
    feed_forward: int = 512
    clipping: float = 50.0
    adaptation: bool = True
    compatibility: bool = True
    train_nodes: int = 100
    cvrp: ClassVar[bool] = False

    @property
    def parameters(self) -> int:
        """2,242,446 as published for the TSP, 2,226,702 for the CVRP."""
        w, f = self.width, self.feed_forward
        layer = 3 * w**2 + 2 * w * f + 5 * w + f
        return self.depth * layer + _outside(w, self.cvrp) + (self.depth + 1) * self.adaptation + self.compatibility

    def encoder(self, nodes: int) -> int:
        """The embedding, the layers (icam, Section 3.2), and what all decisions share, as of POMO.

        A layer: Q, K and V, the FFN, and the two products of exp(A), which are sums over all nodes without adaptation.
        """
        w, n = self.width, nodes
        layer = 3 * linear(n, w, w) + self.adaptation * attention(w, 1, n, n) + ffn(n, w, self.feed_forward)
        return self.depth * layer + _features(n, w, self.cvrp) + (3 if self.cvrp else 4) * linear(n, w, w)

    def decision(self, tokens: int) -> int:
        """The attention-free module and the logits.  Without adaptation what is masked still has to be hidden."""
        n = tokens - 1
        return attention(self.width, 1, 1, n) + linear(1, self.width, n) + n


@dataclass(frozen=True)
class IcamCvrp(Icam):
    cvrp = True


NORM_PARAMETERS = {"instance": 2, "batch": 2, "batch-untracked": 2, "layer": 2}  # of a channel


@dataclass(frozen=True)
class MvMoe(Transformer):
    """MVMoE, POMO-MTL and POMO for 16 VRPs.  A light decoder runs its experts in all decisions.

    Noise, which is for training, is not counted.
    """

    clipping: float = 10.0
    experts: int = 4
    top: int = 2
    positions: Sequence[str] = POSITIONS
    method: str = "input-choice"
    level: str = "node"
    decoder_method: str | None = None
    hierarchy: str = "none"
    norm: str = "instance"
    inputs: str = ALL

    @property
    def parameters(self) -> int:
        """1,254,656 of POMO-MTL, 3,682,176 of MVMoE/4E, 3,698,944 of MVMoE/4E-L.

        Layers: 4 W^2 + W for attention, 2 W F + W + F for an FFN, the norms.  Outside: (f + 4) W for the embeddings, f
        the numbers that are known of a customer; W^2 + W d of the context; 2 W^2 for keys and values; W^2 + W.
        """
        w, f = self.width, self._features
        norm = 1 if self.norm == "rezero" else NORM_PARAMETERS.get(self.norm, 0) * w
        layers = self.depth * (4 * w**2 + w) + 2 * self.depth * norm
        for number in range(self.depth):
            layers += self._count_place(f"enc{number}", w, 2 * w * self.feed_forward + w + self.feed_forward)
        embedding = self._count_place("raw", 2, 3 * w) + self._count_place("raw", f, (f + 1) * w)
        combine = self._count_place("dec", w, w**2 + w)
        if self._light:
            combine += w**2 + w + (0 if self.hierarchy == "random" else 2 * w)
        return layers + embedding + w * (w + len(self._inputs.columns)) + 2 * w**2 + combine

    def _count_place(self, place: str, inputs: int, one: int) -> int:
        """Count what is at a place: `one` parameters, or those of all experts and of their gate."""
        if place not in self._places:
            return one
        soft = self._method(place) == "soft"
        return self.experts * (one + inputs * (1 + (self.top if soft else 1)))

    def encoder(self, nodes: int) -> int:
        """The embeddings, the layers, and keys, values and what nodes add to the queries, with the depot."""
        w, n, f = self.width, nodes, self._features
        embedding = self._at("raw", 1, 2, w, linear(1, 2, w)) + self._at("raw", n - 1, f, w, linear(1, f, w))
        layers = self.depth * (4 * linear(n, w, w) + attention(w, self.heads, n, n))
        feeds = sum(self._at(f"enc{i}", n, w, w, ffn(1, w, self.feed_forward)) for i in range(self.depth))
        return embedding + layers + feeds + 3 * linear(n, w, w) + (0 if "dec" in self._places else _folded(n, w))

    def decision(self, tokens: int) -> int:
        return self.step(tokens - 1)

    def step(self, nodes: int, tours: int = 1, *, sparse: bool = True) -> int:
        """One decision of each of so many tours: what is known of it, attention, its experts, clipped logits.

        sparse: whether a hierarchical gate, 4 W, sends the step to the experts.
        """
        w, n = self.width, nodes
        each = linear(1, len(self._inputs.columns), w) + attention(w, self.heads, 1, n) + linear(1, w, n) + n
        row = linear(1, w, w)
        combine = 0
        if "dec" in self._places:
            combine = self._at("dec", tours, w, w, row) if sparse or not self._light else tours * row
        return tours * each + combine + (4 * w if self._light and self.hierarchy != "random" else 0)

    def _at(self, place: str, tokens: int, inputs: int, outputs: int, row: int) -> int:
        """Count tokens of one instance at a place: a row of what is there takes `row` FLOPs."""
        if place not in self._places:
            return tokens * row
        method, units = self._method(place), tokens if self.level == "node" else 1
        gate, slots = linear(units, inputs, self.experts), self.experts * self.top
        if method == "random":
            return tokens * self.top * row
        if method == "expert-choice":
            return gate + self.experts * max(1, units * self.top // self.experts) * (tokens // units) * row
        if method == "soft":
            mixing = 2 * slots * tokens * (inputs + outputs)
            return gate * self.top + mixing + slots * (tokens // units) * row
        return gate + tokens * self.top * row

    @property
    def _light(self) -> bool:
        return bool(self.experts) and self.hierarchy != "none"

    @property
    def _places(self) -> set[str]:
        return places(self.positions, self.depth) if self.experts else set()

    def _method(self, place: str) -> str:
        return (self.decoder_method or self.method) if place == "dec" else self.method

    @property
    def _inputs(self) -> Inputs:
        return inputs_of(self.inputs)

    @property
    def _features(self) -> int:
        return 5 if self._inputs.windows else 3
