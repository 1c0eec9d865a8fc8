"""Records on TSPLIB and CVRPLIB: each instance against its published optimum or best cost, by both distances."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from untrained import Arrays, evaluated, on_benchmark, ready, run_of

from neuroute.api.files import load
from neuroute.core.errors import NeurouteError
from neuroute.datasets.benchmarks import published_instances, write_manifest
from neuroute.decoding.decode import decode
from neuroute.problems.instances.instance import Instance
from neuroute.problems.vrp import Vrp, to_routes
from neuroute.specs.objects import BenchmarkEvaluation, Dataset, Decoding, Labels, Network

ARGUMENTS = {"depth": 2, "width": 8, "heads": 2, "train_nodes": 20}
NETWORK = Network(kind="neuroute.networks.decoder_only:DecoderOnly", arguments=ARGUMENTS)
LABELS = Labels(dataset=Dataset(n=20, count=1), solver="concorde")
RUN = run_of(NETWORK, LABELS)
EVALUATION = BenchmarkEvaluation(run=RUN.id, max_nodes=70)


@pytest.fixture
def tsplib(public: Callable[[str], Path]) -> Path:
    return public("benchmarks/tsplib")


def measured(tmp_path: Path, folder: Path, evaluation: BenchmarkEvaluation = EVALUATION) -> tuple[pd.DataFrame, Arrays]:
    write_manifest(tmp_path / "tsplib.json", folder, {})
    return evaluated(tmp_path, evaluation, RUN, benchmarks={"tsplib": tmp_path / "tsplib.json"})


def test_each_instance_is_measured_against_its_optimum(tmp_path: Path, tsplib: Path) -> None:
    records, arrays = measured(tmp_path, tsplib)
    assert list(dict.fromkeys(records.test)) == ["tsplib_eil51", "tsplib_berlin52"]  # below 70 nodes, smallest first
    net = ready(NETWORK)
    unrounded = []
    for name in ("eil51", "berlin52"):
        instance, optimum = load(tsplib / f"{name}.tsp"), published_instances()[name].optimum
        tour = decode("tsp", net, instance.inputs(), EVALUATION.decodings[0])[0].numpy()
        values = records[records.test == f"tsplib_{name}"].set_index("metric").value
        unrounded.append(instance.length(tour, rounded=False))
        assert values["length"] == pytest.approx(unrounded[-1])
        assert values["gap_pct"] == pytest.approx(100 * (unrounded[-1] / optimum - 1))
        assert values["gap_rounded_pct"] == pytest.approx(100 * (instance.length(tour) / optimum - 1))
        assert values["time_s"] > 0
    assert set(records.n) == {51, 52}
    assert set(records.distribution) == {"tsplib"}
    assert set(records.n_instances) == {1}
    assert arrays["names"].tolist() == ["eil51", "berlin52"]
    assert arrays["optima"].tolist() == [426, 7542]
    np.testing.assert_allclose(arrays["greedy"], unrounded)


def test_searches_take_what_sub_paths_an_instance_has(tmp_path: Path, tsplib: Path) -> None:
    """Of eil51 and berlin52 at most 52 stops is at most 51 and 52; both go by the same name."""
    search = Decoding(method="rrc", iterations=3, longest=52)
    evaluation = EVALUATION.model_copy(update={"decodings": (search, search.model_copy(update={"method": "prc"}))})
    records, arrays = measured(tmp_path, tsplib, evaluation)
    assert list(records.decoding.unique()) == ["rrc3-l52", "prc3-l52"]
    assert [len(arrays[name]) for name in ("rrc3-l52", "prc3-l52")] == [2, 2]


def test_without_a_manifest_the_packages_instances_are_measured(tmp_path: Path) -> None:
    """As on a machine without a network; of those that are named, in the range of nodes."""
    evaluation = EVALUATION.model_copy(update={"names": ("eil51", "st70", "eil101"), "max_nodes": 71})
    records, arrays = evaluated(tmp_path, evaluation, RUN)
    assert list(dict.fromkeys(records.test)) == ["tsplib_eil51", "tsplib_st70"]
    assert arrays["optima"].tolist() == [426, 675]


def test_a_file_that_vanished_is_one_line_and_no_records(tmp_path: Path) -> None:
    with pytest.raises(NeurouteError, match="eil51.tsp: no such file; `neuroute fetch tsplib` gets it"):
        measured(tmp_path, tmp_path)
    assert not list((tmp_path / "out").glob("*.csv"))


# -- CVRPLIB --------------------------------------------------------------------------------------------------

CVRP_LABELS = Labels(dataset=Dataset(problem="cvrp", n=20, count=1), solver="hgs")
VRP_LABELS = Labels(dataset=Dataset(problem="vrp", variant="CVRP", n=20, count=1), solver="ortools")
NAMES, OPTIMA = ("X-n101-k25", "X-n106-k14"), (27591, 26362)
PRC = Decoding(method="prc", iterations=2, start="insertion-published")
BY_STEPS = PRC.model_copy(update={"milestones": (0, 2)})
STARTS, MULTI = Decoding(starts=5, augment=True), Decoding(starts="all")


def unit_square(coords: np.ndarray, per_axis: bool) -> np.ndarray:
    """Depot and customers alike; by one factor, or each axis by itself."""
    low, high = (coords.min(0), coords.max(0)) if per_axis else (coords.min(), coords.max())
    return ((coords - low) / (high - low)).astype(np.float32)


@pytest.mark.parametrize(
    ("kind", "more", "decodings", "separate", "per_axis"),
    [
        (
            "sit:SitCvrp",
            {"heads": 2},
            (Decoding(), BY_STEPS),
            (Decoding(), PRC.model_copy(update={"iterations": 0}), PRC),
            False,
        ),
        ("icam:IcamCvrp", {}, (Decoding(), STARTS), (Decoding(), STARTS), True),
        ("mvmoe:MvMoe", {"heads": 2, "experts": 0}, (MULTI,), (MULTI,), False),
    ],
)
def test_cvrplib_is_measured_in_its_own_units_by_every_decoding(
    tmp_path: Path,
    public: Callable[[str], Path],
    kind: str,
    more: dict[str, int],
    decodings: tuple[Decoding, ...],
    separate: tuple[Decoding, ...],
    per_axis: bool,
) -> None:
    """Of a search by steps each step, of many starts and images the best; costs by the file's own coordinates."""
    folder = public("benchmarks/cvrplib_x").parent
    arguments = {"depth": 1, "width": 16, "feed_forward": 16, "train_nodes": 20, **more}
    network = Network(kind=f"neuroute.networks.{kind}", arguments=arguments)
    net = ready(network)
    run = run_of(network, VRP_LABELS if net.problem == "vrp" else CVRP_LABELS)
    how = {"min_nodes": 101, "max_nodes": 107, "decodings": decodings, "per_axis": per_axis}
    records, arrays = on_benchmark(tmp_path, folder, "cvrplib", NAMES, run, **how)
    assert list(records.decoding.unique()) == [d.name for d in separate]
    assert list(records.test.unique()) == [f"cvrplib_{name}" for name in NAMES]
    assert set(records.n) == {101, 106}  # with the depot
    assert (arrays["names"].tolist(), arrays["optima"].tolist()) == ([*NAMES], [*OPTIMA])
    for i, (name, best) in enumerate(zip(NAMES, OPTIMA, strict=True)):
        instance = load(folder / "cvrplib_x" / f"{name}.vrp")
        on_grid = net.problem == "vrp"  # which Set X's is divided by for networks of the 16 problems
        square = (instance.coords / 1000).astype(np.float32) if on_grid else unit_square(instance.coords, per_axis)
        assert np.allclose(square, instance.inputs(net.problem).coords[0]) != per_axis
        inputs = Vrp(square[None], instance.demand[None], np.array([instance.capacity]))
        for decoding in separate:
            routes = to_routes(decode(net.problem, net, inputs, decoding)[0].numpy())
            instance.check(routes, name)
            of_test = (records.test == f"cvrplib_{name}") & (records.decoding == decoding.name)
            values = records[of_test].set_index("metric").value
            cost = instance.length(routes, rounded=False)
            assert values["length"] == pytest.approx(cost)
            assert arrays[decoding.name][i] == pytest.approx(cost)
            assert values["gap_pct"] == pytest.approx(100 * (cost / best - 1))
            assert values["gap_rounded_pct"] == pytest.approx(100 * (instance.cost(routes) / best - 1))
            assert values["gap_rounded_pct"] >= 0
    if BY_STEPS in decodings:
        assert (arrays["prc2-insertion-published"] <= arrays["insertion-published"]).all()


def test_axes_are_scaled_together_or_each_by_itself() -> None:
    coords = np.array([[10.0, 5.0], [30.0, 5.5], [20.0, 7.0]])
    instance = Instance("x", coords, np.array([0, 1, 1]), 2, distances="EUC_2D", library="cvrplib")
    together, apart = (instance.inputs(per_axis=each).coords[0] for each in (False, True))
    np.testing.assert_allclose(apart, [[0, 0], [1, 0.25], [0.5, 1]])
    assert apart.dtype == together.dtype == np.float32
    on_a_line = Instance("x", coords * [1, 0], np.array([0, 1, 1]), 2, distances="EUC_2D", library="cvrplib")
    np.testing.assert_allclose(on_a_line.inputs(per_axis=True).coords[0], [[0, 0], [1, 0], [0.5, 0]])
