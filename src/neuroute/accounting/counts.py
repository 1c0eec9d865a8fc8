"""Parameters and FLOPs of networks that extend one path, from their arguments and without building them.

A class of the network's name takes the network's arguments, with the same defaults.  D is the depth, W the width, F the
width of the FFN, k the tokens of a decision, n the nodes.  Normalisations and initial values are not counted.  Networks
of many starts are in `counts_many_starts`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

from neuroute.accounting.flops import cross_module, ffn, linear, transformer_layer

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


@dataclass(frozen=True)
class Transformer(Counts):
    """What networks of Transformer layers are made of; their own classes have other defaults and more arguments."""

    depth: int = 6
    width: int = 128
    heads: int = 8
    feed_forward: int = 512
    train_nodes: int = 100

    def layers(self, tokens: int) -> int:
        """Count the FLOPs of all layers."""
        return self.depth * transformer_layer(self.width, self.heads, self.feed_forward, tokens)


def layer_parameters(width: int, hidden: int) -> int:
    """4 W^2 + 2 W F + 2 W + F: self-attention with a biased output projection, and an FFN."""
    return 4 * width**2 + 2 * width * hidden + 2 * width + hidden


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
class Lehd(Transformer):
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
        return self.layers(tokens) + 4 * self.width**2 + 2 * self.width * tokens


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
        w = self.width
        return self.layers(tokens) + 4 * w * (w + 1) + 4 * w * (tokens - 2)


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
class Bq(Transformer):
    depth: int = 9
    width: int = 192
    heads: int = 12

    @property
    def parameters(self) -> int:
        """3,107,539 as published."""
        layer = layer_parameters(self.width, self.feed_forward) + self.width + 2
        return self.depth * layer + 6 * self.width + 1

    def decision(self, tokens: int) -> int:
        """Layers, the embedding (4 W k) and the head (2 W k)."""
        return self.layers(tokens) + 6 * self.width * tokens


@dataclass(frozen=True)
class BqCvrp(Bq):
    attention: Attention = "self"
    representatives: int = 15
    nearest: int | None = None

    @property
    def parameters(self) -> int:
        w, half = self.width, layer_parameters(self.width, self.feed_forward) + 2
        if self.attention == "cross":
            return 2 * self.depth * half + (self.representatives + 8) * w + 2
        return self.depth * (half + w) + 9 * w + 2

    def decision(self, tokens: int) -> int:
        """Layers, the embedding (8 W k), the head (4 W of each candidate); cross-attention has modules as SIT's.

        All on no more than the `nearest` candidates; which they are is not counted.
        """
        w, m = self.width, self.representatives + 1
        tokens = tokens if self.nearest is None else min(tokens, self.nearest + 2)
        layers = self.layers(tokens)
        if self.attention == "cross":
            layers = self.depth * cross_module(w, self.heads, self.feed_forward, m, tokens - 2 + m)
        return layers + 8 * w * tokens + 4 * w * (tokens - 2)


@dataclass(frozen=True)
class Sit(Transformer):
    """m = r + 1 representatives: r repetitions of the current node, and the destination."""

    representatives: int = 15
    attention: Attention = "cross"
    cvrp: ClassVar[bool] = False  # with demand and what is left as further inputs, and two logits of each customer

    @property
    def parameters(self) -> int:
        """Halves of modules, linears of the representatives, embedding and head: 2,633,217 as published."""
        w, cvrp = self.width, self.cvrp
        layers = self.depth * (2 if self.attention == "cross" else 1) * layer_parameters(w, self.feed_forward)
        representatives = (self.representatives + 1) * (w * (w + cvrp) + w)
        return layers + representatives + (2 + cvrp) * w + w + (1 + cvrp) * (w + 1)

    def decision(self, tokens: int) -> int:
        """The embedding, the linears of the representatives, layers on a stream of k - 2 + m tokens, and the head."""
        w, m = self.width, self.representatives + 1
        stream = tokens - 2 + m
        layers = self.layers(stream)
        if self.attention == "cross":
            layers = self.depth * cross_module(w, self.heads, self.feed_forward, m, stream)
        outside = linear(tokens, 2 + self.cvrp, w) + linear(m, w + self.cvrp, w) + linear(tokens - 2, w, 1 + self.cvrp)
        return layers + outside


@dataclass(frozen=True)
class SitCvrp(Sit):
    """2,635,522 parameters as published."""

    detach_customers: bool = False
    cvrp = True


@dataclass(frozen=True)
class Pens(Transformer):
    """RoPE's rotations, which grow with k alone, are not counted; ALiBi's bias is, 2 FLOPs of each head and pair."""

    depth: int = 9
    width: int = 192
    heads: int = 12
    positions: str = "alibi"
    initial: str = "gaussian"
    output_projection: bool = False

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
