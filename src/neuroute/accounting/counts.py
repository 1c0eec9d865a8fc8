"""Parameters and FLOPs of each network, from the arguments that describe it and without building it.

A class of the network's name takes the network's arguments, with the same defaults.  D is the depth, W the width, F the
width of the FFN, k the tokens of a decision, n the nodes.  Normalisations and initial values are not counted.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from neuroute.accounting.flops import attention, cross_module, ffn, linear, transformer_layer
from neuroute.networks.mvmoe_shape import ALL, POSITIONS, Inputs, inputs_of, places

Attention = Literal["cross", "self"]


class Counts(ABC):
    """What one network takes: an encoder runs once on the nodes, a decision on the tokens that are left."""

    @property
    @abstractmethod
    def parameters(self) -> int:
        """Count all parameters, those that are never trained included."""

    @abstractmethod
    def decision(self, tokens: int) -> int:
        """Count the FLOPs of one decision."""

    def encoder(self, nodes: int) -> int:
        """Count the FLOPs of what is computed once per instance; 0 without an encoder."""
        return 0


def layer_parameters(width: int, hidden: int) -> int:
    """4 W^2 + 2 W F + 2 W + F: self-attention with a biased output projection, and an FFN."""
    return 4 * width**2 + 2 * width * hidden + 2 * width + hidden


# -- decoders of what is left -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DecoderOnly(Counts):
    depth: int
    width: int
    heads: int
    gate: bool = True
    rezero: bool = True
    train_nodes: int = 100

    @property
    def parameters(self) -> int:
        """D (13 W^2 + 7 W + 2) + 2 W^2 + 6 W + 1 (scaling, Table 1); fewer without the gate or ReZero."""
        w = self.width
        layer = 12 * w**2 + 6 * w + self.gate * (w**2 + w) + 2 * self.rezero
        return self.depth * layer + 2 * w**2 + 6 * w + 1

    def decision(self, tokens: int) -> int:
        """Layers with the gate's product; start and current (4 W^2); embedding and head, on all tokens (6 W k)."""
        w = self.width
        layer = transformer_layer(w, self.heads, 4 * w, tokens) + self.gate * linear(tokens, w, w)
        return self.depth * layer + 4 * w**2 + 6 * w * tokens


@dataclass(frozen=True)
class Lehd(Counts):
    depth: int = 6
    width: int = 128
    heads: int = 8
    feed_forward: int = 512
    train_nodes: int = 100

    @property
    def parameters(self) -> int:
        """1,431,681 as published, its unused projection included."""
        return (
            (self.depth + 1) * layer_parameters(self.width, self.feed_forward) + 3 * self.width**2 + 7 * self.width + 1
        )

    def encoder(self, nodes: int) -> int:
        """The embedding and one layer."""
        return linear(nodes, 2, self.width) + transformer_layer(self.width, self.heads, self.feed_forward, nodes)

    def decision(self, tokens: int) -> int:
        """Layers, the projections of start and current (4 W^2), the head (2 W k)."""
        layer = transformer_layer(self.width, self.heads, self.feed_forward, tokens)
        return self.depth * layer + 4 * self.width**2 + 2 * self.width * tokens


@dataclass(frozen=True)
class LehdCvrp(Lehd):
    @property
    def parameters(self) -> int:
        w = self.width
        return (self.depth + 1) * layer_parameters(w, self.feed_forward) + 2 * w**2 + 10 * w + 2

    def encoder(self, nodes: int) -> int:
        """The embedding, of the demand too, and one layer, on depot and customers at once."""
        return super().encoder(nodes) + linear(nodes, 1, self.width)

    def decision(self, tokens: int) -> int:
        """Layers, the projections of depot and current (4 W (W + 1)), the head (4 W of each candidate)."""
        w, layer = self.width, transformer_layer(self.width, self.heads, self.feed_forward, tokens)
        return self.depth * layer + 4 * w * (w + 1) + 4 * w * (tokens - 2)


@dataclass(frozen=True)
class LehdCvrpLight(LehdCvrp):
    experts: int = 4
    top: int = 2

    @property
    def parameters(self) -> int:
        """D (2 W + 2 W m + m (2 W F + W + F)) more than LEHD: the gates and the experts of each decoder layer."""
        w, f = self.width, self.feed_forward
        return super().parameters + self.depth * (2 * w * (1 + self.experts) + self.experts * (2 * w * f + w + f))

    def decision(self, tokens: int, *, sparse: bool = True) -> int:
        """LEHD's decision, and in each layer the gate's 4 W.

        sparse: whether it sends the tokens to the experts: then 2 W m of each for their gate, and k FFNs, not one.
        """
        w = self.width
        experts = linear(tokens, w, self.experts) + (self.top - 1) * ffn(tokens, w, self.feed_forward)
        return super().decision(tokens) + self.depth * (4 * w + sparse * experts)


