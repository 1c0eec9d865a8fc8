"""Training of MVMoE where only a GPU can show it.  Skipped where there is none."""

from pathlib import Path
from typing import Any

import pytest
import torch

from neuroute.networks.mvmoe import MvMoe
from neuroute.plan.objects import Dataset, Labels, Network, Reinforced, Run, Stage
from neuroute.training.batches import Scheme
from neuroute.training.distributed import World
from neuroute.training.reinforce_vrp import reinforce

pytestmark = [pytest.mark.cuda, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]
WAYS: list[dict[str, Any]] = [{}, {"hierarchy": "step"}, {"method": "expert-choice"}, {"experts": 0}]


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_batches_are_learnt_from_and_repeat(way: dict[str, Any], precision: Any, tmp_path: Path) -> None:
    stage = Stage(
        name="stage", epochs=1, batches_per_epoch=3, sizes=(30, 40), batch_size=8, variants=("VRPB", "OVRPTW", "VRPL")
    )
    dataset = Dataset(problem="vrp", variant="VRPB", split="val", n=40, count=1)
    run = Run(
        paper="mvmoe",
        name="t",
        network=Network(kind="neuroute.networks.mvmoe:MvMoe", arguments=way),
        training=Reinforced(stages=(stage,), precision=precision, balance=0.01),
        n=40,
        data=(),
        validation=Labels(dataset=dataset, solver="ortools"),
    )
    losses = []
    for _ in range(2):
        torch.manual_seed(0)
        net = MvMoe(**way).cuda()
        before = [p.detach().clone() for p in net.parameters()]
        place = torch.device("cuda")
        batches = reinforce(
            Scheme(run, net, net, [], net.state_dict, lambda: False, tmp_path, place, World(), memory_gb=8.0)
        )
        losses.append([float(batches.train(index)[0]) for index in range(3)])
        assert all(p.isfinite().all() for p in net.parameters())
        assert any(not torch.equal(a, b) for a, b in zip(before, net.parameters(), strict=True))
    assert losses[0][0] == pytest.approx(losses[1][0], rel=1e-2, abs=1e-3)
