"""What decoding, training and evaluation ask of a network: the two interfaces, and what networks declare of themselves.

A network of your own is one file with one class that builds on `PathNetwork` or `MultiStartNetwork`
(docs/tutorial/add_a_network.md).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from torch import Tensor, nn

from neuroute.core.errors import NeurouteError

# A call -> what it returns, and its FLOPs.  A network of neither kind says by `count_flops(count, coords, *demand)`
# what encoding coords (1, nodes, 2) takes, and one decision on as many tokens (`evaluation.flops.Counts`).
Count = Callable[[Callable[[], Any]], tuple[Any, int]]


class RoutingNetwork(nn.Module, ABC):
    """What both kinds of networks declare.

    Attributes:
        width: channels of a token; the constructor sets it.
        depth: layers, likewise; with the width it gives an estimate of a batch's memory.
        train_nodes: size of the training instances, likewise.
        problem: "tsp", "cvrp" or "vrp".
        multi_start: whether it builds many solutions at once.
        single_start: of one of many starts: whether it is trained with one solution of an instance.
        pair_channels: numbers that are kept of each pair of nodes at a time, for estimates of memory.
        decision_tokens: tokens, times layers, that each decision of one tour encodes anew, likewise.
        random_embeddings: whether its answers differ from draw to draw.
        own_beams: whether its `own_method`, where it has one, takes beams.
    """

    problem: ClassVar[str] = "tsp"
    multi_start: ClassVar[bool] = False
    single_start: ClassVar[bool] = False
    width: int
    depth: int
    train_nodes: int
    pair_channels: int = 0
    decision_tokens: int = 0
    random_embeddings: bool = False
    own_beams: ClassVar[bool] = False

    @property
    def is_batch_dependent(self) -> bool:
        """Whether outputs of an evaluation depend on what else is in the batch."""
        return False

    @abstractmethod
    def encode(self, *args: Any, **kwargs: Any) -> Any:
        """Compute what is needed once per instance."""

    @abstractmethod
    def decide(self, *args: Any, **kwargs: Any) -> Tensor:
        """Compute the logits of one decision."""


class PathNetwork(RoutingNetwork):
    """A network that builds one solution: it scores the nodes that may follow the current one.

    TSP   encode(coords (batch, nodes, 2)) -> rows (batch, nodes, E)
          decide(rows (batch, 1 + available + 1, E), attention_scale) -> logits (batch, available)
    CVRP  encode(coords (batch, 1 + V, 2), demand (batch, 1 + V)) -> rows (batch, 1 + V, E), the depot first
          decide(rows, remaining (batch,), attention_scale) -> logits (batch, available, 2): straight, through the depot

    `decide` gets the rows that are still open, in the order [current, available..., destination].  Its logits must not
    depend on the order of the available rows: in training the label is always the first of them.  Demands and what
    remains are shares of the capacity.

    A network with `random_embeddings` draws them from `draw` and the place of the batch's first instance, `first`.  One
    with `variable_lengths` takes paths of different lengths, `decide(rows, lengths=...)`, and `encode(coords, noise)`.
    The rows of one that `remembers` change with every stop: it has to `arrive` there before it decides.
    """

    variable_lengths: ClassVar[bool] = False
    remembers: ClassVar[bool] = False
    draw: int = 0  # which random embeddings: each instance is solved with several
    first: int = 0  # place in its test set of the first instance that is encoded

    def attention_scale(self, nodes: int) -> float:
        """Return the factor of the attention scores for instances of so many nodes; 1: it does not depend on them."""
        return 1.0

    def arrive(self, rows: Tensor) -> None:
        """Let rows (batch, 1 + available + 1, E), in place, know that their first has become the current stop."""

    def hidden(self, *args: Any, **kwargs: Any) -> Tensor:
        """Last-layer states (batch, 1 + available + 1, width) of what `decide` takes, for analyses of representations.

        Raises:
            NeurouteError: if the network has none.
        """
        raise NeurouteError(f"{type(self).__name__} has no `hidden`, which analyses of its last layer need")

    def pairs(self, rows: Tensor, floats: int | None = None) -> Tensor | None:
        """Return what `decide` takes of each pair of rows as its third argument; None: nothing.

        Args:
            rows: (batch, tokens, E).
            floats: how many numbers there may be; None: any.

        Returns:
            (batch, C, tokens, tokens)
        """
        return None


class MultiStartNetwork(RoutingNetwork):
    """A network that builds many solutions of an instance at once, which differ in where they start.

    encode(coords, *demand) -> encoded; prepare(encoded) -> prepared, a named tuple with `nodes` (batch, nodes, width);
    decide(prepared, context, current, mask) -> logits (batch, tours, nodes), -inf where the mask is.
    context (batch, tours): where a tour began (TSP), or the share of the capacity that is left (CVRP);
    current (batch, tours) int64: where it is; mask (batch, tours, nodes): -inf where it may not go, 0 elsewhere.

    One with a `single_start` is trained and validated with a single solution of an instance, which begins at a random
    node (TSP) or where the network says (CVRP).  One of the CVRP that `sees_served` gets, as its context, what is left
    and then -inf at each node that has been served, 0 elsewhere: (batch, tours, 1 + nodes).
    """

    multi_start: ClassVar[bool] = True
    sees_served: ClassVar[bool] = False

    @abstractmethod
    def prepare(self, *args: Any, **kwargs: Any) -> Any:
        """Compute what the decisions of an instance share."""

    def decide_best(self, *state: Any) -> Tensor:
        """The most probable next stop of each tour (batch, tours), of what `decide` takes.

        A network may know it without the probabilities.
        """
        return self.decide(*state).max(dim=-1).indices  # `argmax` takes four times as long on a CPU

    def path_rows(self, coords: Tensor) -> Tensor:
        """coords (batch, nodes, 2) of the TSP -> rows (batch, nodes, E): all that `decide_path` reads.

        Raises:
            NeurouteError: if there is none, as for a network of another problem.
        """
        raise self._no_paths()

    def decide_path(self, rows: Tensor) -> Tensor:
        """rows (batch, 1 + available + 1, E) of [current, available..., where the tour closes] -> (batch, available).

        The logits are those of `decide` of a tour that began at the last row.
        """
        raise self._no_paths()

    def _no_paths(self) -> NeurouteError:
        return NeurouteError(
            f"{type(self).__name__} has no `path_rows` and `decide_path`, which beam search and re-construction need"
        )
