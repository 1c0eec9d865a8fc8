"""Records of the 16 VRPs: networks' own rules, references that keep to them, Set X and Solomon's instances."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from untrained import decoded, evaluated, on_benchmark, ready, run_of

from neuroute.api.files import load
from neuroute.core.errors import NeurouteError
from neuroute.datasets.benchmarks import optimum_of, published_instances, survey
from neuroute.datasets.problem_specs import VRP
from neuroute.datasets.streams import vrp_dataset
from neuroute.decoding.decode import decode
from neuroute.evaluation import flops, labelled
from neuroute.networks.weights import parameters
from neuroute.problems.instances.instance import Instance
from neuroute.problems.instances.tsplib import parse
from neuroute.problems.vrp import Vrp, from_routes, lengths, valid
from neuroute.solvers.nearest import vrp_solutions
from neuroute.specs.objects import ConstructionEvaluation, Dataset, Decoding, Labels, Network

N, COUNT = 10, 4
ARGUMENTS: dict[str, Any] = {"depth": 1, "width": 16, "heads": 2, "feed_forward": 16, "experts": 0}
SOLOMON = ("R101", "R102", "RC101", "RC201")  # R102 and RC201 come with the package
NETWORK = Network(kind="neuroute.networks.mvmoe:MvMoe", arguments=ARGUMENTS)
SETS = [Dataset(problem="vrp", variant=name, n=N, count=COUNT, capacity=14) for name in ("VRPB", "OVRPLTW")]
LABELS = [Labels(dataset=dataset, solver="ortools") for dataset in SETS]
RUN = run_of(NETWORK, LABELS[0], "mvmoe/x")
X8, MULTI = Decoding(starts="all", augment=True), Decoding(starts="all")
LIMITS: dict[str, Any] = {"max_nodes": 102, "decodings": (MULTI,)}


def references(dataset: Dataset) -> np.ndarray:
    """Solutions by the networks' rules, but for every other instance with backhauls, where vehicles leave with less."""
    instances = vrp_dataset(dataset)
    found = vrp_solutions(instances)
    if dataset.variant == "VRPB":
        for row in range(0, COUNT, 2):
            pick_ups = [c for c in range(1, N + 1) if instances.demand[row, c] < 0]
            others = [c for c in range(1, N + 1) if instances.demand[row, c] > 0]
            # A route of its own for each, but for one pick-up before a delivery of no more goods than fit with it.
            routes = [[pick_ups[0], others[0]], *([c] for c in (*pick_ups[1:], *others[1:]))]
            found[row] = from_routes(routes)
    return found


# -- labelled test sets -----------------------------------------------------------------------------------------------


def test_gaps_are_against_references_of_which_some_keep_to_the_networks_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = ready(NETWORK)
    monkeypatch.setattr(labelled, "load_tours", lambda labels, _: references(labels.dataset))
    tests = [(labels, how) for labels in LABELS for how in (X8, Decoding(starts=2))]
    records, arrays = evaluated(tmp_path, decoded(RUN, *tests), RUN)
    for labels, how in tests:
        dataset, instances = labels.dataset, vrp_dataset(labels.dataset)
        own = lengths(instances, decode("vrp", net, instances, how).numpy())
        reference = lengths(instances, references(dataset))
        of_test = (records.test == dataset.id) & (records.decoding == how.name)
        values = records[of_test].set_index("metric").value
        assert values["gap_mean_of_ratios_pct"] == pytest.approx(100 * np.mean(own / reference - 1))
        assert values["length"] == pytest.approx(own.mean())
        np.testing.assert_allclose(arrays[f"{dataset.id}|{how.name}"], own)
        kept = [False, True] * 2 if dataset.variant == "VRPB" else [True] * 4
        np.testing.assert_array_equal(arrays[f"{dataset.id}|reference_feasible"], kept)
        assert values["reference_feasible_pct"] == 100 * np.mean(kept)
        places = N - 2 if dataset.variant == "VRPB" else N  # a fifth are pick-ups
        tours, images = (8 * places, 8) if how == X8 else (2, 1)
        expected = flops.per_solution(NETWORK, N + 1, tours, images, shrinks=False)["gflops_shrinking"]
        assert values["gflops_shrinking"] == pytest.approx(expected)


def test_what_only_labels_may_do_is_no_solution_of_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = SETS[0]
    instances, bad = vrp_dataset(dataset), references(dataset)
    assert VRP.valid(instances, bad).all()
    assert valid(instances, bad).tolist() == [False, True, False, True]
    monkeypatch.setattr(labelled, "load_tours", lambda labels, _: bad)
    monkeypatch.setattr(labelled, "decode_instances", lambda *_: (torch.from_numpy(bad), 0.0))
    with pytest.raises(NeurouteError, match="multistart returned no feasible solution"):
        evaluated(tmp_path, decoded(RUN, (LABELS[0], MULTI)), RUN)


