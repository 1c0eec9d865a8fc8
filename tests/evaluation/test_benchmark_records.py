"""Records on TSPLIB and CVRPLIB: each instance against its published optimum or best cost, by both distances."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from neuroute.core.errors import NeurouteError
from neuroute.datasets.benchmarks import known, library, scaled, write_manifest
from neuroute.datasets.tsplib import read_tsplib
from neuroute.datasets.vrplib import VrplibInstance, read_vrplib
from neuroute.decoding.decode import decode
from neuroute.evaluation.records import COLUMNS
from neuroute.networks.weights import build
from neuroute.plan.objects import BenchmarkEvaluation, Dataset, Decoding, Labels, Network, Run
from neuroute.problems.vrp import Vrp, to_routes
from untrained import evaluated, ready, run_of

ARGUMENTS = {"depth": 2, "width": 8, "heads": 2, "train_nodes": 20}
NETWORK = Network(kind="neuroute.networks.decoder_only:DecoderOnly", arguments=ARGUMENTS)
LABELS = Labels(dataset=Dataset(n=20, count=1), solver="concorde")
RUN = run_of(NETWORK, LABELS)
EVALUATION = BenchmarkEvaluation(run=RUN.id, max_nodes=71)


@pytest.fixture
def tsplib(public: Callable[[str], Path]) -> Path:
    return public("benchmarks/tsplib")


def measured(tmp_path: Path, folder: Path, missing: dict[str, str]) -> pd.DataFrame:
    write_manifest(tmp_path / "tsplib.json", folder, missing)
    return evaluated(tmp_path, EVALUATION, RUN, benchmarks={"tsplib": tmp_path / "tsplib.json"})[0]


def test_each_instance_is_measured_against_its_optimum(tmp_path: Path, tsplib: Path) -> None:
    records = measured(tmp_path, tsplib, {"st70": "not here"})
    assert list(dict.fromkeys(records.test)) == ["tsplib_eil51", "tsplib_berlin52"]  # below 71 nodes, smallest first
    net = ready(NETWORK)
    unrounded = []
    for name in ("eil51", "berlin52"):
        instance, optimum = read_tsplib(tsplib / f"{name}.tsp"), known()[name].optimum
        tour = decode("tsp", net, torch.from_numpy(instance.unit_square())[None], EVALUATION.decodings[0])[0].numpy()
        values = records[records.test == f"tsplib_{name}"].set_index("metric").value
        unrounded.append(instance.length(tour, rounded=False))
        assert values["length"] == pytest.approx(unrounded[-1])
        assert values["gap_pct"] == pytest.approx(100 * (unrounded[-1] / optimum - 1))
        assert values["gap_rounded_pct"] == pytest.approx(100 * (instance.length(tour) / optimum - 1))
        assert values["time_s"] > 0
    assert set(records.n) == {51, 52}
    assert set(records.distribution) == {"tsplib"}
    assert set(records.n_instances) == {1}
    with np.load(tmp_path / "out" / "tsplib.npz") as file:
        assert file["names"].tolist() == ["eil51", "berlin52"]
        assert file["optima"].tolist() == [426, 7542]
        np.testing.assert_allclose(file["greedy"], unrounded)


def test_without_instances_the_records_are_a_header(tmp_path: Path) -> None:
    records = measured(tmp_path, tmp_path, dict.fromkeys(known(), "offline"))
    assert len(records) == 0
    assert tuple(records.columns) == COLUMNS
    with np.load(tmp_path / "out" / "tsplib.npz") as file:
        assert file["names"].shape == file["greedy"].shape == (0,)


def test_a_file_that_vanished_is_one_line_and_no_records(tmp_path: Path) -> None:
    with pytest.raises(NeurouteError, match="eil51.tsp: no such file; `neuroute fetch tsplib` gets it"):
        measured(tmp_path, tmp_path, {})
    assert not (tmp_path / "out").exists()


# -- CVRPLIB --------------------------------------------------------------------------------------------------

CVRP_NETWORK = Network(
    kind="neuroute.networks.sit:SitCvrp",
    arguments={"depth": 1, "width": 16, "heads": 2, "feed_forward": 16, "train_nodes": 20},
)
CVRP_LABELS = Labels(dataset=Dataset(problem="cvrp", n=20, count=1), solver="hgs")
CVRP_RUN = RUN.model_copy(update={"network": CVRP_NETWORK, "data": (CVRP_LABELS,), "validation": CVRP_LABELS})
NAMES = ("X-n101-k25", "X-n106-k14")
PRC = Decoding(method="prc", iterations=2, start="insertion-published")


def cvrplib_measured(tmp_path: Path, folder: Path, evaluation: BenchmarkEvaluation, run: Run) -> pd.DataFrame:
    write_manifest(tmp_path / "m.json", folder, {k: "" for k in known("cvrplib") if k not in NAMES}, "cvrplib")
    return evaluated(tmp_path, evaluation, run, benchmarks={"cvrplib": tmp_path / "m.json"})[0]


def test_cvrplib_is_measured_in_its_own_units_by_every_decoding(tmp_path: Path, public: Callable[[str], Path]) -> None:
    folder = public("benchmarks/cvrplib_x").parent
    by_steps = PRC.model_copy(update={"milestones": (0, 2)})
    decodings = (Decoding(), by_steps)
    evaluation = BenchmarkEvaluation(
        run=RUN.id, group="cvrplib", benchmark="cvrplib", min_nodes=101, max_nodes=107, decodings=decodings
    )
    records = cvrplib_measured(tmp_path, folder, evaluation, CVRP_RUN)
    assert set(records.decoding) == {"greedy", "insertion-published", "prc2-insertion-published"}
    assert list(dict.fromkeys(records.test)) == [f"cvrplib_{name}" for name in NAMES]
    assert set(records.n) == {101, 106}  # with the depot
    net = ready(CVRP_NETWORK)
    with np.load(tmp_path / "out" / "cvrplib.npz") as file:
        arrays = dict(file)
    assert arrays["names"].tolist() == list(NAMES)
    assert arrays["optima"].tolist() == [27591, 26362]
    for i, name in enumerate(NAMES):
        instance = read_vrplib(folder / "cvrplib_x" / f"{name}.vrp")
        low, high = instance.coords.min(), instance.coords.max()
        square = ((instance.coords - low) / (high - low)).astype(np.float32)  # depot and customers alike
        inputs = Vrp(square[None], instance.demand[None], np.array([instance.capacity]))
        for decoding in (Decoding(), PRC, PRC.model_copy(update={"iterations": 0})):
            routes = to_routes(decode("cvrp", net, inputs, decoding)[0].numpy())
            instance.check(routes, name)
            values = records[(records.test == f"cvrplib_{name}") & (records.decoding == decoding.id)]
            values = values.set_index("metric").value
            cost, best = instance.cost(routes, rounded=False), arrays["optima"][i]
            assert values["length"] == pytest.approx(cost)
            assert arrays[decoding.id][i] == pytest.approx(cost)
            assert values["gap_pct"] == pytest.approx(100 * (cost / best - 1))
            assert values["gap_rounded_pct"] == pytest.approx(100 * (instance.cost(routes) / best - 1))
            assert values["gap_rounded_pct"] >= 0
    assert (arrays["prc2-insertion-published"] <= arrays["insertion-published"]).all()


def test_a_benchmark_is_for_models_of_its_problem(tmp_path: Path) -> None:
    evaluation = BenchmarkEvaluation(run=RUN.id, group="cvrplib", benchmark="cvrplib", max_nodes=200)
    with pytest.raises(NeurouteError, match="scaling/x/cvrplib: CVRPLIB is for models of the CVRP"):
        cvrplib_measured(tmp_path, tmp_path, evaluation, RUN)


# -- each axis by itself, many starts ---------------------------------------------------------------------------------

MANY_NETWORK = Network(
    kind="neuroute.networks.icam:IcamCvrp",
    arguments={"depth": 1, "width": 16, "feed_forward": 16, "train_nodes": 20},
)
STARTS = Decoding(starts=5, augment=True)


def per_axis(coords: np.ndarray) -> np.ndarray:
    each = [(axis - axis.min()) / (axis.max() - axis.min()) for axis in coords.T]
    return np.stack(each, axis=-1).astype(np.float32)


def test_axes_are_scaled_together_or_each_by_itself() -> None:
    coords = np.array([[10.0, 5.0], [30.0, 5.5], [20.0, 7.0]])
    instance = VrplibInstance("x", "EUC_2D", coords, np.array([0, 1, 1]), 2)
    together, apart = scaled(instance, False), scaled(instance, True)
    np.testing.assert_array_equal(together, instance.unit_square())
    np.testing.assert_allclose(apart, [[0, 0], [1, 0.25], [0.5, 1]])
    assert apart.dtype == together.dtype == np.float32
    about = library("cvrplib")
    np.testing.assert_array_equal(about.inputs(instance, True).coords[0], apart)
    np.testing.assert_array_equal(about.inputs(instance, False).coords[0], together)
    on_a_line = VrplibInstance("x", "EUC_2D", coords * [1, 0], np.array([0, 1, 1]), 2)
    np.testing.assert_allclose(scaled(on_a_line, True), [[0, 0], [1, 0], [0.5, 0]])


def test_set_x_as_icam_is_measured_on_it(tmp_path: Path, public: Callable[[str], Path]) -> None:
    """Inputs are scaled by axis, costs are those of the file's own coordinates, the best of the starts and images."""
    folder = public("benchmarks/cvrplib_x").parent
    run = CVRP_RUN.model_copy(update={"network": MANY_NETWORK})
    evaluation = BenchmarkEvaluation(
        run=RUN.id,
        group="cvrplib",
        benchmark="cvrplib",
        min_nodes=101,
        max_nodes=107,
        decodings=(Decoding(), STARTS),
        per_axis=True,
    )
    records = cvrplib_measured(tmp_path, folder, evaluation, run)
    torch.manual_seed(0)
    net = build(MANY_NETWORK)
    assert set(records.decoding) == {"greedy", "multi5-x8"}
    for name in NAMES:
        instance = read_vrplib(folder / "cvrplib_x" / f"{name}.vrp")
        square = per_axis(instance.coords)
        assert not np.allclose(square, instance.unit_square())
        inputs = Vrp(square[None], instance.demand[None], np.array([instance.capacity]))
        for decoding in evaluation.decodings:
            routes = to_routes(decode("cvrp", net, inputs, decoding)[0].numpy())
            instance.check(routes, name)
            values = records[(records.test == f"cvrplib_{name}") & (records.decoding == decoding.id)]
            assert values.set_index("metric").value["length"] == pytest.approx(instance.cost(routes, rounded=False))
