"""The policy that others are compared with: the best weights so far, until better ones come (Kool et al., 2019)."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import ttest_rel
from torch import Tensor, nn


class BaselinePolicy:
    """A frozen copy of the best weights so far, which the present ones challenge.

    Args:
        net: the network that is trained.
        costs: (network, number, *what) -> (count,): of greedy solutions of the instances of the challenge with that
            number; `what` else they depend on is given with each challenge.
        alpha, margin: when present weights take the place of the copy's, see `is_shorter`.
        agree: makes what this process finds the answer of all: rounding may differ from process to process.
    """

    def __init__(
        self,
        net: nn.Module,
        costs: Callable[..., np.ndarray],
        alpha: float | None,
        margin: float = 0.0,
        agree: Callable[[bool], bool] = bool,
    ) -> None:
        self.net, self.costs, self.alpha, self.margin, self.agree = net, costs, alpha, margin, agree
        self.frozen: Any = copy.deepcopy(net).eval().requires_grad_(False)
        self.number = 0  # of replacements, and of the present challenge
        self._before: tuple[Any, np.ndarray] | None = None  # the copy's costs, and what they depend on

    def challenge(self, *what: Any) -> tuple[float, bool]:
        """Compare the weights.  Returns the mean cost of the present ones, and whether they are now the copy's."""
        if self._before is None or self._before[0] != what:
            self._before = what, self.costs(self.frozen, self.number, *what)
        training = self.net.training
        present = self.costs(self.net.eval(), self.number, *what)
        self.net.train(training)
        replaced = self.agree(is_shorter(present, self._before[1], self.alpha, self.margin))
        if replaced:
            self.frozen.load_state_dict(self.net.state_dict())
            self.number, self._before = self.number + 1, None
        return float(present.mean()), replaced

    def state(self) -> dict[str, Any]:
        return {"frozen": self.frozen.state_dict(), "number": self.number}

    def restore(self, state: dict[str, Any]) -> None:
        self.frozen.load_state_dict(state["frozen"])
        self.number, self._before = state["number"], None


def is_shorter(present: np.ndarray, before: np.ndarray, alpha: float | None, margin: float = 0.0) -> bool:
    """Whether costs (count,) are lower than those before by more than `margin` in the mean.

    alpha: what a one-sided paired t-test must stay below as well; None: no test.
    """
    if not present.mean() < before.mean() - margin:
        return False
    if alpha is None or np.ptp(present - before) == 0:  # no spread, no doubt
        return True
    return bool(ttest_rel(present, before, alternative="less").pvalue < alpha)


def running_mean(before: Tensor | None, costs: Tensor, past: float) -> Tensor:
    """The mean of costs, of which `past` is the mean before, where there was one."""
    mean = costs.detach().mean()
    return mean if before is None else past * before + (1 - past) * mean
