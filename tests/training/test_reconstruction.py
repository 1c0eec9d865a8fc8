"""Self-improved training: rounds, what they learn from, resuming, starts from another run, what is refused."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from refusals import one_line

from neuroute.core.errors import NeurouteError
from neuroute.datasets.problem_spec import spec_of
from neuroute.datasets.store import load_tours
from neuroute.decoding.decode import SEARCH, construct
from neuroute.networks.weights import build, load_checkpoint, save_checkpoint
from neuroute.training import self_improvement
from neuroute.training.self_improvement import ReconstructedSet, Rounds
from test_resuming import assert_same
from tiny import copy_weights, log_lines, run_training, same_weights, set_gaps
from tiny_rounds import N, feasible, lengths, make_run, network, rounds

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def store(rounds_store: Path) -> Path:
    return rounds_store


def in_order(solutions: np.ndarray) -> np.ndarray:
    """Solutions that any network improves: nodes by their numbers, each customer of the CVRP in a route of its own."""
    if solutions.ndim == 2:
        return np.sort(solutions)
    return np.stack([np.sort(solutions[:, 0]), np.ones_like(solutions[:, 1])], axis=1)


@pytest.fixture
def poor_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let trainings start from long solutions, so that it is no matter of luck whether labels get shorter."""
    monkeypatch.setattr(self_improvement, "load_tours", lambda *labels: in_order(load_tours(*labels)))


# -- rounds ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("poor_labels")
def test_the_log_tells_rounds_and_labels_get_shorter_only(problem: str, tmp_path: Path, store: Path) -> None:
    run = make_run(problem)
    out = run_training(run, tmp_path, store)
    notes = log_lines(out, "round")
    assert [(n["round"], n["batch"], n["samples"], n["iterations"]) for n in notes] == [
        (0, 0, 0, 4), (1, 6, 48, 4), (2, 12, 96, 4)
    ]  # fmt: skip
    kind = spec_of(run.validation)
    labels = in_order(load_tours(run.data[0], [store]))
    given = kind.lengths(kind.instances(run.data[0].dataset), labels).mean()
    assert notes[0]["length_before"] == pytest.approx(given)
    assert notes[1]["length_before"] == pytest.approx(notes[0]["length_after"])
    assert notes[2]["length_before"] == pytest.approx(notes[1]["length_after"])
    assert notes[2]["length_after"] < 0.9 * given
    assert all(n["length_after"] <= n["length_before"] + 1e-9 for n in notes)
    assert len(log_lines(out, "validation")) == 7
    assert json.loads((out / "run.json").read_text())["samples"] == 3 * 2 * 24


def test_every_solution_stays_feasible_and_gets_no_longer(problem: str, tmp_path: Path, store: Path) -> None:
    batches = rounds(make_run(problem, reconstructions=12, longest=8), store, tmp_path)
    data = batches.reconstructed
    for index in (0, 6, 12):
        data.solutions = in_order(data.solutions)
        before = lengths(data)
        batches.train(index)
        assert feasible(data)
        assert (lengths(data) <= before + 1e-9).all()
        assert lengths(data).mean() < 0.9 * before.mean()


def test_a_warm_up_leaves_the_labels_as_they_are(problem: str, tmp_path: Path, store: Path) -> None:
    run = make_run(problem, rounds=1, reconstructions=0, validations=1)
    batches = rounds(run, store, tmp_path)
    before = batches.reconstructed.solutions.copy()
    np.testing.assert_array_equal(before, load_tours(run.data[0], [store]))
    assert batches.train(0)[1] > 0
    np.testing.assert_array_equal(batches.reconstructed.solutions, before)
    (note,) = batches.notes()
    assert note["iterations"] == 0
    assert note["length_after"] == note["length_before"]
    assert not batches.notes()
    assert not list(tmp_path.rglob("*.npz"))


