"""Self-improvement: it learns without labels, keeps the best policy only, and resumes byte for byte."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from refusals import one_line

from neuroute.networks.weights import load_checkpoint
from neuroute.problems.registry import Part
from neuroute.specs.objects import Run
from neuroute.training import self_improvement
from neuroute.training.cvrp import CvrpPath, begin_at_depot
from neuroute.training.self_improvement import SampledTrainingSet, SelfImprovementBatches
from tiny import copy_weights, run_training, same_weights, scheme_of, self_improving, set_gaps

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def own_store(problem: str, request: pytest.FixtureRequest) -> Path:
    return request.getfixturevalue("store" if problem == "tsp" else "cvrp_store")


def batches_of(run: Run, **settings: Any) -> SelfImprovementBatches:
    scheme = scheme_of(run, **settings)
    return Part[Any]("self-improvement").of(run.validation.dataset.problem)(scheme)


def training_set(run: Run, **settings: Any) -> SampledTrainingSet:
    return batches_of(run, **settings).sampled


def test_a_killed_epoch_keeps_the_pages_that_it_has_sampled(
    tmp_path: Path, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neuroute.training.self_improvement.INSTANCES_PER_PAGE", 16)
    run = self_improving(problem)
    whole = training_set(run).batch(0, 0, 30)
    kept = training_set(run, folder=tmp_path)
    kept.batch(0, 0, 30)
    pages = sorted((tmp_path / "sampled").iterdir())
    assert len(pages) > 2
    pages[-1].unlink()  # killed before the last
    sampled: list[int] = []
    original = self_improvement.sample_shortest
    monkeypatch.setattr(self_improvement, "sample_shortest", lambda *args: (sampled.append(1), original(*args))[1])
    again = training_set(run, folder=tmp_path)
    for a, b in zip(whole, again.batch(0, 0, 30), strict=True):
        np.testing.assert_array_equal(a, b)
    assert len(sampled) == 1
    again.start_epoch(1, again.solutions)  # the next epoch needs them no more
    assert not list((tmp_path / "sampled").iterdir())


def test_a_damaged_page_is_named(tmp_path: Path, problem: str) -> None:
    run = self_improving(problem)
    training_set(run, folder=tmp_path).batch(0, 0, 30)
    page = tmp_path / "sampled" / "0-0.npz"
    content = bytearray(page.read_bytes())
    content[len(content) // 2] ^= 1
    page.write_bytes(content)
    with one_line(r"0-0\.npz: .*Bad CRC-32.*; delete it to sample it anew"):
        training_set(run, folder=tmp_path).batch(0, 0, 30)


@pytest.mark.parametrize(
    ("gaps", "best"), [((1, 2, np.nan, 1), (0, 0, 0, 0)), ((4, 3, 5, 2), (0, 1, 1, 3))], ids=["worse", "better"]
)
def test_the_best_policy_samples_the_next_epoch_and_is_kept(
    tmp_path: Path,
    problem: str,
    own_store: Path,
    gaps: tuple[float, ...],
    best: tuple[int, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of the validations before training and after each epoch; `best` numbers those of what samples and is exported."""
    used, sample = [], SampledTrainingSet._sample

    def watched(self: SampledTrainingSet, epoch: int) -> np.ndarray:
        solutions = sample(self, epoch)
        used.append(copy_weights(self._policy))
        return solutions

    monkeypatch.setattr(SampledTrainingSet, "_sample", watched)
    seen = set_gaps(monkeypatch, gaps)
    out = run_training(self_improving(problem), tmp_path, own_store)
    used.append(load_checkpoint(out / "model.safetensors")[0].state_dict())
    assert [[same_weights(weights, each) for each in seen] for weights in used] == [
        [i == number for i in range(4)] for number in best
    ]


def test_every_epoch_has_its_own_instances_and_every_pass_sees_all(problem: str) -> None:
    data = training_set(self_improving(problem, passes=3))
    *arrays, solutions = data.batch(0, 0, 120)
    spec, coords = data.spec, arrays[0]
    assert spec.valid(spec.from_arrays(arrays), solutions).all()
    for part in np.split(coords, 3):
        assert len(np.unique(part.reshape(40, -1), axis=0)) == 40
    assert not np.array_equal(coords[:40], coords[40:80])
    later = data.batch(1, 0, 120)[0]
    assert not (later[:, None] == coords[None]).all((-1, -2)).any()


@pytest.mark.slow
def test_solutions_depend_on_seed_and_epoch_and_not_on_memory(problem: str) -> None:
    run = self_improving(problem, instances=260)  # more than are sampled together
    a, b = training_set(run).batch(1, 0, 520), training_set(run, memory_gb=2e-4).batch(1, 0, 520)
    np.testing.assert_array_equal(a[-1], b[-1])
    other = training_set(run.model_copy(update={"seed": 1}))
    other.batch(1, 0, 1)
    mine = training_set(run)
    mine.batch(1, 0, 1)
    for x, y in zip(other.arrays, mine.arrays, strict=True):
        np.testing.assert_array_equal(x, y)
    assert not np.array_equal(other.solutions, mine.solutions)


def test_a_path_whose_second_stop_begins_a_route_may_begin_at_the_depot() -> None:
    """Three paths of three stops: the first may not, the second is not chosen, the third does."""
    coords = torch.arange(24.0).view(3, 4, 2)
    demand, left = torch.full((3, 4), 0.2), torch.full((3, 3), 0.5)
    via = torch.tensor([[1, 0, 1], [0, 1, 0], [0, 1, 0]])
    path = begin_at_depot(CvrpPath(coords, demand, via, left), torch.tensor([True, False, True]))
    for kept, before in ((path.coords, coords), (path.demand, demand), (path.via, via), (path.left, left)):
        assert torch.equal(kept[:2], before[:2])
    assert path.coords[2, 1].tolist() == path.coords[2, 0].tolist() == coords[2, 0].tolist()
    assert torch.equal(path.coords[2, 2:], coords[2, 2:])
    assert path.demand[2].tolist() == pytest.approx([0.2, 0, 0.2, 0.2])
    assert path.left[2].tolist() == [1, 0.5, 0.5]
    assert path.via[2].tolist() == [0, 1, 0]  # from the depot, the next customer is reached through it
