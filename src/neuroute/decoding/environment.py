"""What decoding, and training by reinforcement, ask of a problem: batches on a device, and how solutions are built."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import torch
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.decoding.memory import batch_size_for, bytes_of_decision
from neuroute.networks.base import MultiStartNetwork, PathNetwork, RoutingNetwork
from neuroute.problems.registry import Part
from neuroute.specs.objects import Decoding

Choose = Callable[[Tensor], Tensor]  # logits (batch, tours, nodes) -> nodes (batch, tours)


class Rollout(Protocol):
    """Solutions of several instances that are being built: as many of each, in step."""

    context: Tensor  # (batch, tours, ...): what a decision knows besides the stop, see `MultiStartNetwork`
    current: Tensor  # (batch, tours) int64: the stop
    action_mask: Tensor  # (batch, tours, nodes): -inf at what may not come next, 0 elsewhere

    def done(self) -> bool:
        """Whether nothing is left to be decided."""

    def step(self, stops: Tensor) -> None:
        """Move on to stops (batch, tours)."""

    def select(self, parents: Tensor) -> None:
        """Go on with the solutions `parents` (batch, new) int64, each as often as it is among them, and no others."""

    def solutions(self) -> Tensor:
        """What was built, int64 (batch, tours, ...).  Raises NeurouteError if scores were no numbers."""


def choose_best(logits: Tensor) -> Tensor:
    """The most probable next stop."""
    return logits.max(dim=-1).indices  # `argmax` takes four times as long on a CPU


def complete(net: MultiStartNetwork, prepared: Any, rollout: Rollout, choose: Choose | None = None) -> Tensor:
    """The solutions of a rollout, each decision made by `choose`, or the most probable one.

    prepared: what `net.prepare` returns.  Sampling, and the probabilities that training needs, are a matter of
    `choose`, which sees the logits of each decision.
    """
    while not rollout.done():
        state = prepared, rollout.context, rollout.current, rollout.action_mask
        rollout.step(net.decide_best(*state) if choose is None else choose(net.decide(*state)))
    return rollout.solutions()


def no_numbers() -> NeurouteError:
    """The error for decisions that went where they may not."""
    return NeurouteError(
        "incomplete solutions: scores are not finite (diverged training: lower its learning rate), or `decide` does "
        "not add the mask"
    )


def precision_of(prepared: Any) -> torch.dtype:
    """Of masks and of what decisions know besides: at least float32, whatever networks compute in."""
    return torch.promote_types(prepared.nodes.dtype, torch.float32)


def empty_mask(starts: Tensor, nodes: int, dtype: torch.dtype) -> Tensor:
    """Zeros (batch, tours, nodes); rows begin at multiples of 8, as a GPU's fused attention loads them."""
    batch, tours = starts.shape
    return torch.zeros(batch, tours, nodes + -nodes % 8, dtype=dtype, device=starts.device)[..., :nodes]


def select_tours(values: Tensor, parents: Tensor) -> Tensor:
    """values (batch, tours, ...), parents (batch, new) int64 -> (batch, new, ...)."""
    return values[torch.arange(len(parents), device=parents.device)[:, None], parents]


def select_masks(mask: Tensor, parents: Tensor) -> Tensor:
    """mask (batch, tours, nodes), parents (batch, new) int64 -> (batch, new, nodes), with rows as in `empty_mask`."""
    return empty_mask(parents, mask.shape[2], mask.dtype).copy_(select_tours(mask, parents))


def mask_stops(mask: Tensor, stops: Tensor) -> Tensor:
    """-inf at stops (batch, tours).  In place, unless gradients still need what was there."""
    if torch.is_grad_enabled():
        return mask.scatter(2, stops[..., None], -torch.inf)
    return mask.scatter_(2, stops[..., None], -torch.inf)


BYTES = 48  # of a tour and a node while a decision is made: its mask, distances, the logits on their way


