"""What gates draw, and what they report of how evenly they spread their tokens (MVMoE; Zhou et al., 2024, App. B.3).

A forward pass is given a `Routing`; nothing is kept in the layers.  Learning from solutions that were sampled without a
graph takes two passes with the same noise: the first writes it on a `Tape`, the second reads it there.
"""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from neuroute.networks.blocks.precision import at_least_float32

Make = Callable[[torch.Generator | None], Tensor]


class Balance(NamedTuple):
    """Of each call of a layer, and of each of its m experts."""

    importance: Tensor  # (calls, m): sums of gate values (Equation 17)
    load: Tensor  # (calls, m): how many tokens it got, in training a smooth estimate of that (Equation 18)

    def loss(self) -> Tensor:
        """The sum over calls of CV(importance)^2 + CV(load)^2 (Equation 19): a scalar."""
        return (variation(self.importance) + variation(self.load)).sum()


def variation(x: Tensor) -> Tensor:
    """The squared coefficient of variation of x (..., m), its variance being the unbiased one; 0 of a single expert."""
    if x.shape[-1] == 1:
        return torch.zeros_like(x[..., 0])
    return x.var(dim=-1) / (x.mean(dim=-1).square() + 1e-10)


class Routing:
    """Draw afresh.

    generator: on the network's device; None for torch's own of that device.  balance: whether layers report, one
    `Balance` for each time that one of them ran, in `reports`; of a hierarchical gate, `sparse` says at which calls its
    experts ran.
    """

    def __init__(self, generator: torch.Generator | None = None, *, balance: bool = False) -> None:
        self.generator, self.balance = generator, balance
        self.reports: list[Balance] = []
        self.sparse: list[Tensor] = []  # (calls,) bool each
        self.first: Tensor | None = None  # what a hierarchical gate found at an episode's first step

    def calls(self, tokens: int) -> int:
        """How many calls of a layer lie side by side in these tokens of an instance."""
        return 1

    def resolve(self, what: str, calls: int, make: Make) -> Tensor:
        """Draw random numbers, or decisions that hang on them: (calls, ...), as `make` makes them of a generator."""
        return make(self.generator)

    def normal(self, like: Tensor, generator: torch.Generator | None) -> Tensor:
        """Gaussian noise of the shape of scores (calls, units, m)."""
        return torch.randn(like.shape, generator=generator, device=like.device, dtype=like.dtype)

    def mean(self, x: Tensor) -> Tensor:
        """x (calls, batch, tokens, width) -> its mean over each call's whole batch (calls, width)."""
        return x.mean(dim=(1, 2))

    def loss(self) -> Tensor:
        """The balance loss of all that was reported since it was last asked for, with its graph; to be weighed.

        A sum over layers and calls, every decision of a solution being one, as in the published code.
        """
        losses = [report.loss() for report in self.reports]
        self.reports = []
        return torch.stack(losses).sum() if losses else torch.zeros(())


