"""Greedy rollouts of earlier weights as the baseline of what builds paths from both ends (Kool et al., 2019; GLOP).

The first epoch's baseline is a running mean of costs.  After each epoch the present weights take the place of the
baseline's where their greedy solutions are shorter on average and a paired t-test says so.
"""

import copy
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from neuroute.training.challenge import is_shorter

Instances = Any
Costs = Callable[[nn.Module, Instances], Tensor]  # greedy costs (count,) of instances by a network


class RolloutBaseline:
    """What a network's own greedy solutions cost, by the weights that it had at the end of some epoch.

    Args:
        net: the network that is trained.
        costs: (network, instances) -> (count,), by greedy solutions and without gradients.
        draw: number -> the instances on which the weights of the baseline with that number are challenged.
        significance: of the one-sided paired t-test.
        tested: (network, instances) -> (count,): what the test compares; None: `costs`.
        warm_up: weight of the past in the running mean of costs of the first epoch.
    """

    def __init__(
        self,
        net: nn.Module,
        costs: Costs,
        draw: Callable[[int], Instances],
        *,
        significance: float = 0.05,
        tested: Costs | None = None,
        warm_up: float = 0.8,
    ) -> None:
        self.net, self.costs, self.draw, self.significance = net, costs, draw, significance
        self.tested, self.warm_up = tested or costs, warm_up
        self.number = 0
        self.mean: Tensor | None = None
        self.frozen = self._copy()
        self.epochs = 0

    def of(self, instances: Instances, costs: Tensor) -> Tensor:
        """The baseline of instances whose sampled solutions have these costs (any shape): (count,), or one number."""
        if self.epochs == 0:
            mean = costs.detach().mean()
            if self.mean is not None:
                mean = self.warm_up * self.mean + (1 - self.warm_up) * mean
            self.mean = mean
            return mean
        return self.costs(self.frozen, instances)

    def end_epoch(self) -> bool:
        """Challenge the baseline; returns whether it has taken the present weights."""
        self.epochs += 1
        instances = self.draw(self.number)
        was_training = self.net.training
        present = self.tested(self.net.eval(), instances).double().cpu().numpy()
        self.net.train(was_training)
        before = self.tested(self.frozen, instances).double().cpu().numpy()
        if not is_shorter(present, before, self.significance):
            return False
        self.number, self.frozen = self.number + 1, self._copy()
        return True

    def state(self) -> dict[str, Any]:
        return {"number": self.number, "epochs": self.epochs, "mean": self.mean, "net": self.frozen.state_dict()}

    def restore(self, state: dict[str, Any]) -> None:
        self.number, self.epochs, self.mean = state["number"], state["epochs"], state["mean"]
        self.frozen.load_state_dict(state["net"])

    def _copy(self) -> nn.Module:
        return copy.deepcopy(self.net).eval().requires_grad_(False)
