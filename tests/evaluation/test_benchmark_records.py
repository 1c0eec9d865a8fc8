"""Records on TSPLIB: each instance against its published optimum, by both distances."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from neuroute.datasets.benchmarks import known, write_manifest
from neuroute.datasets.tsplib import read_tsplib
from neuroute.decoding.decode import decode
from neuroute.errors import NeurouteError
from neuroute.evaluation.benchmarks import measure
from neuroute.evaluation.columns import COLUMNS
from neuroute.evaluation.records import Where
from neuroute.networks.weights import build, save_checkpoint
from neuroute.plan.objects import BenchmarkEvaluation, Dataset, Labels, Network, Run, Supervised

ARGUMENTS = {"depth": 2, "width": 8, "heads": 2, "train_nodes": 20}
NETWORK = Network(kind="neuroute.networks.decoder_only:DecoderOnly", arguments=ARGUMENTS)
LABELS = Labels(dataset=Dataset(n=20, count=1), solver="concorde")
RUN = Run(
    paper="scaling", name="x", network=NETWORK, training=Supervised(samples=1), n=20, data=(LABELS,), validation=LABELS
)
EVALUATION = BenchmarkEvaluation(run=RUN.id, max_nodes=71)


@pytest.fixture
def tsplib(shared: Path) -> Path:
    folder = shared / "benchmarks" / "tsplib"
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    return folder


def measured(tmp_path: Path, folder: Path, missing: dict[str, str]) -> pd.DataFrame:
    torch.manual_seed(0)
    save_checkpoint(tmp_path / "m", build(NETWORK), {"run": RUN.id, "network": NETWORK.model_dump(), "code": "n"})
    write_manifest(tmp_path / "tsplib.json", folder, missing)
    where = Where("test", "c", "n", device="cpu", threads=1, benchmarks=tmp_path / "tsplib.json")
    measure(EVALUATION, RUN, tmp_path / "m", tmp_path / "out" / "tsplib.csv", [], where)
    return pd.read_csv(tmp_path / "out" / "tsplib.csv")


def test_each_instance_is_measured_against_its_optimum(tmp_path: Path, tsplib: Path) -> None:
    records = measured(tmp_path, tsplib, {"st70": "not here"})
    assert list(dict.fromkeys(records.test)) == ["tsplib_eil51", "tsplib_berlin52"]  # below 71 nodes, smallest first
    torch.manual_seed(0)
    net = build(NETWORK)
    unrounded = []
    for name in ("eil51", "berlin52"):
        instance, optimum = read_tsplib(tsplib / f"{name}.tsp"), known()[name].optimum
        tour = decode(net, torch.from_numpy(instance.unit_square())[None], EVALUATION.decodings[0])[0].numpy()
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
