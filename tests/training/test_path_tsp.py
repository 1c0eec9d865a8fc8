"""Training on path-TSPs: the loss of padded batches, their parts, the schedule, and that it learns and resumes."""

from itertools import pairwise
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from pydantic import ValidationError

from neuroute.specs.objects import Run
from neuroute.training import supervised
from neuroute.training.supervised import PathTspBatches, PathTsps
from tiny import N, pens_run, scheme_of

POSITIONS = ("alibi", "rope", "both", "coordinates")


def batches(run: Run, store: Path, memory_gb: float = 4.0) -> PathTspBatches:
    return PathTspBatches(scheme_of(run, memory_gb=memory_gb, label_dirs=[store]))


def in_float64(b: PathTspBatches) -> PathTsps:
    """Some paths, for the model, which is made float64 too: only its loss is float32."""
    b.model.double()
    paths = b._sub_path(0, *map(torch.from_numpy, b.data.batch(0, 0, 32)))
    return PathTsps(paths.stops.double(), paths.lengths, None if paths.noise is None else paths.noise.double())


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
def test_the_gradient_of_the_parts_is_that_of_the_batch(store: Path, positions: str) -> None:
    """Of 32 paths; little memory makes parts of five, the last of two.  Large batches have a few parts in any case."""
    gradients, losses = [], []
    for memory_gb, part in ((4.0, 32), (2.5e-4, 5)):
        b = batches(pens_run(positions), store, memory_gb)
        paths = in_float64(b)
        assert b._micro_batch(paths.shape[1]) == part
        losses.append(b._backward(paths, 0, 1.0, sync=True))
        gradients.append(torch.cat([p.grad.flatten() for p in b.model.parameters() if p.grad is not None]))
        assert len(gradients[-1]) == sum(p.numel() for p in b.model.parameters())
    torch.testing.assert_close(losses[0], losses[1], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-4, atol=1e-6)
    assert batches(pens_run(positions, batch_size=1024), store)._micro_batch(N) == 1024 // supervised.PARTS


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


@pytest.mark.parametrize("step", ["sub-path", "summed"])
def test_pairs_are_one_decision_each(step: str) -> None:
    with pytest.raises(ValidationError, match=f"step must be 'decision', not '{step}'"):
        pens_run(step=step)
