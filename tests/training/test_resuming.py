"""Runs that are killed, or told to stop, and go on end with the same bytes as those that are not: of every scheme."""

import json
import math
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from refusals import one_line

import tiny_reinforced
import tiny_reinforced_vrp
import tiny_rounds
import tiny_systems
from neuroute.core.errors import NeurouteError
from neuroute.networks.weights import load_checkpoint
from neuroute.specs.objects import Run
from neuroute.training.loop import TrainingLoop
from neuroute_systems.mdam.system import WarmBaseline
from tiny import cvrp_run, killed_training, log_lines, make_run, pens_run, pooled, run_training, self_improving

pytestmark = pytest.mark.usefixtures("one_thread")

TIMES = {"seconds", "samples_per_s", "eta_s", "reconstruction_s"}


def logs(out: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key not in TIMES} for line in lines]


def assert_same(whole: Path, resumed: Path) -> None:
    """All checkpoints, moments and log lines."""
    for name in ("model.safetensors", "stages.zip"):
        assert (whole / name).read_bytes() == (resumed / name).read_bytes(), name
    assert logs(whole) == logs(resumed)


def stop_training(run: Run, folder: Path, store: Path, batch: int) -> None:
    """Train until SIGTERM comes, while batch number `batch` is trained on."""
    run_loop = TrainingLoop.run

    def run_and_stop(self: TrainingLoop) -> None:
        train = self.batches.train

        def train_and_stop(index: int) -> tuple[torch.Tensor, int]:
            if index == batch:
                os.kill(os.getpid(), signal.SIGTERM)
            return train(index)

        self.batches.train = train_and_stop  # type: ignore[method-assign]
        run_loop(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TrainingLoop, "run", run_and_stop)
        with pytest.raises(NeurouteError, match=f"stopped by signal 15 at batch {batch + 1} of"):
            run_training(run, folder, store)
    assert not (folder / "out" / "model.safetensors").exists()
    assert torch.load(folder / "state" / "state.pt", weights_only=True)["done"] == batch + 1


def test_a_killed_process_ends_with_the_same_bytes(tmp_path: Path, store: Path) -> None:
    run = make_run(epochs=6)
    whole = run_training(run, tmp_path / "whole", store)
    assert 0 < killed_training(run, tmp_path / "killed", store) < 6 * 4
    assert_same(whole, run_training(run, tmp_path / "killed", store))


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda content, at: content[: len(content) // 2], "not a zip file"),
        (lambda content, at: content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :], "has another checksum"),
        (lambda content, at: content, "of another run"),
    ],
    ids=["cut", "a bit", "another run"],
)
def test_a_state_that_is_damaged_or_of_another_run_is_refused(
    damage: Callable[[bytes, int], bytes], reason: str, tmp_path: Path, store: Path
) -> None:
    run_training(make_run(), tmp_path, store)
    state = tmp_path / "state" / "state.pt"
    weight = next(iter(torch.load(state, weights_only=True)["net"].values())).numpy().tobytes()
    state.write_bytes(damage(state.read_bytes(), state.read_bytes().index(weight)))
    with one_line(rf"state\.pt: unreadable training state \(.*{reason}\); delete it to start over"):
        run_training(make_run(learning_rate=1e-3) if reason == "of another run" else make_run(), tmp_path, store)


def vrp_run(**network: Any) -> Run:
    six = tiny_reinforced_vrp.stage(batches_per_epoch=6, learning_rate=1e-2)
    return tiny_reinforced_vrp.make_run(six, network=network, balance=0.01, weight_decay=1e-6)


def staged(kind: str) -> Run:
    return tiny_reinforced.make_run(*tiny_reinforced.STAGES, kind=kind, weight_decay=1e-6, clip=1.0)