class SharedRouting(Routing):
    """Of one of several processes, for its rows of a batch of `size` instances: as the whole batch is routed.

    add_up: sums a tensor over the processes, with gradients.  For noisy input choice of single tokens or instances and
    for hierarchical gates; no balance loss.
    """

    def __init__(
        self, generator: torch.Generator | None, size: int, rows: slice, add_up: Callable[[Tensor], Tensor]
    ) -> None:
        super().__init__(generator)
        self._size, self._rows, self._add_up = size, rows, add_up

    def normal(self, like: Tensor, generator: torch.Generator | None) -> Tensor:
        rows_here = len(range(self._size)[self._rows])
        every = like.new_empty(()).expand(len(like), self._size * (like.shape[1] // rows_here), like.shape[2])
        noise: Tensor = super().normal(every, generator).unflatten(1, (self._size, -1))[:, self._rows].flatten(1, 2)
        return noise

    def mean(self, x: Tensor) -> Tensor:
        if x.shape[1] == self._size:
            return super().mean(x)
        total: Tensor = self._add_up(x.sum(dim=(1, 2))) / (self._size * x.shape[2])
        return total


class Tape(Routing):
    """Draw afresh and keep it: of as many tours, move by move, m numbers a tour."""

    def __init__(self, generator: torch.Generator | None = None, *, balance: bool = False) -> None:
        super().__init__(generator, balance=balance)
        self.kept: dict[str, list[Tensor]] = {}

    def resolve(self, what: str, calls: int, make: Make) -> Tensor:
        numbers = super().resolve(what, calls, make)
        self.kept.setdefault(what, []).append(numbers)
        return numbers

    def replay(self, tours: int, *, balance: bool = True) -> "Replay":
        """For the same decisions once more, of so many tours per move, from the first one on and in their order."""
        return Replay({what: torch.cat(parts) for what, parts in self.kept.items()}, tours, balance=balance)


class Replay(Routing):
    """Give a tape's numbers again, several moves at a time: tokens of the same move lie together, as in `replay`."""

    def __init__(self, numbers: dict[str, Tensor], tours: int, *, balance: bool) -> None:
        super().__init__(balance=balance)
        self._kept, self._tours, self._at = numbers, tours, dict.fromkeys(numbers, 0)

    def calls(self, tokens: int) -> int:
        return tokens // self._tours

    def skip(self, calls: int) -> None:
        """Go on behind so many calls of a layer; where a hierarchical gate runs its experts at some, these draw."""
        first = self._at.get("sparse", 0)
        ran = int(self._kept["sparse"][first : first + calls].sum()) if "sparse" in self._kept else calls
        for what in self._kept:
            self._at[what] += calls if what == "sparse" else ran

    def resolve(self, what: str, calls: int, make: Make) -> Tensor:
        """Raises ValueError if there were not so many calls on the tape."""
        first = self._at.get(what, 0)
        stop = first + calls
        if what not in self._kept or stop > len(self._kept[what]):
            raise ValueError(f"the tape ends before call {stop} of '{what}': these are not the decisions that it kept")
        self._at[what] = stop
        return self._kept[what][first:stop]


Method = Literal["input-choice", "expert-choice", "soft", "random"]
Level = Literal["node", "instance", "problem"]
METHODS: tuple[Method, ...] = ("input-choice", "expert-choice", "soft", "random")
LEVELS: tuple[Level, ...] = ("node", "instance", "problem")

NOISE_FLOOR = 0.01  # added to softplus(x W_noise) in the paper's code, not in its Equations 15 and 18


class InputChoice(NamedTuple):
    """The experts that each unit takes."""

    experts: Tensor  # (calls, units, k) int64
    weights: Tensor  # (calls, units, k)

    def shares(self, count: int) -> Tensor:
        """How much each of `count` experts counts: (calls, units, count), 0 where it was not chosen."""
        return self.weights.new_zeros(*self.weights.shape[:2], count).scatter(2, self.experts, self.weights)


class ExpertChoice(NamedTuple):
    """The units that each expert takes."""

    units: Tensor  # (calls, K, m) int64, of the call
    weights: Tensor  # (calls, K, m)


class Slots(NamedTuple):
    """Mixtures of all units, k for each expert, those of an expert side by side; and units as mixtures of them."""

    dispatch: Tensor  # (calls, units, m k): sums to 1 over units
    combine: Tensor  # (calls, units, m k): sums to 1 over slots


class Gate(nn.Module):
    """2 W m parameters, of soft mixtures W m (k + 1).

    W_noise is there whatever the method, as in the published code, so sizes can be compared; only noisy input choice
    reads it.  Where the published code starts at 0, so does this: routing is noise at first.  Elsewhere W_gate is
    uniform within 1 / sqrt(its columns).

    Raises ValueError for a method or level that is unknown or does not go with the other, and for k not in 1..m.
    """

    def __init__(self, width: int, experts: int, top: int, method: Method = "input-choice", level: Level = "node"):
        super().__init__()
        if method not in METHODS or level not in LEVELS:
            raise ValueError(f"no gate '{method}' at level '{level}'; methods are {METHODS}, levels {LEVELS}")
        if level == "problem" and method in ("expert-choice", "soft"):
            raise ValueError(f"a batch is one unit at level 'problem', so '{method}' has nothing to choose from")
        if not 1 <= top <= experts:
            raise ValueError(f"each unit takes from 1 to all {experts} experts, not {top}")
        self.experts, self.top, self.method, self.level = experts, top, method, level
        slots = experts * top if method == "soft" else experts
        self.weight = nn.Parameter(torch.zeros(slots, width))
        self.noise = nn.Parameter(torch.zeros(experts, width))
        if method != "input-choice" or level == "problem":
            nn.init.uniform_(self.weight, -1 / math.sqrt(slots), 1 / math.sqrt(slots))

    def forward(self, x: Tensor, routing: Routing) -> InputChoice | ExpertChoice | Slots:
        """x (calls, units, width): what is known of each unit."""
        if self.method == "random":

            def settle(generator: torch.Generator | None) -> Tensor:
                ranks = torch.rand(*x.shape[:2], self.experts, generator=generator, device=x.device)
                return ranks.topk(self.top, dim=-1).indices

            experts = routing.resolve("experts", len(x), settle)
            return InputChoice(experts, torch.full_like(experts, 1 / self.top, dtype=torch.float32))
        if self.method == "input-choice":
            return self._input_choice(x, routing)
        scores = at_least_float32(F.linear(x, self.weight))
        if self.method == "soft":
            return Slots(scores.softmax(dim=1), scores.softmax(dim=2))
        # Rounded down as in the published code; but each expert takes one unit at least, or nothing would come out.
        per_expert = max(1, x.shape[1] * self.top // self.experts)
        weights, units = scores.softmax(dim=1).topk(per_expert, dim=1)
        return ExpertChoice(units, weights)

    def _input_choice(self, x: Tensor, routing: Routing) -> InputChoice:
        """The k best, by scores that in training are noisy (Equations 15 and 16); not at level "problem"."""
        noisy, deviation = self.training and self.level != "problem", None
        if noisy:
            both = at_least_float32(F.linear(x, torch.cat([self.weight, self.noise])))
            clean, deviation = both.chunk(2, dim=-1)
            deviation = F.softplus(deviation) + NOISE_FLOOR
            normal = routing.resolve("noise", len(x), lambda generator: routing.normal(clean, generator))
            scores = torch.addcmul(clean, normal, deviation)
        else:
            clean = scores = at_least_float32(F.linear(x, self.weight))
        best, experts = scores.topk(min(self.top + noisy, self.experts), dim=-1)
        choice = InputChoice(experts[..., : self.top], best[..., : self.top].softmax(dim=-1))
        if routing.balance and self.level != "problem":
            routing.reports.append(self._balance(choice, clean, scores, deviation, best))
        return choice

    def _balance(
        self, choice: InputChoice, clean: Tensor, scores: Tensor, deviation: Tensor | None, best: Tensor
    ) -> Balance:
        gates = choice.shares(self.experts)
        if deviation is None or self.top == self.experts:
            return Balance(gates.sum(dim=1), (gates > 0).sum(dim=1).to(gates.dtype))
        # The k-th best of the others: what an expert must surpass to be chosen.
        inside, outside = best[..., -1:], best[..., -2:-1]
        threshold = torch.where(scores > inside, inside, outside)
        return Balance(gates.sum(dim=1), torch.special.ndtr((clean - threshold) / deviation).sum(dim=1))
