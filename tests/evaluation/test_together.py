"""Repeats, the best factor, and several evaluations of a model in one job: the numbers of separate ones."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from untrained import decoded, evaluated, ready, run_of

from neuroute.core.errors import NeurouteError
from neuroute.datasets.benchmarks import write_manifest
from neuroute.datasets.labels import make_labels
from neuroute.datasets.store import load_tours
from neuroute.datasets.streams import dataset_coordinates
from neuroute.decoding.decode import decode
from neuroute.pipeline.papers.pens.paper import AttentionEvaluation
from neuroute.problems.tsp import tour_length
from neuroute.specs.objects import (
    BenchmarkEvaluation,
    Dataset,
    Decoding,
    Evaluation,
    Labels,
    Measurement,
    Network,
    RescalingEvaluation,
    Sweep,
    Test,
)

LABELS = Labels(dataset=Dataset(n=9, count=10), solver="concorde")
SHAPE = {"depth": 1, "width": 16, "heads": 2, "feed_forward": 24, "train_nodes": 9}
REPEATED = Decoding(repeats=3)
BEST = Decoding(repeats=2, rescale="best")
TIMES = {"time_s", "peak_memory_mb"}


RUN = run_of(Network(kind="neuroute.networks.pens:Pens", arguments={**SHAPE, "positions": "alibi"}), LABELS, "pens/x")
TESTS = decoded(RUN, *((LABELS, d) for d in (Decoding(), REPEATED, BEST, Decoding(batch_size=1))))
SWEEP = RescalingEvaluation(
    run=RUN.id,
    sweeps=tuple(Sweep(dataset=Dataset(split="val", n=n, count=4), factors=(0.6, 1.0, 1.5)) for n in (6, 12)),
)
TSPLIB = BenchmarkEvaluation(run=RUN.id, max_nodes=60, decodings=(Decoding(), BEST))
MAPS = AttentionEvaluation(run=RUN.id, dataset=Dataset(split="val", n=12, count=4), factors=(1.0, "best"))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("together")
    make_labels(LABELS, folder / "labels", [], workers=1)
    return folder


def measured(
    store: Path, evaluation: Evaluation | Measurement, **changes: object
) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
    return evaluated(store, evaluation, RUN, label_dirs=[store / "labels"], **changes)


def values(records: pd.DataFrame, decoding: Decoding) -> pd.Series:
    return records[records.decoding == decoding.name].set_index("metric").value


def test_repeats_are_means_over_draws_and_the_best_factor_is_interpolated_from_the_sweep(store: Path) -> None:
    _, sweep = measured(store, SWEEP)
    records, arrays = measured(store, TESTS, rescaling=store / "out" / "rescaling.npz")
    coords = dataset_coordinates(LABELS.dataset)
    reference = tour_length(coords, load_tours(LABELS, [store / "labels"]))
    net = ready(RUN.network)
    own = np.stack([tour_length(coords, decode("tsp", net, coords, Decoding(draw=i)).numpy()) for i in range(3)])
    assert len({tuple(each) for each in own}) > 1  # an untrained network depends on its embeddings
    found = values(records, REPEATED)
    np.testing.assert_array_equal(arrays[f"{LABELS.dataset.id}|{REPEATED.name}"], own.mean(0))
    assert found["gap_pct"] == pytest.approx(100 * (own.mean() / reference.mean() - 1))
    assert found["gap_spread_pct"] == pytest.approx(np.std(100 * own.mean(1) / reference.mean(), ddof=1))
    alone, together = values(records, Decoding(batch_size=1)), values(records, Decoding())
    assert alone["gap_pct"] == pytest.approx(together["gap_pct"])  # one at a time, the same draws
    assert values(records, BEST)["rescale_factor"] == pytest.approx(sweep["best"].mean())  # 9 is midway of 6 and 12
    assert "rescale_factor" not in found
    for nowhere in (None, store / "none.npz"):
        with pytest.raises(NeurouteError, match="best scaling factors are missing"):
            measured(store, TESTS, rescaling=nowhere)


def test_together_is_each_alone(store: Path, shared: Path) -> None:
    manifest = store / "tsplib.json"
    write_manifest(manifest, shared / "benchmarks" / "tsplib", {})
    parts: tuple[Any, ...] = (SWEEP, TESTS, TSPLIB, MAPS)
    together = Evaluation(run=RUN.id, group="all", measurements=(SWEEP, *TESTS.measurements, TSPLIB, MAPS))
    records, arrays = measured(store, together, benchmarks={"tsplib": manifest})
    found = {"rescaling": store / "out" / "rescaling.npz", "benchmarks": {"tsplib": manifest}}
    seen = 0
    for part in parts:
        own, own_arrays = measured(store, part, **({} if part is SWEEP else found))
        name = "tests" if part is TESTS else part.name
        merged = records[records.group == name]
        steady = [~frame.metric.isin(TIMES) for frame in (own, merged)]
        pd.testing.assert_frame_equal(
            own[steady[0]].drop(columns="wall_time_s").reset_index(drop=True),
            merged[steady[1]].drop(columns="wall_time_s").reset_index(drop=True),
            check_dtype=False,
        )
        seen += len(merged)
        for key, array in own_arrays.items():
            np.testing.assert_array_equal(arrays[key if part is TESTS else f"{name}/{key}"], array)
    assert seen == len(records)
    assert {f"greedy{e}" for e in ("", "-rescalebest-mean2")} <= set(records[records.group == "tsplib"].decoding)


def test_nothing_is_written_when_a_part_fails(store: Path) -> None:
    out = store / "out" / "all.csv"
    out.unlink(missing_ok=True)
    labels = LABELS.model_copy(update={"dataset": Dataset(n=9, count=10, split="train")})  # not solved
    missing = Test(run=RUN.id, labels=labels)
    with pytest.raises(NeurouteError, match="neuroute label"):
        measured(store, Evaluation(run=RUN.id, group="all", measurements=(SWEEP, missing)))
    assert not out.exists()
