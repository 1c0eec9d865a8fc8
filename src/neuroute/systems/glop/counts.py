"""Parameters and FLOPs of GLOP's networks, as in `accounting.counts`."""

from collections.abc import Sequence
from dataclasses import dataclass

from neuroute.accounting.counts import Counts, Transformer, layer_parameters
from neuroute.accounting.flops import attention, linear


@dataclass(frozen=True)
class Glop(Transformer):
    clipping: float = 10.0
    blocks: Sequence[int] = (100, 50, 20)
    shared: bool = False
    insertions: Sequence[int] = (35, 10, 1, 128)

    @property
    def parameters(self) -> int:
        """Of each reviser D (4 W^2 + 2 W F + 5 W + F) + 7 W^2 + 5 W: 1,301,888 as published."""
        w = self.width
        each = self.depth * (layer_parameters(w, self.feed_forward) + 3 * w) + 7 * w**2 + 5 * w
        return each * (1 if self.shared else len(self.blocks))

    def encoder(self, nodes: int) -> int:
        """The embedding, the layers, what nodes bring to decisions (5 W^2), and the mean and the first node."""
        w = self.width
        return linear(nodes, 2, w) + self.layers(nodes) + 5 * linear(nodes, w, w) + 2 * linear(1, w, w)

    def decision(self, tokens: int) -> int:
        """A glimpse at what is open, and clipped logits."""
        return attention(self.width, self.heads, 1, tokens - 2) + linear(1, self.width, tokens - 2) + tokens - 2


@dataclass(frozen=True)
class GlopPartition(Counts):
    depth: int = 12
    width: int = 48
    neighbours: int = 100
    near: bool = False
    train_nodes: int = 1000

    @property
    def parameters(self) -> int:
        """148,513 as published, 76,801 of 6 layers."""
        w = self.width
        return self.depth * (5 * w**2 + 9 * w) + 2 * (w**2 + w) + 8 * w + 1

    def encoder(self, nodes: int) -> int:
        """All of it: the products of directions, the layers, the edges' heads."""
        w, k = self.width, min(self.neighbours, nodes - 1)
        edges = nodes * k
        embedding = linear(nodes, 3, w) + linear(edges, 2, w)
        layers = self.depth * (linear(edges, w, w) + 4 * linear(nodes, w, w) + 2 * edges * w)
        return linear(nodes, 2, nodes) + embedding + layers + 2 * linear(edges, w, w) + linear(edges, w, 1)

    def decision(self, tokens: int) -> int:
        """None: a walk reads what is there."""
        return 0
