"""What is drawn of ICAM and POMO is what they do: decisions, Eq. 3 term by term, and what tours choose."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from untrained import Arrays, looked_into, ready, softmax, tiny_run

from neuroute.datasets.labels import make_labels
from neuroute.datasets.store import load_tours
from neuroute.datasets.streams import dataset_coordinates
from neuroute.decoding.multi_start import multi_start
from neuroute.decoding.tsp import TSP
from neuroute.pipeline.papers.icam.paper import RANKS, StructureEvaluation
from neuroute.pipeline.papers.icam.probe import LEVELS, SOLVED, selections
from neuroute.pipeline.rendering.maps import pairwise_distances
from neuroute.specs.objects import Dataset, Labels, Run

N, DECISION, WIDTH, HEADS = 12, 5, 8, 2
DATASET = Dataset(split="val", n=N, count=1, first=2)
OPTIMAL = tuple(Labels(dataset=Dataset(split="test", n=n, count=4), solver="nearest") for n in (9, 25))


def run_of(kind: str = "icam:Icam", **arguments: Any) -> Run:
    shape = {"depth": 3, "width": WIDTH, "feed_forward": 12, **({"heads": HEADS} if "pomo" in kind else {})}
    run = tiny_run("icam", kind, OPTIMAL[0], **shape, **arguments)
    return run.model_copy(update={"n": N})


def small(run: Run) -> Any:
    """Random weights, and alphas that differ, one of them below 0."""
    net = ready(run.network, 4)
    with torch.no_grad():
        for i, (name, parameter) in enumerate(net.named_parameters()):
            if name.endswith("alpha"):
                parameter.fill_(0.9 - 0.11 * (i % 10))
    return net


def measured(run: Run, out: Path, **changes: Any) -> Arrays:
    evaluation = StructureEvaluation(**{"run": run.id, "dataset": DATASET, "decision": DECISION, **changes})
    return looked_into(out, evaluation, run, small(run), label_dirs=[out / "labels"])


def weights(run: Run) -> dict[str, np.ndarray]:
    return {name: t.double().numpy() for name, t in small(run).state_dict().items()}


# -- the instance, its tours and the decision -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["icam:Icam", "pomo:Pomo"])
def test_the_decision_is_the_one_on_the_way_of_the_greedy_tour(kind: str, tmp_path: Path) -> None:
    run = run_of(kind)
    a, coords = measured(run, tmp_path), dataset_coordinates(DATASET)
    np.testing.assert_array_equal(a["coords"], coords[0])
    np.testing.assert_array_equal(a["tours"][0], multi_start(TSP, small(run), coords, 1)[0])
    np.testing.assert_array_equal(a["tours"][a["lengths"].argmin()], multi_start(TSP, small(run), coords)[0])
    closed = a["tours"][:, [*range(N), 0]]
    np.testing.assert_allclose(
        a["lengths"], np.linalg.norm(np.diff(coords[0][closed].astype(float), axis=1), axis=2).sum(1), rtol=1e-6
    )
    np.testing.assert_array_equal(a["visited"], a["tours"][0, :DECISION])
    assert np.isnan(a["logits"][a["visited"]]).all()
    left = np.setdiff1d(np.arange(N), a["visited"])
    np.testing.assert_allclose(a["probabilities"][left], softmax(a["logits"][left]), rtol=1e-5)
    assert int(np.nanargmax(a["probabilities"])) == a["tours"][0, DECISION]
    assert "sizes" not in a  # of no optimal tours


def test_fits_and_bias_make_the_logits_of_icam(tmp_path: Path) -> None:
    run = run_of()
    a, w = measured(run, tmp_path), weights(run_of())
    left = np.setdiff1d(np.arange(N), a["visited"])
    np.testing.assert_allclose(
        a["logits"][left], a["clipping"] * np.tanh(a["fits"] + a["bias"])[left], rtol=1e-4, atol=1e-4
    )
    distances = pairwise_distances(a["coords"])[a["visited"][-1]]
    np.testing.assert_allclose(a["bias"], -w["compatibility_alpha"] * math.log2(N) * distances, atol=1e-5)
    expected = np.zeros(N)
    expected[left] = softmax(-w["alpha"] * math.log2(N) * distances[left])
    np.testing.assert_allclose(a["decoder_weights"], expected, atol=1e-6)


def test_attention_of_pomo_makes_its_logits(tmp_path: Path) -> None:
    """By the paper's formulas in float64, from the encoded nodes on."""
    run = run_of("pomo:Pomo")
    a, w, net = measured(run, tmp_path), weights(run), small(run)
    assert a["attention"].shape == (HEADS, N)
    np.testing.assert_allclose(a["attention"].sum(1), 1, rtol=1e-5)
    assert not a["attention"][:, a["visited"]].any()
    with torch.inference_mode():
        h = net.encode(torch.from_numpy(a["coords"])[None])[0].double().numpy()
    first, last = np.split(w["context.ends.weight"], 2)
    query = h[a["visited"][0]] @ first.T + h[a["visited"][-1]] @ last.T
    keys, values = (h @ part.T for part in np.split(w["key_value.weight"], 2))
    left, d = np.setdiff1d(np.arange(N), a["visited"]), WIDTH // HEADS
    heads = [slice(i * d, (i + 1) * d) for i in range(HEADS)]
    looks = np.zeros((HEADS, N))
    for i, mine in enumerate(heads):
        looks[i, left] = softmax(keys[left, mine] @ query[mine] / math.sqrt(d))
    np.testing.assert_allclose(a["attention"], looks, atol=1e-5)
    seen = np.concatenate([looks[i] @ values[:, mine] for i, mine in enumerate(heads)])
    fits = h @ (w["combine.weight"] @ seen + w["combine.bias"]) / math.sqrt(WIDTH)
    np.testing.assert_allclose(a["logits"][left], a["clipping"] * np.tanh(fits)[left], atol=1e-4)


