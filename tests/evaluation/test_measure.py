"""An evaluation's records: right numbers, whole files, and refusals."""

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from untrained import Arrays, decoded, evaluated, ready, run_of

from neuroute.api.published import import_test_set
from neuroute.core.device import memory_budget_gb
from neuroute.core.errors import NeurouteError
from neuroute.datasets.labels import make_labels
from neuroute.datasets.problem_spec import spec_of
from neuroute.datasets.store import load_tours
from neuroute.datasets.streams import dataset_coordinates
from neuroute.decoding.decode import decode, instances_per_batch
from neuroute.evaluation import flops
from neuroute.evaluation.flops import counts
from neuroute.networks.weights import weights_digest
from neuroute.problems.tsp import tour_length
from neuroute.specs.objects import Dataset, Decoding, Evaluation, Labels, Network, Run

LABELS = Labels(dataset=Dataset(n=9, count=12), solver="concorde")
ARGUMENTS = {"depth": 2, "width": 8, "heads": 2, "gate": True, "rezero": True, "train_nodes": 9}
NETWORK = Network(kind="neuroute.networks.decoder_only:DecoderOnly", arguments=ARGUMENTS)
RUN = run_of(NETWORK, LABELS)
DECODINGS = (Decoding(), Decoding(method="beam", beam=3))
CPU = torch.device("cpu")
EVALUATION = decoded(RUN, *((LABELS, decoding) for decoding in DECODINGS))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    make_labels(LABELS, tmp_path / "labels", [], workers=1)
    return tmp_path


def run_measure(
    folder: Path, evaluation: Evaluation = EVALUATION, run: Run = RUN, net: Any = None, **changes: Any
) -> tuple[pd.DataFrame, Arrays]:
    return evaluated(folder, evaluation, run, net, label_dirs=[folder / "labels"], **changes)


def test_gaps_are_ratios_of_means_and_lengths_are_kept(store: Path, caplog: pytest.LogCaptureFixture) -> None:
    """And the log tells of each test."""
    with caplog.at_level(logging.INFO):
        records, lengths = run_measure(store)
    coords = dataset_coordinates(LABELS.dataset)
    reference = tour_length(coords, load_tours(LABELS, [store / "labels"]))
    net = ready(NETWORK)
    for decoding in DECODINGS:
        own = tour_length(coords, decode("tsp", net, torch.from_numpy(coords), decoding).numpy())
        rows = records[records.decoding == decoding.name].set_index("metric")
        assert rows.value["gap_pct"] == pytest.approx(100 * (own.mean() / reference.mean() - 1))
        assert rows.value["gap_mean_of_ratios_pct"] == pytest.approx(100 * np.mean(own / reference - 1))
        assert f"{LABELS.dataset.id}, {decoding.name}: gap {rows.value['gap_pct']:.2f} %" in caplog.text
        assert rows.value["length"] == pytest.approx(own.mean())
        assert rows.value["parameters"] == sum(p.numel() for p in net.parameters())
        np.testing.assert_array_equal(lengths[f"{LABELS.dataset.id}|{decoding.name}"], own)
        np.testing.assert_array_equal(lengths[f"{LABELS.dataset.id}|reference"], reference)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_refused(store: Path, value: float) -> None:
    net = ready(NETWORK)
    with torch.no_grad():
        next(net.parameters()).flatten()[0] = value
    with pytest.raises(NeurouteError, match="not finite"):
        run_measure(store, net=net)
    assert not list((store / "out").glob("*.csv"))


def test_weights_are_those_that_the_training_stated(store: Path) -> None:
    (store / "run.json").write_text(json.dumps({"weights_sha256": weights_digest(ready(NETWORK))}))
    run_measure(store)
    with pytest.raises(NeurouteError, match="differ from run.json"):
        run_measure(store, net=ready(NETWORK, seed=1))
    (store / "run.json").write_text("{}")  # as trainings left it before they stated a digest
    run_measure(store, net=ready(NETWORK, seed=1))


def test_nothing_is_shorter_than_a_proven_optimum(store: Path) -> None:
    file = store / "labels" / LABELS.shard_file(0)
    np.save(file, np.roll(np.load(file), 1, axis=0))  # tours of the wrong instances: each is longer than its optimum
    beam = decoded(RUN, (LABELS, Decoding(method="beam", beam=64)))
    with pytest.raises(NeurouteError, match=f"{LABELS.id}, instance .* below its proven optimum"):
        run_measure(store, beam)
    assert not list((store / "out").glob("*.csv"))


def test_other_code_and_missing_labels_are_refused(store: Path) -> None:
    with pytest.raises(NeurouteError, match="another version of the network"):
        run_measure(store, network_code="other")
    for file in (store / "labels").glob("*.npy"):
        file.unlink()
    with pytest.raises(NeurouteError, match="neuroute label"):
        run_measure(store)
    assert not list((store / "out").glob("*.csv"))


