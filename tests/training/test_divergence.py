"""A reinforced training that diverges says so at once: of scores that are no numbers, routes would never end."""

from pathlib import Path

import pytest
import torch

from neuroute.core.errors import NeurouteError
from neuroute.networks.weights import all_finite
from neuroute.training.reinforce import Reinforcement
from tiny_reinforced import batches_of, make_run, stage

KINDS = ("icam", "icam_cvrp", "pomo_cvrp")


def reinforcement(kind: str, folder: Path, rate: float) -> Reinforcement:
    first = stage("first", batches_per_epoch=9, batch_size=4, learning_rate=rate)
    return batches_of(make_run(first, kind=kind), folder, best=dict, memory_gb=1.0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_rate_that_is_far_too_high_is_one_message(kind: str, tmp_path: Path) -> None:
    training = reinforcement(kind, tmp_path, 1e30)
    with pytest.raises(NeurouteError, match=r"icam/tiny: diverged at batch \d, in stage 'first'.*learning rate"):
        all(training.train(index) for index in range(8))
    assert not (tmp_path / "stages").exists()


@pytest.mark.parametrize("kind", KINDS)
def test_weights_that_are_no_numbers_never_leave_a_batch(kind: str, tmp_path: Path) -> None:
    """So that nothing is validated with them: greedy routes would be built forever."""
    training = reinforcement(kind, tmp_path, 1e-3)
    training.train(0)
    assert all_finite(training.net)
    next(training.net.parameters()).register_hook(lambda gradient: gradient * torch.nan)
    with pytest.raises(NeurouteError, match="diverged at batch 1"):
        training.train(1)
