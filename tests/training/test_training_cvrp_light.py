"""Training of LEHD/4E-L: whole batches with draws of their own, resuming, and that it learns."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from neuroute.core.errors import NeurouteError
from neuroute.networks.weights import build
from neuroute.plan.objects import Network, Run, Supervised
from neuroute.training.cvrp import CvrpBatches, CvrpDecision, RoutedBatches, supervised
from neuroute.training.distributed import World
from neuroute.training.supervised import Scheme
from tiny import N, label_store, log_lines, run_training
from tiny import cvrp_labels as labels

pytest.importorskip("hygese")


def make_run(kind: str = "lehd:LehdCvrpLight", **training: Any) -> Run:
    settings = {"samples": 96, "batch_size": 32, "learning_rate": 2e-3, "weight_decay": 0.0, "validations": 2}
    arguments = {"depth": 2, "width": 16, "heads": 2, "feed_forward": 32, "train_nodes": N}
    return Run(
        paper="mvmoe",
        name="tiny_light",
        network=Network(kind=f"neuroute.networks.{kind}", arguments=arguments),
        training=Supervised(**(settings | training)),
        n=N,
        data=(labels("train", 96),),
        validation=labels("val", 16),
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return label_store(tmp_path_factory.mktemp("labels"), labels("train", 96), labels("val", 16))


def batches(run: Run, store: Path, **more: Any) -> CvrpBatches:
    torch.manual_seed(run.seed)
    net, settings = build(run.network), {"world": World(), "memory_gb": 4.0} | more
    return supervised(
        Scheme(
            run,
            net,
            CvrpDecision(net),
            [store],
            net.state_dict,
            lambda: False,
            store,
            torch.device("cpu"),
            **settings,
        )
    )


def test_batches_are_whole_and_in_one_process(store: Path) -> None:
    run = make_run()
    found = batches(run, store)
    assert isinstance(found, RoutedBatches)
    assert found._micro_batch(N) == 32
    assert not isinstance(batches(make_run("lehd:LehdCvrp"), store, memory_gb=1e-4), RoutedBatches)
    with pytest.raises(NeurouteError, match="32 instances of 10 customers take about .* memory_gb is 0.0001"):
        batches(run, store, memory_gb=1e-4)
    with pytest.raises(NeurouteError, match="set gpus_per_run: 1"):
        batches(run, store, world=World(0, 2))


def test_a_batch_draws_by_its_number(store: Path) -> None:
    """Nothing hangs on torch's own generator; another batch draws otherwise."""
    run, losses = make_run(step="decision", epochs=2), []
    for noise in (1, 2):
        found = batches(run, store)
        torch.manual_seed(noise)
        losses.append([float(found.train(index)[0]) for index in range(2)])
    assert losses[0] == losses[1]
    found = batches(run, store)
    path = found._sub_path(0, *(torch.from_numpy(a) for a in found.data.batch(0, 0, 32)))
    begin = {name: value.clone() for name, value in found.model.state_dict().items()}
    seen = []
    for index in (0, 1, 2, 3, 0):
        found.train(index)
        found.model.load_state_dict(begin)
        seen.append(float(found._loss(path, 0).detach()))
    assert seen[0] == seen[4]
    assert len(set(seen)) == 4


def test_it_learns_and_resumes_to_the_same_bytes(tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(epochs=12)
    out = run_training(run, tmp_path / "whole", store)
    gaps = [line["gap_pct"] for line in log_lines(out, "validation")]
    assert gaps[-1] < 0.6 * gaps[0]
    real = CvrpBatches.train

    def stops(self: CvrpBatches, index: int) -> tuple[torch.Tensor, int]:
        if index == 7:
            os.kill(os.getpid(), signal.SIGTERM)
        return real(self, index)

    with monkeypatch.context() as patch:
        patch.setattr(CvrpBatches, "train", stops)
        with pytest.raises(NeurouteError, match="stopped by signal"):
            run_training(run, tmp_path / "stopped", store)
    resumed = run_training(run, tmp_path / "stopped", store)
    assert (resumed / "model.safetensors").read_bytes() == (out / "model.safetensors").read_bytes()