@dataclass(frozen=True)
class Bq(Counts):
    depth: int = 9
    width: int = 192
    heads: int = 12
    feed_forward: int = 512
    train_nodes: int = 100

    @property
    def parameters(self) -> int:
        """3,107,539 as published."""
        layer = layer_parameters(self.width, self.feed_forward) + self.width + 2
        return self.depth * layer + 6 * self.width + 1

    def decision(self, tokens: int) -> int:
        """Layers, the embedding (4 W k) and the head (2 W k)."""
        layer = transformer_layer(self.width, self.heads, self.feed_forward, tokens)
        return self.depth * layer + 6 * self.width * tokens


@dataclass(frozen=True)
class BqCvrp(Bq):
    attention: Attention = "self"
    representatives: int = 15

    @property
    def parameters(self) -> int:
        w, half = self.width, layer_parameters(self.width, self.feed_forward) + 2
        if self.attention == "cross":
            return 2 * self.depth * half + (self.representatives + 8) * w + 2
        return self.depth * (half + w) + 9 * w + 2

    def decision(self, tokens: int) -> int:
        """Layers, the embedding (8 W k), the head (4 W of each candidate); cross-attention has modules as SIT's."""
        w, m = self.width, self.representatives + 1
        if self.attention == "cross":
            layer = cross_module(w, self.heads, self.feed_forward, m, tokens - 2 + m)
        else:
            layer = transformer_layer(w, self.heads, self.feed_forward, tokens)
        return self.depth * layer + 8 * w * tokens + 4 * w * (tokens - 2)


@dataclass(frozen=True)
class Sit(Counts):
    """m = r + 1 representatives: r repetitions of the current node, and the destination."""

    depth: int = 6
    width: int = 128
    heads: int = 8
    feed_forward: int = 512
    representatives: int = 15
    attention: Attention = "cross"
    train_nodes: int = 1000
    cvrp: ClassVar[bool] = False  # with demand and what is left as further inputs, and two logits of each customer

    @property
    def parameters(self) -> int:
        """Halves of modules, linears of the representatives, embedding and head: 2,633,217 as published."""
        w, cvrp = self.width, self.cvrp
        layers = self.depth * (2 if self.attention == "cross" else 1) * layer_parameters(w, self.feed_forward)
        representatives = (self.representatives + 1) * (w * (w + cvrp) + w)
        return layers + representatives + (2 + cvrp) * w + w + (1 + cvrp) * (w + 1)

    def decision(self, tokens: int) -> int:
        """The embedding, the linears of the representatives, and layers and head on a stream of k - 2 + m tokens."""
        w, m = self.width, self.representatives + 1
        stream = tokens - 2 + m
        if self.attention == "cross":
            layer = cross_module(w, self.heads, self.feed_forward, m, stream)
        else:
            layer = transformer_layer(w, self.heads, self.feed_forward, stream)
        outside = linear(tokens, 2 + self.cvrp, w) + linear(m, w + self.cvrp, w) + linear(stream, w, 1 + self.cvrp)
        return self.depth * layer + outside


@dataclass(frozen=True)
class SitCvrp(Sit):
    """2,635,522 parameters as published."""

    detach_customers: bool = False
    cvrp = True


@dataclass(frozen=True)
class Pens(Counts):
    """RoPE's rotations, which grow with k alone, are not counted; ALiBi's bias is, 2 FLOPs of each head and pair."""

    depth: int = 9
    width: int = 192
    heads: int = 12
    feed_forward: int = 512
    positions: str = "alibi"
    initial: str = "gaussian"
    output_projection: bool = False
    train_nodes: int = 100

    @property
    def parameters(self) -> int:
        """D (3 W^2 + 2 W F + 2 W) + 2 W^2 + 3 W: 2,842,560 at the paper's shape (pens, Section 4.3)."""
        w = self.width
        layer = (3 + self.output_projection) * w**2 + 2 * w * self.feed_forward + 2 * w
        return self.depth * layer + 2 * w**2 + 3 * w + 2 * w * (self.positions == "coordinates")

    def decision(self, tokens: int) -> int:
        """Layers, and the pointer's query (2 W^2), keys (2 W^2 k) and products (2 W k)."""
        w, k = self.width, tokens
        layer = transformer_layer(w, self.heads, self.feed_forward, k)
        layer -= 0 if self.output_projection else linear(k, w, w)
        layer += 2 * self.heads * k**2 if self.positions in ("alibi", "both") else 0
        return self.depth * layer + linear(1 + k, w, w) + linear(k, w, 1)


# -- networks of many starts ------------------------------------------------------------------------------------------
#
# Counted is one solution.  A decision on k tokens is that of k - 1 nodes, as many as there are when a tour begins:
# visited nodes are computed and then left out, so the last decision costs as much as the first.  Ways back to the depot
# are decisions more, and not counted.


def _features(nodes: int, width: int, cvrp: bool) -> int:
    """Count the embedding: coordinates, and of the CVRP's customers the demand."""
    return linear(1, 2, width) + linear(nodes - 1, 3, width) if cvrp else linear(nodes, 2, width)


