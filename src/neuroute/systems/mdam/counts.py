"""Parameters and FLOPs of MDAM, as in `accounting.counts`: of a solution of each decoder."""

from dataclasses import dataclass
from typing import ClassVar

from neuroute.accounting.counts import Transformer, layer_parameters
from neuroute.accounting.flops import attention, ffn, linear


@dataclass(frozen=True)
class Mdam(Transformer):
    depth: int = 3
    clipping: float = 10.0
    decoders: int = 5
    glimpse_every: int = 2
    cvrp: ClassVar[bool] = False

    @property
    def parameters(self) -> int:
        """1,167,360 as published for the TSP, 1,086,336 for the CVRP."""
        w = self.width
        outside = 7 * w if self.cvrp else 5 * w  # the embedding, and what stands for a tour that has no stop
        layers = self.depth * (layer_parameters(w, self.feed_forward) + 3 * w)
        return outside + layers + self.decoders * (5 * w**2 + self._context_width * w)

    @property
    def _context_width(self) -> int:
        return self.width + 1 if self.cvrp else 2 * self.width

    def encoder(self, nodes: int) -> int:
        """The embedding, the layers, and what each decoder makes of the nodes."""
        w, n = self.width, nodes
        features = linear(1, 2, w) + linear(n - 1, 3, w) if self.cvrp else linear(n, 2, w)
        return features + self.layers(n) + self.decoders * self.prepared(n)

    def prepared(self, nodes: int) -> int:
        """What one decoder makes of the nodes of one row."""
        return 3 * linear(nodes, self.width, self.width) + linear(1, self.width, self.width)

    def decision(self, tokens: int) -> int:
        """A step of each decoder, and its part of the last layer, all of which is computed every so many steps."""
        n = tokens - 1
        return self.decoders * (self.step(n) + self.glimpse(n) // self.glimpse_every)

    def step(self, nodes: int) -> int:
        """One decoder's query, glimpse and clipped products of one solution."""
        w, n = self.width, nodes
        query = linear(1, self._context_width, w) + linear(1, w, w)
        return query + attention(w, self.heads, 1, n) + linear(1, w, n) + n

    def glimpse(self, nodes: int) -> int:
        """The last layer from its weights on, for one solution: the sums of open ones too; and what follows from it."""
        w, n = self.width, nodes
        mixed = linear(n, n, w) + self.heads * linear(n, n, 1) + linear(n, w, w)
        return mixed + ffn(n, w, self.feed_forward) + self.prepared(n)


@dataclass(frozen=True)
class MdamCvrp(Mdam):
    cvrp = True
