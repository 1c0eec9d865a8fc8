"""ICAM and POMO where only a GPU can show it.  Skipped where there is none."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from neuroute.decoding.decode import decode
from neuroute.networks.icam import Icam
from neuroute.networks.pomo import Pomo
from neuroute.plan.objects import Dataset, Decoding, Labels, Network, Reinforced, Run, Stage
from neuroute.problems.tsp import canonical
from neuroute.training.batches import Scheme
from neuroute.training.distributed import World
from neuroute.training.reinforce import reinforce

pytestmark = [pytest.mark.cuda, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]
KINDS: dict[str, type[torch.nn.Module]] = {"icam:Icam": Icam, "pomo:Pomo": Pomo}
WAYS = (Decoding(starts="all", augment=True), Decoding(method="beam", beam=4, starts="all"))


@pytest.mark.parametrize("kind", KINDS.values())
@pytest.mark.parametrize("way", WAYS)
def test_cuda_and_cpu_find_the_same_tours(kind: Any, way: Decoding) -> None:
    """In float64, where rounding decides nothing but which of two starts of one tour is the shorter."""
    torch.manual_seed(0)
    net, coords = kind(depth=2).double().eval(), torch.rand(4, 20, 2, dtype=torch.float64)
    here = decode("tsp", net, coords, way).numpy()
    np.testing.assert_array_equal(canonical(decode("tsp", net.cuda(), coords, way).numpy()), canonical(here))


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("kind", KINDS.values())
def test_cuda_decodes_valid_tours(kind: Any, precision: str) -> None:
    torch.manual_seed(0)
    tours = decode("tsp", kind().cuda().eval(), torch.rand(8, 100, 2), Decoding(starts="all"), precision=precision)
    assert torch.equal(tours.sort(1).values, torch.arange(100).expand(8, -1))


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_is_learnt_from(kind: str, precision: Any, tmp_path: Path) -> None:
    torch.manual_seed(0)
    stage = Stage(name="stage", epochs=1, batches_per_epoch=2, sizes=(40, 60), batch_size=8)
    validation = Labels(dataset=Dataset(split="val", n=40, count=1), solver="lkh")
    training = Reinforced(stages=(stage,), precision=precision)
    network = Network(kind=f"neuroute.networks.{kind}", arguments={})
    run = Run(paper="icam", name="t", network=network, training=training, n=40, data=(), validation=validation)
    net = KINDS[kind]().cuda()
    before = [p.detach().clone() for p in net.parameters()]
    scheme = Scheme(
        run, net, net, [], net.state_dict, lambda: False, tmp_path, torch.device("cuda"), World(), memory_gb=8.0
    )
    batches = reinforce(scheme)
    for index in range(2):
        loss, _ = batches.train(index)
        assert loss.isfinite()
    assert all(p.isfinite().all() for p in net.parameters())
    assert any(not torch.equal(a, b) for a, b in zip(before, net.parameters(), strict=True))