# A run, the fixture with its labels, and the batches in which it is stopped, one after the other.
WARMED = WarmBaseline(instances=8, alpha=0.5, warm_up=0.8)
SCHEMES: dict[str, tuple[Callable[[], Run], str, tuple[int, ...]]] = {
    "supervised, the best weights": (lambda: make_run(epochs=3, keep="best"), "store", (1, 7)),
    "pairs": (lambda: pens_run("both", epochs=3), "store", (5,)),
    "CVRP": (lambda: cvrp_run(epochs=4), "cvrp_store", (7,)),
    "CVRP with experts": (lambda: cvrp_run("LehdCvrpLight", epochs=4), "cvrp_store", (7,)),
    # The second stop comes after the first epoch, whose tours came from the first weights.
    "self-improvement": (lambda: self_improving(epochs=3), "store", (1, 7)),
    "self-improvement-cvrp": (lambda: self_improving("cvrp", epochs=3), "cvrp_store", (1, 7)),
    "pool": (pooled, "store", (0, 3)),
    # At the end of an epoch and of phases, whose paths are drawn, or made once.
    "revisers": (tiny_systems.revising_run, "store", (1, 3, 6, 9)),
    "rounds, TSP": (lambda: tiny_rounds.make_run("tsp"), "rounds_store", (3, 5, 8, 15)),
    "rounds, CVRP": (lambda: tiny_rounds.make_run("cvrp"), "rounds_store", (3, 5, 8, 15)),
    # Inside of each stage and at the end of two.
    "stages, TSP": (lambda: staged("pomo"), "store", (1, 2, 4, 6, 8)),
    "stages, CVRP": (lambda: staged("icam_cvrp"), "cvrp_store", (4,)),
    # Inside of an epoch and at the end of one, where the baseline is replaced or not.
    "rollouts, TSP": (tiny_reinforced.rollout_run, "store", (0, 1, 2)),
    "rollouts, CVRP": (lambda: tiny_reinforced.rollout_run("invit_cvrp"), "cvrp_store", (3,)),
    # Inside of the first epoch, whose baseline is a mean, and at its end.
    "map, AttGcn": (lambda: tiny_systems.map_run("AttGcn"), "store", (1, 5)),
    "map, Difusco": (lambda: tiny_systems.map_run("Difusco"), "store", (1, 5)),
    "map, Dimes": (tiny_systems.dimes_run, "store", (0, 2)),
    "decoders, TSP": (lambda: tiny_systems.mdam_run("tsp", baseline=WARMED), "store", (0, 1, 2)),
    "decoders, CVRP": (lambda: tiny_systems.mdam_run("cvrp", baseline=WARMED), "cvrp_store", (1,)),
    "paths": (lambda: tiny_systems.htsp_run(upper=False), "store", (1,)),
    "both levels": (tiny_systems.htsp_run, "store", (0, 1)),
    "VRP": (vrp_run, "vrp_store", (0, 3)),
    "VRP, a light decoder": (lambda: vrp_run(hierarchy="step"), "vrp_store", (0, 3)),
    "VRP, random gates": (lambda: vrp_run(method="random"), "vrp_store", (0, 3)),
    "VRP, batch norms": (lambda: vrp_run(norm="batch"), "vrp_store", (0, 3)),
}


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_stopped_run_ends_with_the_same_bytes(scheme: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    make, fixture, stops = SCHEMES[scheme]
    run, store = make(), request.getfixturevalue(fixture)
    whole = run_training(run, tmp_path / "whole", store)
    for batch in stops:
        stop_training(run, tmp_path / "stopped", store, batch)
        torch.manual_seed(99)  # nothing hangs on torch's own generator
    assert_same(whole, run_training(run, tmp_path / "stopped", store))


LABELLED = [scheme for scheme in SCHEMES if scheme.startswith(("supervised", "pairs", "CVRP", "self", "rounds"))]


@pytest.mark.slow
@pytest.mark.parametrize("scheme", LABELLED)
def test_it_trains_in_bf16(scheme: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Products alone: weights stay in float32."""
    make, fixture, _ = SCHEMES[scheme]
    run = make()
    run = run.model_copy(update={"training": run.training.model_copy(update={"precision": "bf16"})})
    out = run_training(run, tmp_path, request.getfixturevalue(fixture))
    weights = load_checkpoint(out / "model.safetensors")[0].parameters()
    assert all(p.dtype == torch.float32 and p.isfinite().all() for p in weights)
    assert all(math.isfinite(line["loss"]) for line in log_lines(out, "train"))
