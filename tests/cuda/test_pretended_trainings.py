"""Every training on a GPU that is not there: nothing mixes devices or waits for one unasked."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor

import tiny
import tiny_reinforced
import tiny_systems
from networks import MULTI_START, PATH, every_network
from neuroute.networks.weights import load_checkpoint
from neuroute.specs.objects import Run
from neuroute.specs.trainings import Elite
from neuroute.training.sampling_streams import Draw, noise_on
from neuroute.training.train import Settings, train
from pretended import PLACE, OnGpu, pretended_gpu
from test_ddp import runs

pytestmark = pytest.mark.usefixtures("one_thread")

ELSEWHERE = ("summed", "random hierarchy", "expert choice", "soft")  # in bf16 below; gates in `test_pretended`
RUNS: dict[str, Run] = {
    **{name: run for name, run in runs().items() if name.removeprefix("reinforce vrp, ") not in ELSEWHERE},
    "summed bf16": tiny.make_run(batch_size=60, step="summed", precision="bf16", validations=1),
    "suffixes": tiny.make_run(batch_size=60, sub_paths="suffix", step="decision", validations=1),
    "path-tsp bf16": tiny.pens_run("alibi", batch_size=60, precision="bf16", validations=1),
    "cvrp suffixes": tiny.cvrp_run(batch_size=48, sub_paths="suffix", step="decision", validations=1),
    "revising bf16": tiny_systems.revising_run(precision="bf16"),
    "both levels": tiny_systems.htsp_run(),
    **{
        f"reinforce {kind}": tiny_reinforced.make_run(
            tiny_reinforced.stage(batches_per_epoch=1),
            tiny_reinforced.stage("elite", batches_per_epoch=1, elite=Elite(k=3)),
            kind=kind,
            clip=1.0,
            precision="bf16" if kind == "pomo" else "fp32",
        )
        for kind in tiny_reinforced.KINDS
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", RUNS)
def test_whole_trainings(kind: str, tmp_path: Path, stores: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches, validations, what is kept and what is exported."""
    run = RUNS[kind]
    start = tiny_systems.revisers(tmp_path) if run.start else None
    with pretended_gpu(monkeypatch):
        settings = Settings("cuda", threads=1)
        train(run, tmp_path / "out", tmp_path / "state", stores, settings, code="c", network_code="n", start=start)
    done = json.loads((tmp_path / "out" / "run.json").read_text())
    assert done["device"] == "cuda"
    assert done["batches"] == run.training.batches
    net, _ = load_checkpoint(tmp_path / "out" / "model.safetensors")
    assert all(p.isfinite().all() for p in net.parameters())


def test_noise_does_not_depend_on_which_rows_are_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    def draw(rows: Sequence[int], batch: int = 3, what: Draw = Draw.SAMPLE) -> Tensor:
        drawn = noise_on(PLACE, 0, batch, rows, 6, (2, 5), what)
        assert isinstance(drawn, OnGpu)
        return drawn.held

    with pretended_gpu(monkeypatch):
        whole = draw(range(6))
        assert torch.equal(draw(range(2, 5)), whole[2:5])
        assert torch.equal(draw([4, 1]), whole[[4, 1]])
        assert not (draw(range(6), batch=4) == whole).any()
        assert whole.shape == (6, 2, 5)
        assert 0 <= float(whole.min()) < float(whole.max()) < 1


def test_every_training_and_every_network_is_here() -> None:
    """Networks of the papers are updated in these trainings, or by `test_pretended`."""
    assert {(run.validation.dataset.problem, run.training.scheme) for run in RUNS.values()} == tiny.every_training()
    updated = {f"{kind.__module__}:{kind.__name__}" for kind, _ in {**PATH, **MULTI_START}.values()}
    assert updated | {run.network.kind for run in RUNS.values()} == every_network()
