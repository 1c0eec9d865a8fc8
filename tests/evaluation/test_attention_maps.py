"""The origin's attention logits against a dense float64 reference, the walk, and what the network is made of."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from untrained import Arrays, looked_into, ready, tiny_run

from neuroute.datasets.streams import dataset_coordinates
from neuroute.decoding.decode import decode
from neuroute.decoding.memory import autocast
from neuroute.pipeline.papers.pens.paper import AttentionEvaluation
from neuroute.pipeline.papers.pens.probe import origin_logits, path_ends, walk
from neuroute.specs.objects import Dataset, Decoding, Labels, Run
from pens_by_the_book import decision as by_the_book

DATASET = Dataset(split="val", n=14, count=3)
POSITIONS = ("alibi", "rope", "both", "coordinates")
WIDTH, HEADS = 16, 2


def run_of(positions: str, **arguments: Any) -> Run:
    shape = {"depth": 3, "width": WIDTH, "heads": HEADS, "feed_forward": 24, "positions": positions}
    return tiny_run("pens", "pens:Pens", Labels(dataset=DATASET, solver="concorde"), **shape, **arguments)


def small(run: Run) -> Any:
    net = ready(run.network, 1)
    with torch.no_grad():
        for p in net.parameters():  # norms that are no longer all ones
            p.add_(0.1 * torch.randn_like(p))
    return net


def dense(net: Any, positions: str, coords: np.ndarray, origin: int, destination: int) -> np.ndarray:
    """The origin's logits (n,) by the paper's formulas on whole score matrices."""
    noise = torch.randn(len(coords), WIDTH, generator=torch.Generator().manual_seed(0)).double()
    order = [origin, *(i for i in range(len(coords)) if i not in (origin, destination)), destination]
    points = torch.from_numpy(coords.astype(np.float64))
    with torch.no_grad():
        _, scores = by_the_book(copy.deepcopy(net).double(), points[order], noise[order], positions)
    return scores[0].numpy()[np.argsort(order)]


@pytest.mark.parametrize("factor", [1.0, 2.5])
@pytest.mark.parametrize("positions", POSITIONS)
def test_logits_are_those_of_a_dense_reference(positions: str, factor: float) -> None:
    net = small(run_of(positions))
    coords = dataset_coordinates(DATASET)[0] * np.float32(factor)
    expected = dense(net, positions, coords, 3, 8)
    with torch.inference_mode():
        found = origin_logits(net, torch.from_numpy(coords), 3, 8)
        exact = origin_logits(net.double(), torch.from_numpy(coords).double(), 3, 8)
    assert found.shape == (14,)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    np.testing.assert_allclose(exact, expected, atol=1e-9)
    assert np.ptp(expected) > 0.1


def test_logits_are_the_same_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the network holds no bias as a whole, as at 10,000 nodes."""
    net, coords = small(run_of("both")), torch.from_numpy(dataset_coordinates(DATASET)[1])
    with torch.inference_mode():
        whole = origin_logits(net, coords, 0, 13)
        monkeypatch.setattr(type(net), "DENSE", 1)
        monkeypatch.setattr(type(net), "PART", HEADS * 14 * 3)
        parts = origin_logits(net, coords, 0, 13)
    np.testing.assert_allclose(parts, whole, atol=1e-5)


def test_mixed_precision_is_near() -> None:
    net, coords = small(run_of("both")), torch.from_numpy(dataset_coordinates(DATASET)[1])
    with torch.inference_mode():
        exact = origin_logits(net, coords, 0, 13)
        with autocast(torch.device("cpu"), "bf16"):
            mixed = origin_logits(net, coords, 0, 13)
    assert mixed.dtype == torch.float32
    assert 0 < (mixed - exact).abs().max() < 0.1 * np.ptp(exact.numpy())


def test_the_ends_of_the_path_are_far_apart_and_distinct() -> None:
    coords = np.random.default_rng(0).random((400, 2), dtype=np.float32)
    origin, destination = path_ends(coords)
    assert np.linalg.norm(coords[origin] - 0.3) < 0.1
    assert np.linalg.norm(coords[destination] - 0.7) < 0.1
    assert path_ends(np.zeros((4, 2), np.float32)) == (0, 1)


@pytest.mark.parametrize("positions", POSITIONS)
def test_the_walk_is_greedy_decoding(positions: str) -> None:
    net, coords = small(run_of(positions)), dataset_coordinates(Dataset(split="val", n=6, count=1))
    with torch.inference_mode():
        tour, probabilities = walk(net, torch.from_numpy(coords[0]))
    np.testing.assert_array_equal(tour, decode("tsp", net, coords, Decoding())[0])
    np.testing.assert_allclose(probabilities.sum(1), 1, atol=1e-6)
    for decision, chances in enumerate(probabilities):
        assert chances.argmax() == tour[decision + 1]
        assert not chances[tour[: decision + 1]].any()
        assert (chances[tour[decision + 1 :]] > 0).all()
    assert probabilities[-1].max() == 1


def mapped(run: Run, out: Path, rescaling: Path | None = None, **changes: Any) -> Arrays:
    evaluation = AttentionEvaluation(**{"run": run.id, "dataset": DATASET, "factors": (1.0, 2.0), **changes})
    return looked_into(out, evaluation, run, small(run), rescaling=rescaling)


def test_arrays(tmp_path: Path) -> None:
    run = run_of("alibi")
    np.savez(tmp_path / "r.npz", **{"rescaling/sizes": np.array([10, 18]), "rescaling/best": np.array([1.0, 2.0])})
    arrays = mapped(run, tmp_path, tmp_path / "r.npz", instance=2, factors=(1.0, 3.0, "best"))
    assert arrays["factors"].tolist() == [1.0, 3.0, 1.5]
    np.testing.assert_array_equal(arrays["coords"], dataset_coordinates(DATASET)[2])
    origin, destination = int(arrays["origin"]), int(arrays["destination"])
    assert (origin, destination) == path_ends(dataset_coordinates(DATASET)[2])
    assert arrays["logits"].dtype == np.float32
    for factor, logits in zip(arrays["factors"], arrays["logits"], strict=True):
        expected = dense(small(run), "alibi", arrays["coords"] * np.float32(factor), origin, destination)
        np.testing.assert_allclose(logits, expected, atol=1e-4)
    assert arrays["small_coords"].shape == (6, 2)
    assert sorted(arrays["small_tour"]) == list(range(6))
    assert arrays["small_probabilities"].shape == (5, 6)
