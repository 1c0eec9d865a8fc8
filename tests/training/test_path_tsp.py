"""Training on path-TSPs: the loss of padded batches, their parts, the schedule, and that it learns and resumes."""

import json
import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from pydantic import ValidationError
from refusals import one_line

from neuroute.problems.sub_paths import cut_pairs, draw_pairs
from neuroute.specs.objects import Network, Run
from neuroute.training import supervised
from neuroute.training.supervised import PathTspBatches, PathTsps
from tiny import N, labels, log_lines, make_run, pens_run, run_training, scheme_of

CPU = torch.device("cpu")
POSITIONS = ("alibi", "rope", "both", "coordinates")


def batches(run: Run, store: Path, memory_gb: float = 4.0) -> PathTspBatches:
    return PathTspBatches(scheme_of(run, memory_gb=memory_gb, label_dirs=[store]))


def some_paths(b: PathTspBatches, index: int = 0) -> PathTsps:
    return b._sub_path(index, *map(torch.from_numpy, b.data.batch(0, 0, 32)))


def in_float64(b: PathTspBatches) -> PathTsps:
    """Some paths, for the model, which is made float64 too: only its loss is float32."""
    b.model.double()
    paths = some_paths(b)
    return PathTsps(paths.stops.double(), paths.lengths, None if paths.noise is None else paths.noise.double())


