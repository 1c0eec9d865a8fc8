"""A reinforced training that diverges says so at once: of scores that are no numbers, routes would never end."""

from pathlib import Path
from typing import Any

import pytest
import torch

from neuroute.core.errors import NeurouteError
from neuroute.networks.weights import all_finite
from neuroute.plan.objects import Dataset, Labels, Network, Problem, Run
from neuroute.plan.reinforced import Reinforced, Stage
from neuroute.problems.registry import Part
from tiny import scheme_of

KINDS: list[tuple[Problem, str]] = [
    ("tsp", "neuroute.networks.icam:Icam"),
    ("cvrp", "neuroute.networks.icam:IcamCvrp"),
    ("cvrp", "neuroute.networks.pomo:PomoCvrp"),
]


def reinforcement(problem: Problem, kind: str, folder: Path, rate: float) -> Any:
    shape = {"depth": 1, "width": 16, "feed_forward": 32}
    stage = Stage(name="first", epochs=1, batches_per_epoch=9, sizes=(8, 8), batch_size=4, learning_rate=rate)
    run = Run(
        paper="icam",
        name="wild",
        network=Network(kind=kind, arguments=shape),
        training=Reinforced(stages=(stage,)),
        n=8,
        data=(),
        validation=Labels(dataset=Dataset(problem=problem, split="val", n=8, count=4), solver="nearest"),
    )
    return Part[Any]("reinforce").of(problem)(scheme_of(run, folder=folder, best=dict, memory_gb=1.0))


@pytest.mark.parametrize(("problem", "kind"), KINDS)
def test_a_rate_that_is_far_too_high_is_one_message(problem: Problem, kind: str, tmp_path: Path) -> None:
    training = reinforcement(problem, kind, tmp_path, 1e30)
    with pytest.raises(NeurouteError, match=r"icam/wild: diverged at batch \d, in stage 'first'.*learning rate"):
        all(training.train(index) for index in range(8))
    assert not (tmp_path / "stages").exists()


@pytest.mark.parametrize(("problem", "kind"), KINDS)
def test_weights_that_are_no_numbers_never_leave_a_batch(problem: Problem, kind: str, tmp_path: Path) -> None:
    """So that nothing is validated with them: greedy routes would be built forever."""
    training = reinforcement(problem, kind, tmp_path, 1e-3)
    training.train(0)
    assert all_finite(training.net)
    next(training.net.parameters()).register_hook(lambda gradient: gradient * torch.nan)
    with pytest.raises(NeurouteError, match="diverged at batch 1"):
        training.train(1)
