"""What gates draw, and what they report of how evenly they spread their tokens (MVMoE; Zhou et al., 2024, App. B.3).

A forward pass is given a `Routing`; nothing is kept in the layers.  Learning from solutions that were sampled without a
graph takes two passes with the same noise: the first writes it on a `Tape`, the second reads it there.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

PAPER_WEIGHT = 0.01  # of the balance loss (Equation 3, Appendix B.3); the first row of Table 5
CODE_WEIGHT = 1e-3  # in the published code

Settle = Callable[[torch.Generator | None], Tensor]


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
    """Draws afresh.

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

    def settled(self, what: str, calls: int, settle: Settle) -> Tensor:
        """Random numbers, or decisions that hang on them: (calls, ...), as `settle` makes them of a generator."""
        return settle(self.generator)

    def loss(self) -> Tensor:
        """The balance loss of all that was reported since it was last asked for, with its graph; to be weighed.

        A sum over layers and calls, every decision of a solution being one, as in the published code.
        """
        losses = [report.loss() for report in self.reports]
        self.reports = []
        return torch.stack(losses).sum() if losses else torch.zeros(())


class Tape(Routing):
    """Keeps what it draws: of as many tours, move by move, m numbers a tour."""

    def __init__(self, generator: torch.Generator | None = None, *, balance: bool = False) -> None:
        super().__init__(generator, balance=balance)
        self.kept: dict[str, list[Tensor]] = {}

    def settled(self, what: str, calls: int, settle: Settle) -> Tensor:
        settled = super().settled(what, calls, settle)
        self.kept.setdefault(what, []).append(settled)
        return settled

    def replay(self, tours: int, *, balance: bool = True) -> "Replay":
        """For the same decisions once more, of so many tours per move, from the first one on and in their order."""
        return Replay({what: torch.cat(kept) for what, kept in self.kept.items()}, tours, balance=balance)


class Replay(Routing):
    """Gives what a tape has kept, several moves at a time: tokens of the same move lie together, as in `replay`."""

    def __init__(self, kept: dict[str, Tensor], tours: int, *, balance: bool) -> None:
        super().__init__(balance=balance)
        self._kept, self._tours, self._at = kept, tours, dict.fromkeys(kept, 0)

    def calls(self, tokens: int) -> int:
        return tokens // self._tours

    def settled(self, what: str, calls: int, settle: Settle) -> Tensor:
        """Raises ValueError when there were not so many calls on the tape."""
        first = self._at.get(what, 0)
        stop = first + calls
        if what not in self._kept or stop > len(self._kept[what]):
            raise ValueError(f"the tape ends before call {stop} of '{what}': these are not the decisions that it kept")
        self._at[what] = stop
        return self._kept[what][first:stop]