def test_construction_times_each_instance_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    net, clock = ready(NETWORK), iter(range(1000))
    monkeypatch.setattr(labelled, "time", SimpleNamespace(perf_counter=lambda: float(next(clock) ** 2)))
    records, arrays = evaluated(tmp_path, ConstructionEvaluation(run=RUN.id, datasets=tuple(SETS), decoding=MULTI), RUN)
    assert len(arrays) == 4
    ticks = np.array([2 * i + 1 for i in range(0, 4 * COUNT, 2)]).reshape(2, COUNT)  # (i + 1)^2 - i^2
    for dataset, seconds in zip(SETS, ticks, strict=True):
        batch = vrp_dataset(dataset)
        ones = [batch[i : i + 1] for i in range(COUNT)]
        own = [lengths(one, decode("vrp", net, one, MULTI).numpy())[0] for one in ones]
        np.testing.assert_allclose(arrays[f"{dataset.id}|multistart"], own)
        np.testing.assert_array_equal(arrays[f"{dataset.id}|seconds"], seconds)
        values = records[records.test == dataset.id].set_index("metric").value
        assert values["time_s"] == seconds.mean()
        assert values["length"] == pytest.approx(np.mean(own))
        assert values["parameters"] == parameters(net)
    about = ["batch_size", "group", "decoding", "n_instances"]
    assert records[about].drop_duplicates().values.tolist() == [[1, "construction", "multistart", COUNT]]


# -- Set X ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("largest", "per_axis", "divided"), [(1000, False, True), (1000, True, False), (100, False, False)]
)
def test_instances_on_set_x_s_grid_are_divided_by_it(largest: int, per_axis: bool, divided: bool) -> None:
    coords = np.array([[10, 20], [largest, 30], [50, 0.9 * largest]], dtype=float)
    instance = Instance("x", coords, np.array([0, 2, 3]), 4, distances="EUC_2D", library="cvrplib")
    seen, cvrp = instance.inputs("vrp", per_axis), instance.inputs("cvrp", per_axis)
    assert isinstance(seen, Vrp)
    assert (seen.variant, seen.capacity.tolist(), seen.demand.tolist()) == ("CVRP", [4], [[0, 2, 3]])
    expected = (coords / 1000).astype(np.float32) if divided else cvrp.coords[0]
    np.testing.assert_array_equal(seen.coords[0], expected)
    assert seen.coords.dtype == np.float32


# -- Solomon ----------------------------------------------------------------------------------------------------------

HEAD = "T1\nVEHICLE\nNUMBER CAPACITY\n 25 20\nCUSTOMER\n"
ROWS = "0 0 0 0 0 123 0\n1 30 40 10 0 55 5\n2 30 41 10 0 90 5\n3 -7 0 10 0 90 5\n"


def instance() -> Instance:
    return parse(HEAD + ROWS, "t1.txt", "t1")


def test_routes_of_solomon_s_are_measured_in_both_ways_and_refused_when_late() -> None:
    one = instance()
    solution = from_routes([[1, 2], [3]])
    assert one.length(solution, False, "network") == pytest.approx(50 + 1 + np.hypot(30, 41) + 14)
    assert one.length(solution, True, "network") == pytest.approx(50 + 1 + 50.8 + 14)
    for routes, why in (([[2, 1], [3]], "customer 1: reached at 5[67]"), ([[1, 2, 3]], "more than what is left")):
        with pytest.raises(NeurouteError, match=f"T1: route 1, .*{why}"):
            one.length(routes, False, "network")
    seen = one.inputs()
    assert (seen.variant, one.scale) == ("VRPTW", 41.0)
    np.testing.assert_allclose(seen.coords[0] * 41, one.coords, rtol=1e-6)
    with pytest.raises(NeurouteError, match="`per_axis`"):
        one.inputs(per_axis=True)


def test_solomon_s_files_are_known_by_their_content(public: Callable[[str], Path]) -> None:
    assert {k.set for k in published_instances("solomon").values()} == {"R1", "RC1", "RC2"}
    assert len(published_instances("solomon")) == 28
    folder = public("benchmarks/solomon")
    assert survey(folder.parent, "solomon") == {}
    one = load(folder / "R101.txt")
    assert optimum_of(one, "solomon") == published_instances("solomon")["R101"].optimum == 1637.7
    text = (folder / "R101.txt").read_text().replace("    1          41 ", "    1          42 ")
    assert optimum_of(parse(text, "R101", "R101"), "solomon") is None


def test_solomon_s_instances_are_solved_within_their_windows(tmp_path: Path, public: Callable[[str], Path]) -> None:
    net, folder = ready(NETWORK), public("benchmarks")
    records, arrays = on_benchmark(tmp_path, folder, "solomon", SOLOMON, RUN, **LIMITS)
    assert list(dict.fromkeys(records.test)) == [f"solomon_{name}" for name in SOLOMON]
    one = load(folder / "solomon" / "R101.txt")
    solution = decode("vrp", net, one.inputs(), MULTI)[0].numpy()
    values = records[records.test == "solomon_R101"].set_index("metric").value
    assert values["gap_pct"] == pytest.approx(100 * (one.cost(solution) / 1637.7 - 1))
    assert values["gap_rounded_pct"] == pytest.approx(100 * (one.length(solution) / 1637.7 - 1))
    assert values["gap_rounded_pct"] < values["gap_pct"]
    assert arrays["optima"].tolist() == [published_instances("solomon")[name].optimum for name in SOLOMON]
