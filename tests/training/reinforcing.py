"""What tests of training by reinforcement compare: gradients, networks, parts of a batch, runs to their ends."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from neuroute.plan.objects import Run
from neuroute.plan.reinforced import Elite
from neuroute.training.distributed import World
from neuroute.training.loop import TrainingLoop
from neuroute.training.reinforce import Reinforcement

CPU = torch.device("cpu")
Built = tuple[float, Tensor]  # reward and log-probability of a solution


def gradients(batches: Reinforcement, index: int = 0) -> tuple[float, dict[str, Tensor]]:
    loss = batches.accumulate(batches.drawn(index))
    return float(loss), {name: p.grad.clone() for name, p in batches.net.named_parameters() if p.grad is not None}


def close(found: dict[str, Tensor], wanted: dict[str, Tensor], tolerance: float) -> None:
    assert found.keys() == wanted.keys()
    for name, gradient in wanted.items():
        torch.testing.assert_close(found[name], gradient, rtol=tolerance, atol=tolerance)


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


def same(a: torch.nn.Module, b: torch.nn.Module) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


@dataclass(frozen=True)
class Alone(World):
    """One of several processes, whose gradients nobody adds up."""

    def sum(self, value: Tensor) -> Tensor:
        return value


def to_the_end(batches: Reinforcement, run: Run, folder: Path, kill_at: int | None = None) -> TrainingLoop:
    """Trains what of a run is left, or until it is told to stop after batch `kill_at`."""
    train = batches.train

    def killed(index: int) -> tuple[Tensor, int]:
        if index == kill_at:
            os.kill(os.getpid(), signal.SIGTERM)
        return train(index)

    batches.train = killed  # type: ignore[method-assign]
    total, after = run.training.batches, run.training.validate_after  # type: ignore[union-attr]
    loop = TrainingLoop(batches.net, batches, total, lambda: {"none": 0.0}, after, folder, World(), CPU)
    loop.resume()
    loop.run()
    return loop