# -- the loss -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("initial", ["gaussian", "zero"])
def test_the_loss_of_a_batch_is_the_mean_over_its_paths(store: Path, positions: str, initial: str) -> None:
    """Each path alone, without rows that it lacks: -log p of its second stop."""
    b = batches(pens_run(positions, initial), store)
    paths = in_float64(b)
    assert len(paths.lengths.unique()) > 3
    net, noise, losses = b.net, paths.noise, []
    for i, n in enumerate(paths.lengths.tolist()):
        there = [*range(n - 1), paths.shape[1] - 1]
        rows = net.encode(paths.stops[i : i + 1, there], None if noise is None else noise[i : i + 1, there])
        logits = net.decide(rows).float()
        assert logits.shape == (1, n - 2)
        losses.append(F.cross_entropy(logits, torch.zeros(1, dtype=torch.long)))
    torch.testing.assert_close(b._loss(paths, 0), torch.stack(losses).mean(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("positions", ["both", "coordinates"])
def test_the_gradient_of_the_parts_is_that_of_the_batch(
    store: Path, positions: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gradients, losses = [], []
    for least in (32, 5):  # the last part has two paths
        monkeypatch.setattr(supervised, "LEAST", least)
        b = batches(pens_run(positions), store)
        assert b._micro_batch(N) == least
        paths = in_float64(b)
        losses.append(b._backward(paths, 0, 1.0, sync=True))
        gradients.append(torch.cat([p.grad.flatten() for p in b.model.parameters() if p.grad is not None]))
        assert len(gradients[-1]) == sum(p.numel() for p in b.model.parameters())
    torch.testing.assert_close(losses[0], losses[1], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-4, atol=1e-6)


def test_parts_hold_the_same_paths_with_fewer_rows(store: Path) -> None:
    paths = some_paths(batches(pens_run(), store))
    assert paths.noise is not None
    parts = list(paths.split(5))
    assert [len(p) for p in parts] == [5] * 6 + [2]
    assert torch.equal(torch.cat([p.lengths for p in parts]), paths.lengths)
    assert sum(p.stops.shape[0] * p.stops.shape[1] for p in parts) < paths.stops.shape[0] * paths.stops.shape[1]
    for k, part in enumerate(parts):
        assert part.noise is not None
        longest = int(part.lengths.max())
        assert part.stops.shape[1] == part.noise.shape[1] == longest
        own = slice(5 * k, 5 * k + 5)
        for whole, trimmed in ((paths.stops, part.stops), (paths.noise, part.noise)):
            assert torch.equal(trimmed[:, :-1], whole[own, : longest - 1])
            assert torch.equal(trimmed[:, -1], whole[own, -1])


def test_parts_keep_a_gpu_busy(store: Path) -> None:
    """As many tokens as that takes, until there are as many parts as on a CPU."""
    for size, parts in ((1 << 14, supervised.PARTS), (1024, 2)):
        several = batches(pens_run(batch_size=size), store, memory_gb=1e6)
        several.device = torch.device("cuda")
        part = several._micro_batch(100)
        assert -(-size // part) == parts
        assert part * 100 >= supervised.LEAST_TOKENS


def test_little_memory_makes_small_parts(store: Path) -> None:
    assert batches(pens_run(), store)._micro_batch(N) == supervised.LEAST
    assert batches(pens_run(), store, memory_gb=1e-4)._micro_batch(N) < supervised.LEAST
    large = batches(pens_run(batch_size=1024), store)
    assert large._micro_batch(N) == 1024 // supervised.PARTS


def test_a_batch_is_a_function_of_the_run_and_its_number(store: Path) -> None:
    """Paths and embeddings: anew for each batch and seed, the same whatever was drawn before."""
    run = pens_run()
    first, second = (some_paths(batches(run, store), index) for index in (0, 1))
    torch.manual_seed(77)
    again = some_paths(batches(run, store), 0)
    other = some_paths(batches(run.model_copy(update={"seed": 1}), store), 0)
    for name in ("stops", "lengths", "noise"):
        assert torch.equal(getattr(first, name), getattr(again, name))
        assert not torch.equal(getattr(first, name), getattr(second, name))
        assert not torch.equal(getattr(first, name), getattr(other, name))


def test_paths_are_those_of_the_labelled_tours(store: Path) -> None:
    b = batches(pens_run(), store)
    coords, tours = map(torch.from_numpy, b.data.batch(0, 0, 32))
    drawn = draw_pairs(torch.Generator().manual_seed(0), 32, N)
    assert torch.equal(some_paths(b).stops, cut_pairs(coords, tours, *drawn))
    assert torch.equal(some_paths(b).lengths, drawn[1])


def test_only_random_embeddings_are_drawn(store: Path) -> None:
    for positions, initial, drawn in (
        ("rope", "gaussian", True),
        ("rope", "zero", False),
        ("coordinates", "gaussian", False),
    ):
        noise = some_paths(batches(pens_run(positions, initial), store)).noise
        assert (noise is not None) == drawn
        if noise is not None:
            assert noise.shape == (32, noise.shape[1], 32)


# -- the schedule -------------------------------------------------------------------------------------------------


def test_the_learning_rate_falls_along_half_a_cosine(store: Path) -> None:
    """From 1e-4 in the first batch to 1e-5 in the last (pens, Section 5.1)."""
    run = pens_run(epochs=10, learning_rate=1e-4, final_learning_rate=1e-5)
    b = batches(run, store)
    rates = [b.learning_rate(i) for i in range(run.training.batches)]
    assert len(rates) == 40
    assert rates[0] == pytest.approx(1e-4, rel=1e-12)
    assert rates[-1] == pytest.approx(1e-5, rel=1e-12)
    assert all(later < earlier for earlier, later in pairwise(rates))
    assert rates[13] == pytest.approx(1e-5 + 9e-5 * 0.75)  # a third of the way: cos(pi / 3) = 1 / 2
    assert (rates[19] + rates[20]) / 2 == pytest.approx(5.5e-5)
    b.train(20)
    assert b.optimizer.param_groups[0]["lr"] == rates[20]


def test_a_single_batch_has_the_first_rate(store: Path) -> None:
    assert batches(pens_run(batch_size=120), store).learning_rate(0) == 2e-3


# -- whole runs ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("positions", "initial"), [("alibi", "gaussian"), ("rope", "zero"), ("both", "gaussian"), ("coordinates", "zero")]
)
def test_learns_and_logs(tmp_path: Path, store: Path, positions: str, initial: str) -> None:
    """RoPE alone with Gaussian embeddings stays where guessing is for longer than a test may take."""
    out = run_training(pens_run(positions, initial, epochs=25, learning_rate=8e-3), tmp_path, store)
    losses = [line["loss"] for line in log_lines(out, "train")]
    # What guessing costs: 2 to n - 1 candidates, all equally often.
    guess = np.mean([math.log(candidates) for candidates in range(2, N)])
    assert np.mean(losses[-16:]) < 0.75 * guess
    validations = log_lines(out, "validation")
    assert len(validations) == 4
    own, also = (dataset.id for dataset in (labels("val", 16).dataset, labels("val", 8).dataset))
    for line in validations:
        assert list(line["gaps_pct"]) == [own, also]
        assert line["gap_pct"] == line["gaps_pct"][own]
    assert validations[-1]["gap_pct"] < 0.7 * validations[0]["gap_pct"]
    about = json.loads((out / "run.json").read_text())
    assert about["updates"] == about["batches"] == 25 * 4


def test_pairs_with_a_network_that_cannot_hide_rows_are_one_clear_line(tmp_path: Path, store: Path) -> None:
    arguments = {"depth": 1, "width": 16, "heads": 2, "feed_forward": 32, "train_nodes": N}
    bq = Network(kind="neuroute.networks.bq:Bq", arguments=arguments)
    with one_line("pens/tiny.*sub_paths: pairs needs a network.*Pens"):
        run_training(pens_run().model_copy(update={"network": bq}), tmp_path, store)
    assert not (tmp_path / "out" / "model.safetensors").exists()


@pytest.mark.parametrize("step", ["sub-path", "summed"])
def test_pairs_are_one_decision_each(step: str) -> None:
    with pytest.raises(ValidationError, match=f"step must be 'decision', not '{step}'"):
        pens_run(step=step)


def test_other_runs_log_a_single_validation_set(tmp_path: Path, store: Path) -> None:
    out = run_training(make_run(validations=1), tmp_path, store)
    assert all(list(line["gaps_pct"]) == [labels("val", 16).dataset.id] for line in log_lines(out, "validation"))