@pytest.mark.usefixtures("poor_labels")
def test_a_warm_up_may_be_the_first_of_the_rounds(problem: str, tmp_path: Path, store: Path) -> None:
    run = make_run(problem, warm_up=True)
    notes = log_lines(run_training(run, tmp_path, store), "round")
    assert [note["iterations"] for note in notes] == [0, 4, 4]
    assert notes[0]["length_before"] == notes[0]["length_after"]
    assert notes[-1]["length_after"] < notes[0]["length_after"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gaps", "best"),
    [
        ((1, 2, 3, 4, 5, 6, 7), (0, 0, 0, 0)),
        ((7, 6, 5, 4, 3, 2, 1), (0, 2, 4, 6)),
        ((4, 3, 5, 2, np.nan, 2, 9), (0, 1, 3, 3)),
    ],
    ids=["worse", "better", "either"],
)
def test_each_round_begins_with_the_best_weights(
    problem: str,
    gaps: tuple[float, ...],
    best: tuple[int, ...],
    tmp_path: Path,
    store: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After the first, third and fifth of seven validations; `best` numbers theirs, and that of what is exported."""
    used, improve = [], ReconstructedSet.improve

    def improved(self: ReconstructedSet, number: int) -> dict[str, Any]:
        used.append(copy_weights(self.scheme.net))
        return improve(self, number)

    monkeypatch.setattr(ReconstructedSet, "improve", improved)
    seen = set_gaps(monkeypatch, gaps)
    out = run_training(make_run(problem), tmp_path, store)
    used.append(load_checkpoint(out / "model.safetensors")[0].state_dict())
    assert [[same_weights(weights, each) for each in seen] for weights in used] == [
        [i == number for i in range(7)] for number in best
    ]


def test_moments_go_on_unless_they_are_not_finite(problem: str, tmp_path: Path, store: Path) -> None:
    batches = rounds(make_run(problem), store, tmp_path)
    batches.train(0)
    moments = batches.optimizer.state[next(iter(batches.model.parameters()))]
    steps = int(moments["step"])
    assert steps > 0
    updates = batches.train(6)[1]
    assert int(moments["step"]) == steps + updates
    moments["exp_avg"].fill_(torch.nan)
    updates = batches.train(12)[1]
    again = batches.optimizer.state[next(iter(batches.model.parameters()))]
    assert int(again["step"]) == updates
    assert again["exp_avg"].isfinite().all()


def test_the_first_round_may_improve_the_networks_own_solutions(problem: str, tmp_path: Path, store: Path) -> None:
    run = make_run(problem, initial="greedy")
    batches = rounds(run, store, tmp_path)
    data = batches.reconstructed
    own = construct(problem, data.scheme.net, data.instances(slice(None))).numpy()
    before = data.spec.lengths(data.instances(slice(None)), own)
    batches.train(0)
    assert batches.notes()[0]["length_before"] == pytest.approx(before.mean())
    assert (lengths(data) <= before + 1e-9).all()
    held = lengths(data).mean()
    batches.train(6)
    assert batches.notes()[0]["length_before"] == pytest.approx(held)  # and not greedy again


# -- what a batch is ------------------------------------------------------------------------------------------------


def paths_of(batches: Rounds, index: int) -> Any:
    arrays = (torch.from_numpy(array) for array in batches.data.batch(0, 0, 24))
    return batches._sub_path(index, *arrays)


def test_sub_paths_are_of_4_to_the_longest_stops_of_the_solutions(problem: str, tmp_path: Path, store: Path) -> None:
    batches = rounds(make_run(problem, longest=7), store, tmp_path)
    sizes = {paths_of(batches, i).shape[1] for i in range(200)}
    assert sizes == {4, 5, 6, 7}
    assert {paths_of(rounds(make_run(problem), store, tmp_path), i).shape[1] for i in range(200)} == set(range(4, 17))


def places(batches: Rounds, index: int) -> np.ndarray:
    """Positions (batch, length) in their tours of the stops that a batch learns from."""
    coords, tours = batches.data.batch(0, 0, 24)
    points = np.take_along_axis(coords, tours[..., None], axis=1)
    path = paths_of(batches, index).numpy()
    return (path[:, :, None] == points[:, None]).all(-1).argmax(-1)


@pytest.mark.parametrize("starts", ["instance", "batch"])
def test_who_draws_where_sub_paths_of_tours_start(starts: str, tmp_path: Path, store: Path) -> None:
    batches = rounds(make_run("tsp", starts=starts, longest=9), store, tmp_path)
    begin, steps = [], []
    for index in range(60):
        found = places(batches, index)
        way = np.diff(found, axis=1) % N
        assert ((way == way[:, :1]) & ((way == 1) | (way == N - 1))).all()  # neighbours, in one direction
        begin.append(np.where(way[:, 0] == 1, found[:, 0], found[:, -1]))
        steps.append(way[:, 0])
        alone = starts == "batch"
        assert (len(set(begin[-1])) == 1) is alone
        assert (len(set(steps[-1])) == 1) is alone
    assert set(np.concatenate(begin)) == set(range(N))
    assert np.mean(np.concatenate(steps) == 1) == pytest.approx(0.5, abs=0.2)


def test_epochs_have_an_order_of_their_own_and_see_all(problem: str, tmp_path: Path, store: Path) -> None:
    data = rounds(make_run(problem), store, tmp_path).reconstructed
    orders = []
    for epoch in (0, 1):
        batch = data.batch(epoch, 0, 24)
        order = [int((array == data.arrays[0]).all((1, 2)).argmax()) for array in batch[0]]
        assert sorted(order) == list(range(24))
        np.testing.assert_array_equal(batch[-1], data.solutions[order])
        np.testing.assert_array_equal(data.batch(epoch, 10, 10)[0], batch[0][10:20])
        orders.append(order)
    assert orders[0] != orders[1]


def test_the_rate_falls_by_epochs_from_where_it_was(problem: str, tmp_path: Path, store: Path) -> None:
    batches = rounds(make_run(problem, decay_gamma=0.5, epochs_before=2, learning_rate=1.0), store, tmp_path)
    assert [batches.learning_rate(i) for i in (0, 2, 3, 6, 17)] == [0.25, 0.25, 0.125, 0.0625, 0.25 / 32]


def test_gradients_are_clipped_if_so_asked(problem: str, tmp_path: Path, store: Path) -> None:
    norms = list[float]()
    for clip in (None, 1e-3):
        batches = rounds(make_run(problem, clip=clip, reconstructions=0), store, tmp_path)
        norms.clear()
        parameters = list(batches.model.parameters())

        def note(*_: object, parameters: list[torch.nn.Parameter] = parameters) -> None:
            norms.append(float(torch.cat([p.grad.flatten() for p in parameters if p.grad is not None]).norm()))

        batches.optimizer.register_step_pre_hook(note)
        batches.train(0)
        assert (max(norms) <= 1e-3 * (1 + 1e-4)) is (clip is not None)


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
    monkeypatch.setitem(self_improvement.MAX_NODES_PER_BATCH, "cpu", 9 * N)
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

    monkeypatch.setattr(self_improvement, "SAVE_EVERY_S", saved_s)
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


# -- starting from another run --------------------------------------------------------------------------------------


@pytest.mark.parametrize("damaged", [b"cut short", b""])
def test_damaged_solutions_are_named(problem: str, damaged: bytes, tmp_path: Path, store: Path) -> None:
    (tmp_path / "solutions").mkdir()
    (tmp_path / "solutions" / "0-0-24.npz").write_bytes(damaged)
    with pytest.raises(NeurouteError, match=r"0-0-24\.npz: not a readable npz .* delete it"):
        rounds(make_run(problem), store, tmp_path).train(0)


def test_a_run_starts_from_anothers_weights(problem: str, tmp_path: Path, store: Path) -> None:
    start, spec = tmp_path / "first.safetensors", network(problem, train_nodes=99)  # trained on another size
    first = build(spec)
    save_checkpoint(start, first, {"run": "sit/first", "network": spec.model_dump(), "code": "c"})
    run = make_run(problem, rounds=1, reconstructions=0, learning_rate=1e-30, validations=1)
    run = run.model_copy(update={"start": "sit/first"})
    out = run_training(run, tmp_path, store, start)
    found, about = load_checkpoint(out / "model.safetensors", run.network)
    assert same_weights(found.state_dict(), first.state_dict())
    assert about["spec"]["start"] == "sit/first"
