"""Parameters and FLOPs of INViT, as in `accounting.counts_many_starts`: decisions encode anew what is near a stop."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from neuroute.accounting.counts import Transformer, layer_parameters
from neuroute.accounting.flops import attention, ffn, linear, transformer_layer


@dataclass(frozen=True)
class Invit(Transformer):
    """Every decision encodes its views anew; the search of the nearest nodes, which has no products, is not counted."""

    depth: int = 2
    action_depth: int = 2
    views: Sequence[int] = (35, 50, 65)
    actions: int = 15
    clipping: float = 10.0
    cvrp: ClassVar[bool] = False

    @property
    def parameters(self) -> int:
        """1,718,528 as published for the TSP with two views, 2,642,816 with three, 2,264,576 for the CVRP."""
        w, v, features = self.width, len(self.views), 2 + self.cvrp
        layers = v * self.depth + self.action_depth
        outside = 2 * (v + 1) * (features + 1) * w + 3 * w * (v + self.cvrp)
        layers *= layer_parameters(w, self.feed_forward) + 5 * w  # three norms, and a projection without bias
        query, pairs = (2 * v + 1 + self.cvrp) * w**2 + w, 6 * ((v + 1) * w**2 + w)
        return outside + layers + query + pairs + 2 * (4 * w**2 + 8 * w) + w**2 + w

    def decision(self, tokens: int) -> int:
        """Embeddings and layers of each view, the query, keys and values of the actions, two glimpses, the logits.

        A view of an instance of fewer nodes than it may have has all of them but the current stop.
        """
        w, most = self.width, tokens - 2
        sizes = [
            (min(self.actions, most), self.action_depth, self.cvrp),
            *((min(k, most), self.depth, True) for k in self.views),
        ]
        total = sum(self._view(*size) for size in sizes)
        v, a = len(self.views), sizes[0][0] + self.cvrp
        total += linear(1, (2 * v + 1 + self.cvrp) * w, w) + linear(a, (v + 1) * w, 6 * w)
        glimpse = 2 * linear(1, w, w) + attention(w, self.heads, 1, a) + ffn(1, w, w)
        return total + 2 * glimpse + linear(1, w, w) + linear(1, w, a) + a

    def _view(self, nodes: int, depth: int, other: bool) -> int:
        """Of the nodes, the current stop and one node besides, if there is one; the last layer is of the actions'."""
        w, tokens = self.width, nodes + 1 + other
        queries = min(self.actions, nodes) + 1 + other
        inputs = linear(nodes + 1, 2 + self.cvrp, w) + other * linear(1, 2, w)
        last = 2 * linear(tokens, w, w) + 2 * linear(queries, w, w)
        last += attention(w, self.heads, queries, tokens) + ffn(queries, w, self.feed_forward)
        return inputs + (depth - 1) * transformer_layer(w, self.heads, self.feed_forward, tokens) + last


@dataclass(frozen=True)
class InvitCvrp(Invit):
    strict: bool = False
    cvrp = True
