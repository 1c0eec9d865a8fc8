"""Every training on a GPU that is not there: nothing mixes devices or waits for one unasked."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor

import tiny
import tiny_glop
import tiny_htsp
import tiny_maps
import tiny_mdam
import tiny_reinforced
import tiny_reinforced_vrp
import tiny_rounds
from networks import MULTI_START, PATH, every_network
from neuroute.networks.weights import load_checkpoint
from neuroute.plan.objects import Network, Run
from neuroute.plan.reinforced import Elite
from neuroute.systems.mdam.system import WarmBaseline
from neuroute.training.sampling_streams import Draw, noise_on
from neuroute.training.train import Settings, train
from pretended import PLACE, OnGpu, pretended_gpu

pytestmark = pytest.mark.usefixtures("one_thread")

POINTERFORMER = Network(
    kind="neuroute.systems.pointerformer.network:Pointerformer",
    arguments={"depth": 1, "width": 16, "heads": 2, "feed_forward": 24},
)
RUNS: dict[str, tuple[str, Run]] = {
    "supervised": ("store", tiny.make_run(batch_size=60, validations=1)),
    "summed": ("store", tiny.make_run(batch_size=60, step="summed", precision="bf16", validations=1)),
    "suffixes": ("store", tiny.make_run(batch_size=60, sub_paths="suffix", step="decision", validations=1)),
    "path-tsp": ("store", tiny.pens_run("both", batch_size=60, validations=1)),
    "path-tsp bf16": ("store", tiny.pens_run("alibi", batch_size=60, precision="bf16", validations=1)),
    "cvrp": ("cvrp_store", tiny.cvrp_run(batch_size=48, step="decision", validations=1)),
    "cvrp suffixes": ("cvrp_store", tiny.cvrp_run(batch_size=48, sub_paths="suffix", step="decision", validations=1)),
    "experts": ("cvrp_store", tiny.cvrp_run("LehdCvrpLight", batch_size=48, step="decision", validations=1)),
    "self-improvement": ("store", tiny.self_improving(epochs=2, instances=20, rounds=2, validations=2)),
    "self-improvement cvrp": (
        "cvrp_store",
        tiny.self_improving("cvrp", epochs=2, instances=20, rounds=2, validations=2),
    ),
    "beam-pool": ("store", tiny.pooled()),
    "revising": ("store", tiny_glop.revising_run(precision="bf16")),
    "partitioning": ("cvrp_store", tiny_glop.partitioning_run()),
    **{
        f"reconstruction {problem}": (
            "rounds_store",
            tiny_rounds.make_run(
                problem, rounds=2, epochs_per_round=1, reconstructions=2, step="decision", clip=10.0, validations=2
            ),
        )
        for problem in tiny_rounds.PROBLEMS
    },
    **{
        f"reinforce {kind}": (
            "cvrp_store" if kind.endswith("cvrp") else "store",
            tiny_reinforced.make_run(
                tiny_reinforced.stage(batches_per_epoch=1),
                tiny_reinforced.stage("elite", batches_per_epoch=1, elite=Elite(k=3)),
                kind=kind,
                clip=1.0,
                precision="bf16" if kind == "pomo" else "fp32",
            ),
        )
        for kind in tiny_reinforced.KINDS
    },
    "reinforce pointerformer": (
        "store",
        tiny_reinforced.make_run(tiny_reinforced.stage(batches_per_epoch=1), scaled="deviation").model_copy(
            update={"network": POINTERFORMER}
        ),
    ),
    **{
        f"rollouts {kind}": (
            "cvrp_store" if kind.endswith("cvrp") else "store",
            tiny_reinforced.rollout_run(kind),
        )
        for kind in tiny_reinforced.ROLLOUTS
    },
    **{f"map {kind}": ("store", tiny_maps.map_run(kind)) for kind in tiny_maps.KINDS},
    "map Dimes": ("store", tiny_maps.dimes_run()),
    "both levels": ("store", tiny_htsp.make_run()),
    "decoders tsp": ("store", tiny_mdam.make_run("tsp")),
    "decoders cvrp": ("cvrp_store", tiny_mdam.make_run("cvrp", baseline=WarmBaseline(instances=8, warm_up=0.8))),
    **{
        f"reinforce vrp {way}": (
            "vrp_store",
            tiny_reinforced_vrp.make_run(tiny_reinforced_vrp.stage(batches_per_epoch=1), network=way, balance=0.01),
        )
        for way in ({}, {"experts": 0}, {"hierarchy": "step"}, {"norm": "batch", "experts": 0})
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", RUNS)
def test_whole_trainings(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches, validations, what is kept and what is exported."""
    fixture, run = RUNS[kind]
    store, start = request.getfixturevalue(fixture), tiny_glop.revisers(tmp_path) if run.start else None
    with pretended_gpu(monkeypatch):
        settings = Settings("cuda", threads=1)
        train(run, tmp_path / "out", tmp_path / "state", [store], settings, code="c", network_code="n", start=start)
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
    assert {(run.validation.dataset.problem, run.training.scheme) for _, run in RUNS.values()} == tiny.every_training()
    updated = {f"{kind.__module__}:{kind.__name__}" for kind, _ in {**PATH, **MULTI_START}.values()}
    assert updated | {run.network.kind for _, run in RUNS.values()} == every_network()
