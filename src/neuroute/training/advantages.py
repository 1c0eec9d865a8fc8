"""How much each sampled solution counts in REINFORCE: its advantage over the other solutions of its instance."""

import torch
from torch import Tensor

from neuroute.plan.reinforced import Elite


def advantages(lengths: Tensor) -> Tensor:
    """lengths (batch, solutions) -> by how much each is shorter than its instance's mean (POMO; icam, Eq. 8 and 9)."""
    return lengths.mean(dim=1, keepdim=True) - lengths


def weights(lengths: Tensor, elite: Elite | None) -> Tensor:
    """What the log-probabilities of solutions (batch, solutions) are weighed with, per instance.

    The loss of an instance is minus their weighed sum: Eq. 7 of icam, with elites Eq. 11.  Of solutions of one length
    that are not all among the elite, the first ones are.
    """
    advantage = advantages(lengths)
    weight = advantage / lengths.shape[1]
    if elite is None:
        return weight
    best = lengths.argsort(dim=1, stable=True)[:, : elite.k]
    again = torch.zeros_like(weight).scatter_(1, best, advantage.gather(1, best) / elite.k)
    return weight + elite.beta * again
