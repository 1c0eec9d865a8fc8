"""Training: it learns, it resumes byte for byte, and its settings mean what they say."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from refusals import one_line

from neuroute.core.digest import locate
from neuroute.networks.weights import load_checkpoint
from neuroute.problems import cvrp_sub_paths, sub_paths
from neuroute.problems.registry import Part
from neuroute.specs.objects import Labels, Network, Run
from neuroute.training import supervised
from neuroute.training.supervised import SupervisedBatches, TrainingSet
from tiny import N, copy_weights, cvrp_run, make_run, run_training, same_weights, scheme_of, self_improving, set_gaps


def batches(run: Run, store: Path, **more: Any) -> SupervisedBatches:
    return Part[Any]("supervised").of(run.validation.dataset.problem)(scheme_of(run, label_dirs=[store], **more))


PROBLEMS = [  # a run, its labels, and the decisions of its first sub-path
    (make_run, "store", lambda: sub_paths.draw(torch.Generator().manual_seed(0), N)[1] - 3),
    (cvrp_run, "cvrp_store", lambda: cvrp_sub_paths.draw(0, 0, N, 0, 32).length - 1),
]


def test_same_seed_same_bytes_another_seed_others(tmp_path: Path, store: Path) -> None:
    first, second, third = (
        (run_training(run, tmp_path / name, store) / "model.safetensors").read_bytes()
        for name, run in (("a", make_run()), ("b", make_run()), ("c", make_run().model_copy(update={"seed": 1})))
    )
    assert first == second
    assert first != third


DGL = {"depth": 1, "width": 8, "heads": 2, "feed_forward": 8, "nearest": 4}
POMO = {"depth": 1, "width": 8, "heads": 2, "feed_forward": 8}


@pytest.mark.parametrize("training", [make_run().training, self_improving().training])
@pytest.mark.parametrize(("kind", "arguments"), [("dgl:Dgl", DGL), ("pomo:Pomo", POMO)])
def test_networks_that_sub_paths_are_not_for_are_refused(
    tmp_path: Path, store: Path, training: Any, kind: str, arguments: dict[str, Any]
) -> None:
    """Before anything is trained; what a tour remembers is not known of a sub-path."""
    network = Network(kind=locate(f"neuroute.networks.{kind}"), arguments=arguments)
    run = make_run().model_copy(update={"network": network, "training": training})
    with one_line("cannot learn from sub-paths"):
        run_training(run, tmp_path, store)
    assert not (tmp_path / "state" / "state.pt").exists()


@pytest.mark.parametrize("step", ["sub-path", "decision", "summed"])
@pytest.mark.parametrize(("make", "labels", "path"), PROBLEMS)
def test_readings_of_a_step(
    make: Callable[..., Run], labels: str, path: Callable[[], int], step: str, request: pytest.FixtureRequest
) -> None:
    """An update for each decision of the drawn sub-path that is one, or one update."""
    b = batches(make(step=step), request.getfixturevalue(labels))
    before = copy_weights(b.net)
    total, updates = b.train(0)
    assert updates == (path() if step == "sub-path" else 1)
    assert float(total) > 0
    assert not same_weights(b.net.state_dict(), before)


def test_summed_gradient_is_the_sum_over_decisions(store: Path) -> None:
    b = batches(make_run(step="summed"), store)
    b.model.double()
    coords, tours = b.data.batch(0, 0, 32)
    path = sub_paths.cut(torch.from_numpy(coords).double(), torch.from_numpy(tours), 2, 9, False)
    losses = [supervised.loss(b.model, path, row) for row in supervised.rows(9, "summed")]
    torch.stack(losses).sum().backward()
    expected = [p.grad.clone() for p in b.model.parameters()]
    b.optimizer.zero_grad()
    for row in supervised.rows(9, "summed"):
        b._backward(path, row, 1.0, sync=True)
    for p, e in zip(b.model.parameters(), expected, strict=True):
        torch.testing.assert_close(p.grad, e, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("make", "labels"), [problem[:2] for problem in PROBLEMS])
def test_gradient_accumulation_changes_nothing(
    make: Callable[[], Run], labels: str, request: pytest.FixtureRequest
) -> None:
    gradients = []
    for memory_gb in (4.0, 1e-4):
        b = batches(make(), request.getfixturevalue(labels), memory_gb=memory_gb)
        b.model.double()
        for name, p in b.model.named_parameters():
            if "alpha" in name:  # 0 at first
                p.data.fill_(0.5)
        coords, *others = map(torch.from_numpy, b.data.batch(0, 0, 32))
        path = b._sub_path(5, coords.double(), *others)
        assert (b._micro_batch(path.shape[1]) < 32) == (memory_gb < 1)
        b._backward(path, 0, 1.0, sync=True)
        gradients.append(torch.cat([p.grad.flatten() for p in b.model.parameters() if p.grad is not None]))
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-4, atol=1e-7)


def test_learning_rate_decays_by_batches_after_a_warm_up(store: Path) -> None:
    b = batches(make_run(decay_gamma=0.5, decay_every=2, warmup_batches=4, warmup_factor=0.1), store)
    assert b.learning_rate(0) == pytest.approx(2e-3 * 0.1)
    assert b.learning_rate(2) == pytest.approx(2e-3 * 0.5 * 0.55)
    assert b.learning_rate(4) == pytest.approx(2e-3 * 0.25)


def test_a_thread_loads_the_next_shard_and_each_is_checked_once(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(epochs=3)
    blocks = [
        labels.model_copy(update={"dataset": labels.dataset.model_copy(update={"first": first, "count": 40})})
        for labels in run.data
        for first in (0, 40, 80)
    ]
    loads: list[tuple[int, bool]] = []
    load = supervised.load_tours

    def counted(labels: Labels, *rest: Any, check: bool, job: Labels) -> np.ndarray:
        loads.append((labels.dataset.first, check))
        return load(labels, *rest, check=check, job=job)

    monkeypatch.setattr(supervised, "load_tours", counted)
    plain, data = (TrainingSet(blocks, [store], 0, shuffle=True, ahead=each) for each in (False, True))
    for epoch in range(3):
        for start in range(0, 120, 24):
            for expected, found in zip(plain.batch(epoch, start, 24), data.batch(epoch, start, 24), strict=True):
                np.testing.assert_array_equal(expected, found)
    assert sorted(first for first, check in loads if check) == [0, 0, 40, 40, 80, 80]  # by both of them


@pytest.mark.parametrize(("keep", "number"), [("best", 1), ("last", 3)])
def test_the_best_weights_are_kept_on_demand_also_after_a_kill(
    keep: str, number: int, tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of four validations the second is the best; a finished state is only exported again, the same."""
    seen = set_gaps(monkeypatch, (3, 1, 2, 1))
    out = run_training(make_run(keep=keep, epochs=3), tmp_path, store)
    exported = load_checkpoint(out / "model.safetensors")[0].state_dict()
    assert [same_weights(exported, weights) for weights in seen] == [i == number for i in range(4)]
    (out / "model.safetensors").unlink()
    run_training(make_run(keep=keep, epochs=3), tmp_path, store)
    assert len(seen) == 4
    assert same_weights(load_checkpoint(out / "model.safetensors")[0].state_dict(), exported)
    stopped = torch.load(tmp_path / "state" / "state.pt", weights_only=True)
    assert stopped["best"][0] == (1 if keep == "best" else np.inf)


def test_suffixes_end_where_the_tour_begins() -> None:
    lengths = set()
    for seed in range(200):
        start, length, backwards = sub_paths.draw_suffix(torch.Generator().manual_seed(seed), 10)
        assert start + length == 11
        assert not backwards
        lengths.add(length)
    assert lengths == set(range(3, 11))
    coords = torch.rand(2, 10, 2)
    tours = torch.arange(10).expand(2, -1)
    path = sub_paths.cut(coords, tours, 7, 4, False)
    torch.testing.assert_close(path, coords[:, [7, 8, 9, 0]])