def test_milestones_of_reconstruction_are_records_of_their_own(store: Path) -> None:
    """One run to the last milestone gives what separate runs of each budget give, greedy included."""
    rrc = Decoding(method="rrc", iterations=6, milestones=(0, 2, 6))
    records, lengths = run_measure(store, decoded(RUN, (LABELS, rrc)))
    assert list(records.decoding.unique()) == ["greedy", "rrc2", "rrc6"]
    coords = torch.from_numpy(dataset_coordinates(LABELS.dataset))
    net = ready(NETWORK)
    for iterations, name in ((0, "greedy"), (2, "rrc2"), (6, "rrc6")):
        decoding = Decoding(method="rrc", iterations=iterations)
        own = tour_length(coords.numpy(), decode("tsp", net, coords, decoding).numpy())
        np.testing.assert_array_equal(lengths[f"{LABELS.dataset.id}|{name}"], own)
    times = records[records.metric == "time_s"].value
    assert times.is_monotonic_increasing


SHAPE = {"depth": 1, "width": 8, "feed_forward": 8, "train_nodes": 9}
MANY = (Decoding(), Decoding(starts="all"), Decoding(starts="all", augment=True))


@pytest.mark.parametrize("problem", ["tsp", "cvrp"])
def test_many_starts_are_measured_and_counted(tmp_path: Path, problem: Any) -> None:
    labels = Labels(dataset=Dataset(problem=problem, n=9, count=5), solver="nearest")
    make_labels(labels, tmp_path / "labels", [], workers=1)
    kind = "neuroute.networks.icam:Icam" if problem == "tsp" else "neuroute.networks.icam:IcamCvrp"
    network = Network(kind=kind, arguments=SHAPE)
    run = RUN.model_copy(update={"network": network, "data": (labels,), "validation": labels})
    net = ready(network)
    decodings = MANY
    if problem == "tsp":
        beam = Decoding(method="beam", beam=2)
        decodings += (Decoding(method="rrc", iterations=3), beam, beam.model_copy(update={"starts": "all"}))
    records, _ = run_measure(tmp_path, decoded(run, *((labels, decoding) for decoding in decodings)), run)
    kind_, c, nodes = spec_of(labels), counts(network), labels.dataset.nodes
    instances = kind_.instances(labels.dataset)
    for decoding in decodings:
        found = decode(problem, net, instances, decoding).numpy()
        rows = records[records.decoding == decoding.name].set_index("metric")
        assert rows.value["length"] == pytest.approx(kind_.lengths(instances, found).mean())
        assert set(rows.batch_size) == {instances_per_batch(net, 9, decoding, memory_budget_gb(CPU, None))}
    for decoding, tours, images in zip(MANY, (1, 9, 72), (1, 1, 8), strict=True):
        values = records[records.decoding == decoding.name].set_index("metric").value
        by_hand = images * c.encoder(nodes) + tours * (nodes - 2) * c.decision(nodes + 1)
        assert values["gflops_shrinking"] == pytest.approx(by_hand / 1e9)
        assert values["gflops_paper"] == pytest.approx(values["gflops_shrinking"] + tours * c.decision(nodes + 1) / 1e9)
    for decoding in decodings[4:]:  # beams search from each start
        values = records[records.decoding == decoding.name].set_index("metric").value
        one = flops.per_solution(network, nodes, 2 * (9 if decoding.starts == "all" else 1))
        assert values["gflops_shrinking"] == pytest.approx(one["gflops_shrinking"])
    assert list(records.decoding.unique()[:3]) == ["greedy", "multistart", "multistart-x8"]


def test_gaps_are_against_the_published_solutions_of_each_instance(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    coords, tours = rng.random((5, 9, 2)), np.stack([rng.permutation(9) for _ in range(5)])
    np.savez(tmp_path / "mine.npz", coords=coords, tour=tours, length=tour_length(coords, tours))
    dataset = Dataset(n=9, count=4, file=str(tmp_path / "kept_mine.npz"))  # the first of them
    labels = Labels(dataset=dataset, solver="published")
    import_test_set(labels, tmp_path / "mine.npz", tmp_path)
    run = run_of(NETWORK, labels)
    records, arrays = evaluated(tmp_path, decoded(run, (labels, Decoding())), run, label_dirs=[tmp_path])
    own, reference = arrays[f"{dataset.id}|greedy"], arrays[f"{dataset.id}|reference"]
    np.testing.assert_allclose(reference, tour_length(coords, tours)[:4], rtol=1e-6)
    values = records.set_index("metric").value
    assert values["gap_mean_of_ratios_pct"] == pytest.approx(100 * (own / reference - 1).mean())
    assert values["gap_pct"] == pytest.approx(100 * (own.mean() / reference.mean() - 1))
    assert set(records.reference) == {"published"}
    assert set(records.test) == {"kept_mine_c4"}