def _outside(width: int, cvrp: bool) -> int:
    """Count the parameters of embedding, context, keys and values: 4 W^2 + 3 W, of the CVRP 3 W^2 + 8 W."""
    return 3 * width**2 + 8 * width if cvrp else 4 * width**2 + 3 * width


@dataclass(frozen=True)
class Pomo(Counts):
    depth: int = 6
    width: int = 128
    heads: int = 8
    feed_forward: int = 512
    clipping: float = 10.0
    train_nodes: int = 100
    cvrp: ClassVar[bool] = False

    @property
    def parameters(self) -> int:
        """1,269,760 as published for the TSP, 1,254,016 for the CVRP."""
        w, layer = self.width, layer_parameters(self.width, self.feed_forward) + 4 * self.width
        return self.depth * layer + _outside(w, self.cvrp) + w**2 + w

    def encoder(self, nodes: int) -> int:
        """The embedding, the layers, and keys, values and what nodes add to the queries (of the CVRP one fewer)."""
        layers = self.depth * transformer_layer(self.width, self.heads, self.feed_forward, nodes)
        shared = (3 if self.cvrp else 4) * linear(nodes, self.width, self.width)
        return layers + _features(nodes, self.width, self.cvrp) + shared

    def decision(self, tokens: int) -> int:
        """Attention to all nodes, the projection, and the logits, which are clipped."""
        w, n = self.width, tokens - 1
        return attention(w, self.heads, 1, n) + linear(1, w, w) + linear(1, w, n) + n


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
class MvMoe(Counts):
    """MVMoE, POMO-MTL and POMO for 16 VRPs.  A light decoder runs its experts in all decisions.

    Noise, which is for training, is not counted.
    """

    depth: int = 6
    width: int = 128
    heads: int = 8
    feed_forward: int = 512
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
    train_nodes: int = 100

    @property
    def parameters(self) -> int:
        """1,254,656 of POMO-MTL, 3,682,176 of MVMoE/4E, 3,698,944 of MVMoE/4E-L."""
        return self._parameters(self.experts)

    @property
    def active_parameters(self) -> int:
        """Those that a token passes: k experts of each mixture.  2,068,608 of MVMoE/4E."""
        return self._parameters(self.top)

    def _parameters(self, counted: int) -> int:
        """Count so many experts of each mixture.

        Layers: 4 W^2 + W for attention, 2 W F + W + F for an FFN, the norms.  Outside: (f + 4) W for the embeddings, f
        the numbers that are known of a customer; W^2 + W d of the context; 2 W^2 for keys and values; W^2 + W.
        """
        w, f = self.width, self._features
        norm = 1 if self.norm == "rezero" else NORM_PARAMETERS.get(self.norm, 0) * w
        layers = self.depth * (4 * w**2 + w) + 2 * self.depth * norm
        for number in range(self.depth):
            layers += self._held(f"enc{number}", w, 2 * w * self.feed_forward + w + self.feed_forward, counted)
        embedding = self._held("raw", 2, 3 * w, counted) + self._held("raw", f, (f + 1) * w, counted)
        combine = self._held("dec", w, w**2 + w, counted)
        if self._light:
            combine += w**2 + w + (0 if self.hierarchy == "random" else 2 * w)
        return layers + embedding + w * (w + len(self._inputs.columns)) + 2 * w**2 + combine

    def _held(self, place: str, inputs: int, one: int, counted: int) -> int:
        """Count what is at a place: `one` parameters, or those of so many experts and of their gate."""
        if place not in self._places:
            return one
        soft = self._method(place) == "soft"
        return counted * one + inputs * self.experts * (1 + (self.top if soft else 1))

    def encoder(self, nodes: int) -> int:
        """The embeddings, the layers, and keys, values and what nodes add to the queries, with the depot."""
        w, n, f = self.width, nodes, self._features
        embedding = self._at("raw", 1, 2, w, linear(1, 2, w)) + self._at("raw", n - 1, f, w, linear(1, f, w))
        layers = self.depth * (4 * linear(n, w, w) + attention(w, self.heads, n, n))
        feeds = sum(self._at(f"enc{i}", n, w, w, ffn(1, w, self.feed_forward)) for i in range(self.depth))
        return embedding + layers + feeds + 3 * linear(n, w, w)

    def decision(self, tokens: int) -> int:
        return self.step(tokens - 1)

    def step(self, nodes: int, tours: int = 1, *, sparse: bool = True) -> int:
        """One decision of each of so many tours: what is known of it, attention, a projection, clipped logits.

        sparse: whether a hierarchical gate, 4 W, sends the step to the experts.
        """
        w, n = self.width, nodes
        each = linear(1, len(self._inputs.columns), w) + attention(w, self.heads, 1, n) + linear(1, w, n) + n
        row = linear(1, w, w)
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
