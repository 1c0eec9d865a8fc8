"""Probes along optimal tours: counts of known policies, ranks by brute force, and the last-layer states."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn
from untrained import evaluated, ready, run_of

from neuroute.analysis.representations import separation
from neuroute.datasets.labels import make_labels
from neuroute.datasets.store import load_tours
from neuroute.datasets.streams import dataset_coordinates
from neuroute.networks.base import PathNetwork
from neuroute.pipeline.papers.scaling.paper import ProbeEvaluation
from neuroute.pipeline.papers.scaling.probe import last_layer, success_by_rank
from neuroute.problems.tsp import canonical
from neuroute.specs.objects import Dataset, Labels, Network

N, COUNT = 12, 10
LABELS = Labels(dataset=Dataset(n=N, count=COUNT), solver="concorde")
ARGUMENTS = {"depth": 2, "width": 8, "heads": 2, "gate": True, "rezero": False, "train_nodes": 9}
NETWORK = Network(kind="neuroute.networks.decoder_only:DecoderOnly", arguments=ARGUMENTS)
RUN = run_of(NETWORK, LABELS)


class Policy(PathNetwork):
    """A network without weights to learn, which scores candidates by a rule."""

    width, pair_channels = 4, 0

    def __init__(self, score: Any) -> None:
        super().__init__()
        self.score, self.unused = score, nn.Parameter(torch.zeros(1))

    def encode(self, coords: Tensor) -> Tensor:
        return coords

    def attention_scale(self, nodes: int) -> float:
        return 1.0

    def decide(self, rows: Tensor, attention_scale: float = 1.0) -> Tensor:
        return self.score(rows)


def nearest(rows: Tensor) -> Tensor:
    return -(rows[:, 1:-1] - rows[:, :1]).norm(dim=-1)


def some_tours(n: int = N, count: int = COUNT) -> tuple[Tensor, Tensor]:
    """Instances with tours in canonical form; for counting they need not be optimal."""
    rng = np.random.default_rng(0)
    tours = canonical(np.stack([rng.permutation(n) for _ in range(count)]))
    return torch.from_numpy(rng.random((count, n, 2), np.float32)), torch.from_numpy(tours)


def small() -> Any:
    return ready(NETWORK)


@pytest.mark.parametrize("sign", [1, -1], ids=["nearest", "farthest"])
def test_ranks_and_hits_are_those_of_a_sort(sign: int) -> None:
    coords, tours = some_tours(7, 30)
    counts = {name: np.zeros(6, int) for name in ("available", "all", "hits_available", "hits_all")}
    for points, tour in zip(coords.numpy().astype(float), tours.numpy(), strict=True):
        for step in range(1, 5):  # neither the first nor the last, forced decision
            here, optimal = tour[step], tour[step + 1]
            far = np.linalg.norm(points - points[here], axis=1)
            neighbours = [k for k in np.argsort(far) if k != here]
            left = [k for k in neighbours if k in tour[step + 1 :]]
            is_hit = optimal == left[0 if sign > 0 else -1]
            for name, ranked in (("available", left), ("all", neighbours)):
                counts[name][ranked.index(optimal)] += 1
                counts[f"hits_{name}"][ranked.index(optimal)] += is_hit
    found = success_by_rank(Policy(lambda rows: sign * nearest(rows)), coords, tours)
    for name, count in counts.items():
        np.testing.assert_array_equal(found[name if name.startswith("hits") else f"decisions_{name}"], count)


@pytest.mark.parametrize("value", [0.0, float("nan")], ids=["equal", "nan"])
def test_a_model_without_preference_is_not_always_right(value: float) -> None:
    """The optimal node must not win because of where it stands among the candidates."""
    counts = success_by_rank(Policy(lambda rows: torch.full_like(rows[:, 1:-1, 0], value)), *some_tours(count=200))
    by_chance = 200 * sum(1 / candidates for candidates in range(2, N - 1))
    assert counts["hits_all"].sum() == pytest.approx(by_chance, rel=0.2)


def test_batched_is_as_one_by_one() -> None:
    net, (coords, tours) = small(), some_tours()
    tiny = 4 * 16 * net.width * (N + 1) / 1e9  # room for a single instance
    together, alone = (success_by_rank(net, coords, tours, memory_gb=m) for m in (4.0, tiny))
    for key, counts in together.items():
        np.testing.assert_array_equal(counts, alone[key])
    batched = np.concatenate([s for _, s in last_layer(net, coords, tours, 2)])
    single = list(last_layer(net, coords, tours, 2, memory_gb=tiny))
    assert [first for first, _ in single] == list(range(COUNT))
    np.testing.assert_allclose(np.concatenate([s for _, s in single]), batched, atol=1e-5)


def test_states_are_those_that_decide() -> None:
    """The head on the states gives the logits, the optimal next node's first."""
    net, (coords, tours) = small(), some_tours()
    decision = 3
    states = np.concatenate([s for _, s in last_layer(net, coords, tours, decision)])
    assert states.shape == (COUNT, N - decision - 1, net.width)
    path = torch.stack([c[t] for c, t in zip(coords, tours, strict=True)])
    with torch.inference_mode():
        logits = net.decide(torch.cat([path[:, decision:], path[:, :1]], 1), net.attention_scale(N))
        np.testing.assert_allclose(net.head(torch.from_numpy(states)).squeeze(-1), logits, atol=1e-5)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    make_labels(LABELS, folder, [], workers=1)
    return folder


def probe(store: Path, out: Path, **changes: int) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
    evaluation = ProbeEvaluation(run=RUN.id, optimal=LABELS, **changes)  # type: ignore[arg-type]
    return evaluated(out, evaluation, RUN, label_dirs=[store])


def test_records_and_arrays_agree(store: Path, tmp_path: Path) -> None:
    records, arrays = probe(store, tmp_path, instance=4, decision=2)
    values = records.set_index("metric").value
    assert values["decisions"] == COUNT * (N - 3) == arrays["decisions_available"].sum()
    assert values["success_pct"] == pytest.approx(100 * arrays["hits_available"].sum() / values["decisions"])
    assert values["parameters"] == sum(p.numel() for p in small().parameters())
    assert set(records.test) == {LABELS.dataset.id}
    tours = load_tours(LABELS, [store]).astype(int)
    np.testing.assert_array_equal(arrays["coords"], dataset_coordinates(LABELS.dataset)[4][tours[4, 3:]])
    assert arrays["states"].shape == (N - 3, 8)
    assert arrays["separation"].shape == (COUNT,)
    assert arrays["separation"][4] == pytest.approx(separation(arrays["states"]))
    assert (arrays["instance"], arrays["decision"]) == (4, 2)
