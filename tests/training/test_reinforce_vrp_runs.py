"""REINFORCE on 16 VRPs from begin to end: resuming, fresh starts, that it learns, and as the training stage runs it."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from neuroute.core.errors import NeurouteError
from neuroute.datasets.labels import make_labels
from neuroute.datasets.vrp_stream import vrp_dataset
from neuroute.decoding.multi_start import multi_start
from neuroute.decoding.vrp import VRP
from neuroute.networks.weights import build, load_checkpoint, save_checkpoint
from neuroute.plan.objects import Dataset, Labels, Run
from neuroute.plan.reinforced import Reinforced
from neuroute.problems.vrp import lengths
from neuroute.training.reinforce_vrp import VrpReinforcement
from neuroute.training.stages import export_stages
from neuroute.training.train import Settings, train
from reinforcing import same, to_the_end
from tiny_reinforced_vrp import batches_of, make_run, stage

pytestmark = pytest.mark.usefixtures("one_thread")

LONG = stage(batches_per_epoch=6, learning_rate=1e-2)


def go(run: Run, folder: Path, kill_at: int | None = None, start: Path | None = None) -> VrpReinforcement:
    net = load_checkpoint(start)[0].train() if start else None
    batches = batches_of(run, folder, double=False, net=net, start=start)
    loop = to_the_end(batches, run, folder, kill_at)
    assert [json.loads(line)["stage"] for line in loop.lines if '"stage"' in line] == ["only"]
    return batches


@pytest.mark.parametrize("network", [{}, {"hierarchy": "step"}, {"method": "random"}, {"norm": "batch"}], ids=str)
def test_a_killed_run_ends_with_the_same_weights(tmp_path: Path, network: dict[str, Any]) -> None:
    run = make_run(LONG, network=network, balance=0.01, weight_decay=1e-6)
    whole = go(run, tmp_path / "whole")
    for kill_at in (0, 3):
        folder = tmp_path / str(kill_at)
        with pytest.raises(NeurouteError, match=f"at batch {kill_at + 1} of 6"):
            go(run, folder, kill_at)
        torch.manual_seed(99)  # nothing hangs on torch's own generator
        assert same(go(run, folder).net, whole.net)


def test_a_fresh_start_takes_weights_but_no_moments(tmp_path: Path) -> None:
    """Few-shot training on a problem that was not trained on."""
    run = make_run(LONG)
    trained = go(run, tmp_path / "state")
    about = {"run": run.id, "network": run.network.model_dump(), "code": "c"}
    checkpoint = tmp_path / "model.safetensors"
    save_checkpoint(checkpoint, trained.net, about)
    export_stages(trained.training, tmp_path / "state", tmp_path, build(run.network), about)
    few = stage(variants=("VRPBLTW",))
    steps = {}
    for fresh in (False, True):
        net = load_checkpoint(checkpoint)[0].train()
        batches = batches_of(make_run(few, fresh=fresh), tmp_path, double=False, net=net, start=checkpoint)
        assert same(batches.net, trained.net)
        batches.train(0)
        (step,) = {int(state["step"]) for state in batches.optimizer.state.values()}
        steps[fresh] = step
    assert steps == {False: 7, True: 1}


# -- learning -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("network", [{}, {"hierarchy": "step"}], ids=["4E", "4E-L"])
def test_it_learns(tmp_path: Path, network: dict[str, Any]) -> None:
    """Greedy solutions of problems that batches are drawn of, and of one that none is of, become shorter."""
    run = make_run(
        stage(batches_per_epoch=80, sizes=(10, 10), batch_size=24, learning_rate=3e-3), network=network, balance=0.01
    )
    batches = batches_of(run, tmp_path, double=False)

    def mean(variant: str) -> float:
        instances = vrp_dataset(Dataset(problem="vrp", variant=variant, split="val", n=10, count=64))
        batches.net.eval()
        found = multi_start(VRP, batches.net, instances, 1)
        batches.net.train()
        return float(lengths(instances, found.numpy()).mean())

    shown = ("CVRP", "OVRPTW", "VRPBL")
    before = [mean(variant) for variant in shown]
    for index in range(80):
        batches.train(index)
    after = [mean(variant) for variant in shown]
    assert all(b < 0.93 * a for a, b in zip(before, after, strict=True)), (before, after)


# -- as the training stage runs it ----------------------------------------------------------------------------------


def test_a_run_is_trained_validated_and_gone_on_from(tmp_path: Path) -> None:
    """Labels, validation on two problems, exports; then a few-shot run from its weights."""
    pytest.importorskip("ortools")
    first, second = (
        Labels(dataset=Dataset(problem="vrp", variant=variant, split="val", n=8, count=4), solver="ortools-short")
        for variant in ("CVRP", "VRPTW")
    )
    store = tmp_path / "labels"
    for each in (first, second):
        make_labels(each, store, [], workers=1, progress=False)
    plain = make_run(stage(batches_per_epoch=3), network={"hierarchy": "step"}, balance=0.01)
    run = plain.model_copy(update={"validation": first, "also_validation": (second,)})
    few = run.model_copy(
        update={
            "name": "few",
            "start": run.id,
            "training": Reinforced(stages=(stage(variants=("OVRPB",)),), fresh=True),
        }
    )

    def trained(run: Run, name: str, start: Path | None = None) -> Path:
        settings = Settings("cpu", 1)
        train(
            run, tmp_path / name, tmp_path / "state" / name, [store], settings, code="c", network_code="n", start=start
        )
        return tmp_path / name / "model.safetensors"

    model = trained(run, "whole")
    lines = [json.loads(line) for line in (tmp_path / "whole" / "log.jsonl").read_text().splitlines()]
    gaps = [line["gaps_pct"] for line in lines if line["kind"] == "validation"]
    assert [set(each) for each in gaps] == [{first.dataset.id, second.dataset.id}] * 2
    assert model.read_bytes() == trained(run, "again").read_bytes()
    assert not same(load_checkpoint(trained(few, "few", model))[0], load_checkpoint(model)[0])
