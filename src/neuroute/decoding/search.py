"""What searches ask of a problem: which networks they take, and how solutions are re-constructed."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Generic

from torch import Tensor

from neuroute.decoding.environment import B, Environment
from neuroute.decoding.memory import batch_size_for
from neuroute.networks.base import PathNetwork, RoutingNetwork
from neuroute.problems.registry import Part
from neuroute.specs.objects import Decoding


class Search(ABC, Generic[B]):
    """Ways to decode a problem that go beyond greedy construction."""

    environment: Environment[B]

    @abstractmethod
    def check(self, net: RoutingNetwork, decoding: Decoding, *, improves: bool = False) -> None:
        """Raises NeurouteError if this kind of network cannot be decoded that way.

        improves: whatever the way is, it begins with one solution, which gets better.
        """

    def improves(self, net: RoutingNetwork) -> bool:
        """Whether `reconstruct` takes a network."""
        return True

    @abstractmethod
    def reconstruct(
        self,
        net: RoutingNetwork,
        batch: B,
        solutions: Tensor,
        decoding: Decoding,
        memory_gb: float,
        *,
        seed: int = 0,
        first: int = 0,
        iterations_before: int = 0,
    ) -> Iterator[Tensor]:
        """The solutions (batch, ...) after each of the decoding's iterations of random or parallel re-construction.

        All lies on the network's device.  `first`: the number of the batch's first instance, on which draws may depend.
        With `iterations_before`, `solutions` are those after as many iterations.
        Raises NeurouteError for a longest sub-path that cannot be, and for networks that `check` refuses.
        """

    def path_network(self, net: RoutingNetwork) -> PathNetwork:
        """View the network as one of paths."""
        paths: PathNetwork = net  # type: ignore[assignment]
        return paths

    def start_from_many(self, net: RoutingNetwork, batch: B, decoding: Decoding, memory_gb: float) -> Tensor | None:
        """The best of many starts, for re-construction to begin with; None where it begins with a greedy solution."""
        return None

    @abstractmethod
    def search_beams(self, net: PathNetwork, batch: B, decoding: Decoding, first: int) -> Tensor:
        """The shortest solutions (batch, ...) that beams find.

        first: the place of the first instance in its test set.  Raises NeurouteError for networks that `check` refuses.
        """


SEARCH = Part[Search[Any]]("search")


def blocks_per_batch(net: RoutingNetwork, memory_gb: float, nodes: int) -> int:
    """Count the blocks of so many nodes that fit."""
    return batch_size_for(net, nodes, Decoding(), memory_gb)