@dataclass(frozen=True)
class Batch(ABC):
    """Instances of a problem on the network's device."""

    coords: Tensor  # (batch, nodes, 2), the depot first where there is one

    def __len__(self) -> int:
        return len(self.coords)

    def __getitem__(self, rows: slice | Tensor) -> Self:
        return self._map(lambda array: array[rows])

    @property
    @abstractmethod
    def features(self) -> tuple[Tensor, ...]:
        """What encoders of many starts take."""

    def repeat(self, times: int) -> Self:
        """The batch so many times, one after the other."""
        return self if times == 1 else self._map(lambda array: array.repeat(times, *[1] * (array.dim() - 1)))

    def at(self, coords: Tensor) -> Self:
        """The same with other coordinates."""
        return replace(self, coords=coords)

    def to(self, dtype: torch.dtype) -> Self:
        """The same with what networks read in this precision."""
        return self.at(self.coords.to(dtype))

    @abstractmethod
    def start_nodes(self, number: int) -> Tensor:
        """The first so many nodes at which solutions may start: int64 (batch, number)."""

    @abstractmethod
    def rollout(self, starts: Tensor, dtype: torch.dtype) -> Rollout:
        """Solutions from starts (batch, tours); dtype: of the network's nodes."""

    @abstractmethod
    def lengths(self, solutions: Tensor) -> Tensor:
        """Lengths (batch, tours), float64, of solutions (batch, tours, ...)."""

    def _map(self, change: Callable[[Tensor], Tensor]) -> Self:
        """The same change of every tensor."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{name: change(value) for name, value in values.items() if isinstance(value, Tensor)})


B = TypeVar("B", bound=Batch)


class Environment(ABC, Generic[B]):
    """A problem.  Its size n counts nodes (TSP) or customers, `noun` of which solutions may start at."""

    noun: ClassVar[str]
    depots: ClassVar[int]

    @abstractmethod
    def size(self, instances: Any) -> int:
        """n of instances in host memory."""

    @abstractmethod
    def shape(self, n: int) -> tuple[int, ...]:
        """Of one solution."""

    @abstractmethod
    def batch(self, instances: Any, device: torch.device) -> B:
        """Instances in host memory -> a batch."""

    @abstractmethod
    def max_moves(self, n: int) -> int:
        """The most decisions that a solution takes whose start is given."""

    @abstractmethod
    def build_greedily(self, net: PathNetwork, batch: B, decoding: Decoding, memory_gb: float, first: int) -> Tensor:
        """The solutions (batch, ...) of a path network.  first: the place of the first instance in its test set.

        Raises NeurouteError if there are no such networks.
        """

    def nodes(self, n: int) -> int:
        return n + self.depots

    def count_starts(self, instances: Any, starts: int | None) -> int:
        """Solutions of an instance; None: from every start.  Raises NeurouteError if there are none, or not so many."""
        places = self.size(instances)
        if starts is None:
            return places
        if not 1 <= starts <= places:
            raise NeurouteError(
                f"{starts} starts of an instance of {places} {self.noun}; give from 1 to {places}, or 'all' {self.noun}"
            )
        return starts

    def batch_sizes(
        self, net: RoutingNetwork, nodes: int, tours: int, images: int, memory_gb: float, instances: int | None = None
    ) -> tuple[int, int]:
        """Tours that are built at a time, and instances that are encoded at a time: both at least 1.

        tours: of one instance, those of all its `images` together; instances: as many, or, if None, as fit.  Raises
        NeurouteError if the activations of one image's encoder are more than all the memory.
        """
        most = max(1, int(memory_gb * 1e9 / (BYTES * nodes + bytes_of_decision(net))))
        encoded = batch_size_for(net, nodes, Decoding(), memory_gb)
        return most, instances or max(1, min(most // tours, encoded // images))

    def prepare(self, net: MultiStartNetwork, batch: B, seed: int) -> Any:
        """What all decisions of a batch share.  seed: of what the network draws, if it does."""
        return net.prepare(net.encode(*batch.features))

    def reset(self, prepared: Any) -> None:
        """Forget what the network has kept of tours that were built before."""


ENVIRONMENT = Part[Environment[Any]]("environment")
