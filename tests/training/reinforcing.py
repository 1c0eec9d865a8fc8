"""What tests of training by reinforcement compare: gradients, networks, parts of a batch."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from neuroute.specs.trainings import Elite
from neuroute.training.batches import World
from neuroute.training.reinforce import Reinforcement

Built = tuple[float, Tensor]  # reward and log-probability of a solution


def gradients(batches: Reinforcement, index: int = 0) -> tuple[float, dict[str, Tensor]]:
    loss = batches.accumulate(batches.batch_spec(index))
    return float(loss), {name: p.grad.clone() for name, p in batches.net.named_parameters() if p.grad is not None}


def backward(net: torch.nn.Module, loss: Tensor) -> tuple[float, dict[str, Tensor]]:
    """A loss that is one graph: its value and gradients, of which the network keeps none."""
    loss.backward()
    found = {name: p.grad.clone() for name, p in net.named_parameters() if p.grad is not None}
    net.zero_grad(set_to_none=True)
    return float(loss.detach()), found


def close(found: dict[str, Tensor], wanted: dict[str, Tensor], tolerance: float) -> None:
    assert found.keys() == wanted.keys()
    for name, gradient in wanted.items():
        torch.testing.assert_close(found[name], gradient, rtol=tolerance, atol=tolerance)


def assert_alike(
    found: tuple[float, dict[str, Tensor]], wanted: tuple[float, dict[str, Tensor]], tolerance: float
) -> None:
    """Losses and their gradients."""
    assert found[0] == pytest.approx(wanted[0], rel=tolerance)
    close(found[1], wanted[1], tolerance)


def plain_loss(found: list[list[Built]], elite: Elite | None) -> Tensor:
    """Eq. 7 to 11 of icam, a solution at a time."""
    loss = torch.zeros((), dtype=torch.float64)
    for built in found:
        baseline = sum(reward for reward, _ in built) / len(built)
        for reward, log_p in built:
            loss = loss - (reward - baseline) * log_p / (len(found) * len(built))
        if elite:
            for reward, log_p in sorted(built, key=lambda pair: pair[0], reverse=True)[: elite.k]:
                loss = loss - elite.beta * (reward - baseline) * log_p / (len(found) * elite.k)
    return loss


@dataclass(frozen=True)
class Alone(World):
    """One of several processes, whose gradients nobody adds up."""

    def sum(self, value: Tensor) -> Tensor:
        return value
