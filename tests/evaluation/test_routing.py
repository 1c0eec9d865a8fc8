"""Where MVMoE's gates send nodes: counts that add up, choices by hand, and routes that are the network's own."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from untrained import Arrays, looked_into, ready, softmax, tiny_run

from neuroute.datasets.streams import vrp_dataset
from neuroute.decoding.multi_start import multi_start
from neuroute.decoding.vrp import VRP
from neuroute.pipeline.papers.mvmoe.paper import RoutingEvaluation
from neuroute.problems.vrp import SWITCHES, Vrp, canonical, lengths, number_of_starts
from neuroute.specs.objects import Dataset, Labels, Run

N, EXPERTS, TOP, STEPS, COUNT, DEPTH = 9, 4, 2, 30, 3, 2
DATASETS = tuple(
    Dataset(problem="vrp", variant=name, split="val", n=N, count=COUNT, capacity=14) for name in ("CVRP", "OVRPBLTW")
)
LABELS = Labels(dataset=DATASETS[0], solver="ortools")


def run_of(**arguments: Any) -> Run:
    shape = {"depth": DEPTH, "width": 16, "heads": 2, "feed_forward": 24, "experts": EXPERTS, "top": TOP}
    return tiny_run("mvmoe", "mvmoe:MvMoe", LABELS, **{**shape, **arguments})


def small(run: Run) -> Any:
    """Gates that tell tokens apart, which at first they do not."""
    net = ready(run.network)
    for name, parameter in net.named_parameters():
        if "gate" in name:
            parameter.data.normal_(0.0, 0.5)
    return net


def measured(folder: Path, run: Run, **changes: Any) -> Arrays:
    evaluation = RoutingEvaluation(**{"run": run.id, "datasets": DATASETS, "steps": STEPS, **changes})
    return looked_into(folder, evaluation, run, small(run))


def tours(instances: Vrp) -> int:
    return COUNT * number_of_starts(instances)


@pytest.mark.parametrize("hierarchy", ["none", "step", "episode", "random"])
def test_every_token_is_counted_k_times(hierarchy: str, tmp_path: Path) -> None:
    run = run_of(hierarchy=hierarchy)
    a = measured(tmp_path, run)
    assert a["mixtures"].tolist() == ["enc0", "enc1"]
    assert a["variants"].tolist() == [d.variant for d in DATASETS]
    assert a["encoder_load"].shape == (2, DEPTH, EXPERTS)
    assert (a["encoder_load"].sum(-1) == TOP * COUNT * (N + 1)).all()
    assert len(np.unique(a["encoder_load"])) > 2  # gates that all send alike would pass the sums
    for row, dataset in enumerate(DATASETS):
        all_tours = tours(vrp_dataset(dataset))
        decisions = int(a["decisions"][row])
        with_experts = int(a["sparse_decisions"][row]) if hierarchy != "none" else decisions
        assert a["decoder_load"][row].sum() == TOP * all_tours * with_experts
        assert N - 1 <= decisions < STEPS
        sums = a["step_load"][row].sum(-1)
        ran = a["sparse"][row] == 1 if hierarchy != "none" else np.arange(STEPS) < decisions
        assert (sums[ran] == TOP * all_tours).all()
        assert np.isnan(sums[~ran]).all()
        np.testing.assert_allclose(np.nansum(a["step_load"][row], axis=0), a["decoder_load"][row])
        if hierarchy != "none":
            assert (a["sparse"][row] >= 0).sum() == decisions
            assert np.isfinite(a["sparse_chance"][row]).sum() == decisions
            chances = a["sparse_chance"][row, :decisions]
            assert ((chances > 0) & (chances < 1)).all()
            assert len(np.unique(chances)) == (decisions if hierarchy == "step" else 1)


def test_fewer_steps_are_the_first_ones(tmp_path: Path) -> None:
    run = run_of(hierarchy="step")
    every, first = measured(tmp_path, run), measured(tmp_path, run, steps=4)
    for key in ("step_load", "sparse", "sparse_chance"):
        np.testing.assert_array_equal(first[key], every[key][:, :4])
    for key in ("decoder_load", "decisions", "sparse_decisions"):
        np.testing.assert_array_equal(first[key], every[key])


def test_routes_are_the_networks_best_ones(tmp_path: Path) -> None:
    run = run_of()
    a = measured(tmp_path, run)
    for dataset in DATASETS:
        one, name = vrp_dataset(dataset)[:1], dataset.variant
        solution = np.stack([a[f"order_{name}"], a[f"flags_{name}"]])
        expected = multi_start(VRP, small(run), one).numpy()  # the same routes, of which another may be the first
        np.testing.assert_array_equal(canonical(solution[None]), canonical(expected))
        assert a[f"length_{name}"] == pytest.approx(lengths(one, solution[None])[0])
        np.testing.assert_array_equal(a[f"coords_{name}"], one.coords[0])
        np.testing.assert_array_equal(a[f"demand_{name}"], one.demand[0])
        assert (f"limit_{name}" in a) == SWITCHES[str(name)].limit
        assert (f"windows_{name}" in a) == (f"service_{name}" in a) == SWITCHES[str(name)].windows


def test_the_same_scores_by_nodes_and_by_experts(tmp_path: Path) -> None:
    run = run_of(positions=["enc0", "dec"])
    a, net, one = measured(tmp_path, run), small(run), vrp_dataset(DATASETS[-1])[:1]
    assert (str(a["layer"]), str(a["shown"])) == ("enc0", "OVRPBLTW")
    with torch.inference_mode():
        batch = [torch.from_numpy(one.coords), torch.from_numpy(one.demand / one.capacity[:, None]).float()]
        layer = net.layers[0]
        fed: list[torch.Tensor] = []
        layer.mixture.register_forward_pre_hook(lambda _, given: fed.append(given[0]))
        net.encode(*batch, torch.from_numpy(one.windows))
        scores = (fed[0][0] @ layer.mixture.gate.weight.T).numpy()
    np.testing.assert_allclose(a["scores"], scores, rtol=1e-5, atol=1e-6)
    best = np.argsort(-scores, axis=1)[:, :TOP]
    np.testing.assert_array_equal(a["input_experts"], best)
    np.testing.assert_allclose(a["input_weights"], softmax(np.take_along_axis(scores, best, 1)), rtol=1e-5)
    taken = (N + 1) * TOP // EXPERTS
    nodes = np.argsort(-scores, axis=0)[:taken]
    np.testing.assert_array_equal(a["expert_nodes"], nodes)
    of_nodes = np.take_along_axis(softmax(scores, 0), nodes, 0)
    np.testing.assert_allclose(a["expert_weights"], of_nodes, rtol=1e-5)


@pytest.mark.parametrize("hierarchy", ["none", "step", "random"])
def test_the_decision_is_one_of_the_first_tour(hierarchy: str, tmp_path: Path) -> None:
    a, one = measured(tmp_path, run_of(hierarchy=hierarchy)), vrp_dataset(DATASETS[-1])[:1]
    prefix = a["prefix"]
    assert prefix[0] == 0
    assert prefix[1] == np.flatnonzero(one.demand[0] > 0)[0]
    assert (prefix > 0).sum() == N // 3
    load = one.capacity[0]
    for node in prefix[1:]:
        load = load - one.demand[0, node] if node else one.capacity[0]
    assert a["known"][0] == pytest.approx(load / one.capacity[0])
    assert a["known"][3] == 1  # open
    assert np.isnan(a["logits"][prefix[prefix > 0]]).all()
    left = np.isfinite(a["logits"])
    np.testing.assert_array_equal(left, np.isfinite(a["probabilities"]))
    np.testing.assert_allclose(a["probabilities"][left], softmax(a["logits"][left]), rtol=1e-5)
    tours_of_one = number_of_starts(one)
    assert a["decoder_scores"].shape == (tours_of_one, EXPERTS)
    best = np.argsort(-a["decoder_scores"], axis=1)[:, :TOP]
    np.testing.assert_array_equal(a["decoder_experts"], best)
    chosen = softmax(np.take_along_axis(a["decoder_scores"], best, 1))
    np.testing.assert_allclose(a["decoder_weights"], chosen, rtol=1e-5)
    assert ("gate" in a) == ("gate_scores" in a) == (hierarchy == "step")
    if hierarchy == "step":
        np.testing.assert_allclose(a["gate"], softmax(a["gate_scores"]), rtol=1e-5)