# -- inside ICAM ----------------------------------------------------------------------------------------------------


def test_every_term_of_the_module_is_the_live_layers(tmp_path: Path) -> None:
    run = run_of()
    a, w = measured(run, tmp_path), weights(run)
    np.testing.assert_allclose(a["layer_alphas"], [w[f"layers.{i}.alpha"] for i in range(3)])
    assert a["decoder_alpha"] == w["alpha"]
    assert a["compatibility_alpha"] == w["compatibility_alpha"]
    assert a["log_n"] == math.log2(N)
    x = a["coords"].astype(float) @ w["embed.weight"].T + w["embed.bias"]
    for name, part in zip(("query", "key", "value"), np.split(w["layers.0.qkv.weight"], 3), strict=True):
        np.testing.assert_allclose(a[name], x @ part.T, atol=1e-5)
    bias = -w["layers.0.alpha"] * math.log2(N) * pairwise_distances(a["coords"])
    np.testing.assert_allclose(a["adaptation"], bias, atol=1e-5)
    q, k, v = (a[name].astype(float) for name in ("query", "key", "value"))
    ratio = (np.exp(bias) @ (np.exp(k) * v)) / (np.exp(bias) @ np.exp(k))
    np.testing.assert_allclose(a["numerator"] / a["denominator"], ratio, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(a["output"], ratio / (1 + np.exp(-q)), rtol=1e-4, atol=1e-6)


# -- what is chosen -------------------------------------------------------------------------------------------------


def by_hand(coords: np.ndarray, tours: np.ndarray) -> tuple[list[float], list[int], np.ndarray]:
    distances, ranks, between = [], [], []
    for place, tour in zip(coords, tours, strict=True):
        d = pairwise_distances(place)
        between.append(d)
        for k in range(len(tour) - 2):
            here, chosen, left = tour[k], tour[k + 1], tour[k + 2 :]
            distances.append(d[here, chosen])
            ranks.append(1 + sum(d[here, node] < d[here, chosen] for node in left))
    return distances, ranks, np.array(between)


def test_choices_are_counted_as_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, n, count = np.random.default_rng(0), 30, 7
    coords, tours = rng.random((count, n, 2), np.float32), np.stack([rng.permutation(n) for _ in range(count)])
    distances, ranks, between = by_hand(coords, tours)
    for pairs in (1 << 24, 2 * n * n):  # all at once, and in parts of which the last is smaller
        monkeypatch.setattr("neuroute.pipeline.papers.icam.probe.PAIRS", pairs)
        found = selections(torch.from_numpy(coords), torch.from_numpy(tours), "n")
        np.testing.assert_allclose(found["quantiles_n"], np.quantile(distances, LEVELS), rtol=1e-6)
        counts = np.bincount(ranks, minlength=n + 1)
        assert found["ranks_n"].tolist() == [*counts[1:RANKS], counts[RANKS:].sum()]
        assert counts[RANKS:].sum() > 1
        assert found["radius_n"] == pytest.approx(np.quantile(distances, 0.95))
        assert found["within_n"] == pytest.approx((between <= found["radius_n"]).sum() / count / n - 1)


def test_optimal_tours_and_the_models_own_are_told_pairwise_distances(tmp_path: Path) -> None:
    for labels in OPTIMAL:
        make_labels(labels, tmp_path / "labels", [], workers=1)
    run = run_of()
    a = measured(run, tmp_path, optimal=OPTIMAL)
    assert (a["sizes"].tolist(), a["counts"].tolist(), a["solved"].tolist()) == ([9, 25], [4, 4], [4, 4])
    assert a["solvers"].tolist() == ["nearest"] * 2
    assert SOLVED >= 4
    for labels in OPTIMAL:
        n, coords = labels.dataset.n, dataset_coordinates(labels.dataset)
        tours = load_tours(labels, [tmp_path / "labels"])
        np.testing.assert_array_equal(a[f"coords_{n}"], coords[0])
        np.testing.assert_array_equal(a[f"tour_{n}"], tours[0])
        own = multi_start(TSP, small(run), coords, 1)
        for name, chosen in (("optimal", tours.astype(int)), ("model", own.numpy())):
            distances, ranks, _ = by_hand(coords, chosen)
            np.testing.assert_allclose(a[f"quantiles_{n}_{name}"], np.quantile(distances, LEVELS), rtol=1e-6)
            counts = np.bincount(np.minimum(ranks, RANKS), minlength=RANKS + 1)[1:]
            np.testing.assert_array_equal(a[f"ranks_{n}_{name}"], counts)


def test_the_models_tours_are_of_few_instances_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neuroute.pipeline.papers.icam.probe.SOLVED", 2)
    make_labels(OPTIMAL[0], tmp_path / "labels", [], workers=1)
    a = measured(run_of(), tmp_path, optimal=OPTIMAL[:1])
    assert a["solved"].tolist() == [2]
    assert (a["ranks_9_model"].sum(), a["ranks_9_optimal"].sum()) == (2 * 7, 4 * 7)
