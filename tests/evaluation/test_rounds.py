"""What is drawn of SIT is what it does: its decisions, its attention weights by a dense reference, PRC's own blocks."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from untrained import Arrays, looked_into, ready, tiny_run

import by_the_book
from neuroute.core.errors import NeurouteError
from neuroute.datasets.streams import dataset_coordinates
from neuroute.decoding.decode import decode
from neuroute.decoding.tsp import prc
from neuroute.networks.sit import Sit
from neuroute.pipeline.papers.sit.paper import RoundEvaluation
from neuroute.pipeline.papers.sit.probe import decision_state, one_iteration
from neuroute.solvers.registry import get
from neuroute.specs.objects import Dataset, Decoding, Labels, Run
from sit_by_the_book import logits

N, R, WIDTH, HEADS = 16, 3, 16, 2
DATASET = Dataset(split="val", n=N, count=1, first=2)
PRC = Decoding(method="prc", start="insertion", iterations=6, longest=5)


def run_of(**arguments: Any) -> Run:
    shape = {"depth": 3, "width": WIDTH, "heads": HEADS, "feed_forward": 24, "representatives": R}
    return tiny_run("sit", "sit:Sit", Labels(dataset=DATASET, solver="concorde"), **shape, **arguments)


def small(run: Run) -> Any:
    return ready(run.network, 1)


def points() -> torch.Tensor:
    return torch.from_numpy(dataset_coordinates(DATASET))


# -- one decision ---------------------------------------------------------------------------------------------------


def dense_looks(net: Sit, rows: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """(modules, r + 1, tokens): weights of the first halves by the paper's formulas, head by head in float64."""
    looks, attention = list[torch.Tensor](), by_the_book.attention

    def noted(heads: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        parts = zip(q.chunk(heads, dim=-1), k.chunk(heads, dim=-1), strict=True)
        looks.append(sum(torch.softmax(a @ b.mT / math.sqrt(a.shape[-1]), dim=-1)[0] for a, b in parts) / heads)
        return attention(heads, q, k, v)

    monkeypatch.setattr(by_the_book, "attention", noted)
    logits(net, rows)
    return torch.stack([each.roll((-1, -1), (0, 1)) for each in looks[::2]]).numpy()  # the destination is the first


@pytest.mark.parametrize("visited", [[0, 7, 3, 12], [0]], ids=["on the way", "at the start"])
def test_the_state_is_that_of_a_dense_reference(visited: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    net = small(run_of())
    with torch.inference_mode():
        state = decision_state(net, points(), torch.tensor([visited]))
    left = [i for i in range(N) if i not in visited]
    seen = [visited[-1], *left, 0]
    rows = points()[:, seen]
    looks = dense_looks(net, rows, monkeypatch)
    expected = np.full((3, R + 1, N), np.nan)
    for token, node in enumerate([visited[-1]] * (R - 1) + seen):
        before = np.nan_to_num(expected[..., node])
        expected[..., node] = before + looks[..., token]
    np.testing.assert_allclose(state["attention"], expected, atol=1e-5)
    np.testing.assert_allclose(np.nansum(state["attention"], axis=-1), 1, atol=1e-5)
    with torch.inference_mode():
        chances = torch.softmax(net.decide(rows)[0], 0).numpy()
    np.testing.assert_allclose(state["probabilities"][left], chances, atol=1e-6)
    assert np.isnan(np.delete(state["probabilities"], left)).all()
    assert (state["visited"].tolist(), int(state["destination"])) == (visited, 0)


# -- one iteration --------------------------------------------------------------------------------------------------


class Nearest(Sit):
    """Goes to the nearest candidate: greedy, but no fool, so that blocks are improved."""

    def decide(self, rows: torch.Tensor, attention_scale: float = 1.0) -> torch.Tensor:
        return -(rows[:, 1:-1] - rows[:, :1]).norm(dim=-1)


def length_of(coords: np.ndarray, tour: np.ndarray) -> float:
    return float(np.linalg.norm(coords[tour] - coords[np.roll(tour, -1)], axis=1).sum())


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("most", [None, 2])
def test_the_iteration_is_prcs(seed: int, most: int | None) -> None:
    generator = np.random.default_rng(seed)
    coords = generator.random((40, 2), dtype=np.float32)
    tours = torch.from_numpy(generator.permutation(40))[None]
    net, place = Nearest(depth=1, width=8, heads=1, feed_forward=8), torch.from_numpy(coords)[None]
    decoding = Decoding(method="prc", iterations=5, longest=9, most_blocks=most)
    found = one_iteration(net, place, tours, decoding)
    steps = prc(lambda _: net.decide, net.encode, place, tours, 5, longest=9, most_blocks=most)
    expected = [tours, *steps]
    number = int(found["iteration"])
    np.testing.assert_array_equal(found["after"], expected[number][0])
    assert found["rounds"] == pytest.approx([length_of(coords, t[0].numpy()) for t in expected[1:]])
    before, after, length = found["before"], found["after"], int(found["length"])
    assert length_of(coords, before) == pytest.approx(length_of(coords, expected[number - 1][0].numpy()))
    assert len(found["first"]) == min(40 // length, most or 40)
    assert found["improved"].any()
    covered = np.zeros(40, bool)
    for first, improved in zip(found["first"], found["improved"], strict=True):
        inside = slice(first, first + length)
        assert sorted(before[inside]) == sorted(after[inside])
        assert (before[first], before[first + length - 1]) == (after[first], after[first + length - 1])
        legs = [np.linalg.norm(np.diff(coords[t[inside]], axis=0), axis=1).sum() for t in (before, after)]
        assert (legs[1] < legs[0]) if improved else (before[inside] == after[inside]).all()
        covered[inside] = True
    np.testing.assert_array_equal(before[~covered], after[~covered])


def test_without_any_improvement_the_first_iteration_is_kept() -> None:
    coords = np.stack([np.cos(np.arange(12) / 2), np.sin(np.arange(12) / 2)], axis=1).astype(np.float32)
    net, place = Nearest(depth=1, width=8, heads=1, feed_forward=8), torch.from_numpy(coords)[None]
    found = one_iteration(net, place, torch.arange(12)[None], Decoding(method="prc", iterations=3))
    assert int(found["iteration"]) == 1
    assert not found["improved"].any()
    np.testing.assert_array_equal(found["before"], found["after"])
    assert found["rounds"] == pytest.approx([length_of(coords, np.arange(12))] * 3)


# -- the stage ------------------------------------------------------------------------------------------------------


def measured(run: Run, out: Path, **changes: Any) -> Arrays:
    wanted = {"run": run.id, "dataset": DATASET, "decoding": PRC, "decision": 5, **changes}
    return looked_into(out, RoundEvaluation(**wanted), run, small(run))


@pytest.mark.parametrize("start", ["insertion", "nearest", "greedy"])
def test_arrays(start: str, tmp_path: Path) -> None:
    run = run_of()
    arrays = measured(run, tmp_path, decoding=PRC.model_copy(update={"start": start}))
    coords = dataset_coordinates(DATASET)
    np.testing.assert_array_equal(arrays["coords"], coords[0])
    greedy = decode("tsp", small(run), coords, Decoding())[0]
    np.testing.assert_array_equal(arrays["visited"], greedy[:5])
    assert int(np.nanargmax(arrays["probabilities"])) == int(greedy[5])
    assert arrays["attention"].shape == (3, R + 1, N)
    assert str(arrays["start"]) == start
    initial = np.asarray(greedy) if start == "greedy" else get(start).solve(coords[0], 0)
    assert len(arrays["rounds"]) == PRC.iterations
    lengths = [length_of(coords[0], initial), *arrays["rounds"]]
    assert length_of(coords[0], arrays["before"]) == pytest.approx(lengths[int(arrays["iteration"]) - 1])


def test_self_attention_has_no_representatives_that_look(tmp_path: Path) -> None:
    with pytest.raises(NeurouteError, match="SIT for the TSP with cross-attention"):
        measured(run_of(attention="self"), tmp_path)
