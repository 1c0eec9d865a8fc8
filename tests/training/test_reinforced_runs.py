"""Reinforcement in stages as the training stage runs it: what it leaves, forks, and what a kill changes (nothing)."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open

from neuroute.core.errors import NeurouteError
from neuroute.networks.weights import load_checkpoint
from neuroute.plan.objects import Elite, Network, Reinforced, Run, Stage
from neuroute.training.loop import TrainingLoop
from tiny import N, labels, run_training

FIRST = Stage(name="stage1", epochs=2, batches_per_epoch=2, sizes=(6, 6), batch_size=4, learning_rate=1e-2)
SECOND = Stage(
    name="stage2", epochs=2, batches_per_epoch=2, sizes=(5, 9), batch_size=4, batch_nodes=6, learning_rate=1e-2
)
THIRD = SECOND.model_copy(update={"name": "stage3", "elite": Elite(k=2, beta=0.5)})
FILES = {"stage1", "stage2", "stage1.moments", "stage2.moments", "model.moments", "model"}


def make_run(*stages: Stage, name: str = "whole", **more: Any) -> Run:
    change = {key: more.pop(key) for key in list(more) if key in Reinforced.model_fields}
    arguments = {"depth": 1, "width": 16, "heads": 2, "feed_forward": 32, "train_nodes": 6}
    network = Network(kind="neuroute.networks.pomo:Pomo", arguments=arguments)
    training = Reinforced(stages=stages or (FIRST, SECOND, THIRD), **change)
    return Run(
        paper="icam", name=name, network=network, training=training, n=N, data=(), validation=labels("val", 16), **more
    )


def tensors(path: Path) -> dict[str, torch.Tensor]:
    with safe_open(path, "pt") as file:
        return {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118


def same(a: Path, b: Path) -> bool:
    one, other = tensors(a), tensors(b)
    return one.keys() == other.keys() and all(torch.equal(one[key], other[key]) for key in one)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, store: Path) -> Path:
    return run_training(make_run(), tmp_path_factory.mktemp("whole"), store)


def test_it_leaves_what_the_plan_says(whole: Path) -> None:
    assert {path.stem for path in whole.glob("*.safetensors")} == FILES
    assert {f"{name}.safetensors" for name in FILES - {"model"}} == set(make_run().training.files)  # type: ignore[union-attr]
    last = load_checkpoint(whole / "model.safetensors")[0].state_dict()
    for stage in ("stage1", "stage2"):
        net, about = load_checkpoint(whole / f"{stage}.safetensors")
        assert (about["run"], about["stage"]) == ("icam/whole", stage)
        assert not all(torch.equal(value, last[name]) for name, value in net.state_dict().items())


@pytest.mark.parametrize("killed_at", [1, 4, 6, 11])
def test_a_killed_training_ends_with_the_same_bytes(
    tmp_path: Path, store: Path, whole: Path, monkeypatch: pytest.MonkeyPatch, killed_at: int
) -> None:
    """Told to stop inside of each stage, and at the end of one (batch 4)."""
    run = TrainingLoop.run

    def stopped(self: TrainingLoop) -> None:
        learn = self.batches.train

        def learn_and_stop(index: int) -> Any:
            if index == killed_at - 1:
                self._signals.append(15)
            return learn(index)

        self.batches.train = learn_and_stop  # type: ignore[method-assign]
        run(self)

    with monkeypatch.context() as patch:
        patch.setattr(TrainingLoop, "run", stopped)
        with pytest.raises(NeurouteError, match=f"at batch {killed_at} of 12"):
            run_training(make_run(), tmp_path, store)
    assert not (tmp_path / "out" / "model.safetensors").exists()
    out = run_training(make_run(), tmp_path, store)
    for name in FILES:
        assert (out / f"{name}.safetensors").read_bytes() == (whole / f"{name}.safetensors").read_bytes(), name


def test_a_fork_of_the_last_stage_goes_on_where_the_second_ends(tmp_path: Path, store: Path, whole: Path) -> None:
    """With the same elite it is the run itself; with another it is not."""
    start, before = whole / "stage2.safetensors", make_run().training.ends[1]  # type: ignore[union-attr]
    fork = make_run(THIRD, name="fork", batches_before=before, start="icam/whole@stage2")
    assert same(run_training(fork, tmp_path / "same", store, start) / "model.safetensors", whole / "model.safetensors")
    other = THIRD.model_copy(update={"elite": Elite(k=2, beta=0.0)})
    fork = make_run(other, name="fork", batches_before=before, start="icam/whole@stage2")
    assert not same(
        run_training(fork, tmp_path / "other", store, start) / "model.safetensors", whole / "model.safetensors"
    )
