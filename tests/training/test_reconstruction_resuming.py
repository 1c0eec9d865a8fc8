"""Self-improved training that is killed, stopped or damaged, and that starts from another run."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from refusals import one_line

from neuroute.core.errors import NeurouteError
from neuroute.decoding.search import SEARCH
from neuroute.networks.weights import build, load_checkpoint, save_checkpoint
from neuroute.plan.objects import Network
from neuroute.training import reconstruction
from neuroute.training.reconstruction import ReconstructedSet
from test_resuming import assert_same
from tiny import run_training
from tiny_rounds import N, make_run, network, rounds

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def store(rounds_store: Path) -> Path:
    return rounds_store


# -- resuming -------------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """As abrupt as a signal that cannot be handled."""


@pytest.mark.slow
@pytest.mark.parametrize(("number", "saved_s"), [(0, 60.0), (2, -1.0)])
def test_killed_while_it_re_constructs_it_goes_on_there(
    problem: str, number: int, saved_s: float, tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts of 9, 9 and 6 instances; killed in the second iteration of the second, kept or not after the first."""
    monkeypatch.setattr("neuroute.training.loop.SAVE_EVERY_S", -1.0)
    monkeypatch.setattr("neuroute.training.loop.SHARE", -1.0)
    monkeypatch.setitem(reconstruction.MAX_NODES_PER_BATCH, "cpu", 9 * N)
    run = make_run(problem)
    whole = run_training(run, tmp_path / "whole", store)
    calls: list[tuple[int, int]] = []  # (first instance, iterations done) of every iteration
    killing = [True]
    search, begin = type(SEARCH.of(problem)), ReconstructedSet.improve
    plain = search.reconstruct
    current = [-1]

    def improve(self: ReconstructedSet, number: int) -> dict[str, Any]:
        current[0] = number
        return begin(self, number)

    def watched(self: Any, *what: Any, seed: int, first: int, iterations_before: int) -> Iterator[torch.Tensor]:
        done = iterations_before
        for each in plain(self, *what, seed=seed, first=first, iterations_before=done):
            if killing and (current[0], first, done) == (number, 9, 1):
                raise Killed
            calls.append((first, done))
            done += 1
            yield each

    monkeypatch.setattr(reconstruction, "SAVE_EVERY_S", saved_s)
    monkeypatch.setattr(ReconstructedSet, "improve", improve)
    monkeypatch.setattr(search, "reconstruct", watched)
    with pytest.raises(Killed):
        run_training(run, tmp_path / "killed", store)
    killing.clear()
    calls.clear()
    resumed = run_training(run, tmp_path / "killed", store)
    assert calls[0] == (9, 1 if saved_s < 0 else 0)
    assert_same(whole, resumed)
    assert {int(f.name[0]) for f in (tmp_path / "killed" / "state" / "solutions").iterdir()} == {2}


@pytest.mark.slow
def test_a_signal_stops_re_construction_soon_and_keeps_it(problem: str, tmp_path: Path, store: Path) -> None:
    run = make_run(problem, reconstructions=10)
    whole = run_training(run, tmp_path / "whole", store)
    with pytest.MonkeyPatch.context() as patch:
        plain = ReconstructedSet._improve_part

        def asked(self: ReconstructedSet, number: int, rows: slice) -> Any:
            if number == 1:
                os.kill(os.getpid(), signal.SIGTERM)
            return plain(self, number, rows)

        patch.setattr(ReconstructedSet, "_improve_part", asked)
        with one_line("stopped by a signal at re-construction 1 of 10"):
            run_training(run, tmp_path / "stopped", store)
    assert (tmp_path / "stopped" / "state" / "solutions" / "1-0-24.npz").exists()
    assert_same(whole, run_training(run, tmp_path / "stopped", store))


def test_damaged_solutions_are_named(problem: str, tmp_path: Path, store: Path) -> None:
    (tmp_path / "solutions").mkdir()
    (tmp_path / "solutions" / "0-0-24.npz").write_bytes(b"cut short")
    with pytest.raises(NeurouteError, match=r"0-0-24\.npz: unreadable solutions .* delete it"):
        rounds(make_run(problem), store, tmp_path).train(0)


# -- starting from another run --------------------------------------------------------------------------------------


def checkpoint(path: Path, net: Network, seed: int = 7) -> dict[str, torch.Tensor]:
    torch.manual_seed(seed)
    made = build(net)
    save_checkpoint(path, made, {"run": "sit/first", "network": net.model_dump(), "code": "c"})
    return made.state_dict()


def test_a_run_starts_from_anothers_weights(problem: str, tmp_path: Path, store: Path) -> None:
    start = tmp_path / "first.safetensors"
    weights = checkpoint(start, network(problem, train_nodes=99))  # it may have been trained on another size
    run = make_run(problem, rounds=1, reconstructions=0, learning_rate=0.0, validations=1)
    run = run.model_copy(update={"start": "sit/first"})
    out = run_training(run, tmp_path, store, start)
    found, about = load_checkpoint(out / "model.safetensors", run.network)
    assert all(torch.equal(found.state_dict()[name], weights[name]) for name in weights)
    assert about["spec"]["start"] == "sit/first"
    with pytest.raises(ValueError, match="starts from sit/first"):
        run_training(run, tmp_path, store)


def test_a_start_that_does_not_fit_is_refused(problem: str, tmp_path: Path, store: Path) -> None:
    start = tmp_path / "first.safetensors"
    checkpoint(start, network(problem, depth=2))
    run = make_run(problem).model_copy(update={"start": "sit/first"})
    with one_line(r"holds Sit.*depth=2.*but sit/tiny.* is a Sit.*depth=1"):
        run_training(run, tmp_path, store, start)
    with pytest.raises(NeurouteError, match="no such checkpoint"):
        run_training(run, tmp_path, store, tmp_path / "absent.safetensors")
