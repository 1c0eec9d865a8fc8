"""Parameters and FLOPs of DGL, as in `accounting.counts`."""

from dataclasses import dataclass

from neuroute.accounting.counts import Transformer, layer_parameters
from neuroute.accounting.flops import linear, transformer_layer


@dataclass(frozen=True)
class Dgl(Transformer):
    """What a decision computes with is the current stop and the nearest open nodes; distances are not counted."""

    depth: int = 3
    nearest: int = 30

    @property
    def parameters(self) -> int:
        """807,169 as published, without two projections that nothing computes with."""
        return (self.depth + 1) * layer_parameters(self.width, self.feed_forward) + self.width**2 + 10 * self.width + 1

    def decision(self, tokens: int) -> int:
        """The embedding of 7 features, layers, the projection of the current stop (2 W^2), the head."""
        k = min(self.nearest, tokens - 2) + 1
        layers = (self.depth + 1) * transformer_layer(self.width, self.heads, self.feed_forward, k)
        return layers + linear(k, 7, self.width) + linear(1, self.width, self.width) + linear(k - 1, self.width, 1)
