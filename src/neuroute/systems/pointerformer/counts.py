"""Parameters and FLOPs of Pointerformer, as in `accounting.counts_many_starts`."""

from dataclasses import dataclass

from neuroute.accounting.counts import Transformer, layer_parameters
from neuroute.accounting.flops import linear


@dataclass(frozen=True)
class Pointerformer(Transformer):
    """Distances are not counted, nor are visited nodes told from open ones; what these add to a query is."""

    clipping: float = 50.0

    @property
    def parameters(self) -> int:
        """1,288,064 as published."""
        w = self.width
        return self.depth * (layer_parameters(w, self.feed_forward) + 3 * w) + 6 * w**2 + 25 * w

    def encoder(self, nodes: int) -> int:
        """The embedding of 24 features, the layers, what four kinds of nodes add to a query, projected again, keys."""
        return linear(nodes, 24, self.width) + self.layers(nodes) + 9 * linear(nodes, self.width, self.width)

    def decision(self, tokens: int) -> int:
        """The sum of what was visited, and the logits, which are clipped."""
        n = tokens - 1
        return linear(1, n, self.width) + linear(1, self.width, n) + n
