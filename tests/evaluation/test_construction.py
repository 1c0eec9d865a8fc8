"""Seconds of one instance after the other: every instance by itself, as the decoding says, and without labels."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuroute.datasets.vrp_stream import vrp_dataset
from neuroute.decoding.decode import decode
from neuroute.evaluation import construction
from neuroute.networks.weights import parameters
from neuroute.plan.objects import (
    ConstructionEvaluation,
    Dataset,
    Decoding,
    Labels,
    Network,
)
from neuroute.problems.vrp import lengths
from untrained import evaluated, ready, run_of

N = 8
ARGUMENTS: dict[str, Any] = {"depth": 1, "width": 16, "heads": 2, "feed_forward": 16, "hierarchy": "step"}
NETWORK = Network(kind="neuroute.networks.mvmoe:MvMoe", arguments=ARGUMENTS)
DATASETS = tuple(Dataset(problem="vrp", variant=name, n=N, count=3, capacity=14) for name in ("VRPB", "OVRPLTW"))
LABELS = Labels(dataset=DATASETS[0], solver="ortools")
RUN = run_of(NETWORK, LABELS, "mvmoe/x")
MULTI = Decoding(starts="all")


def test_each_instance_is_timed_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    net, clock = ready(NETWORK), iter(range(1000))
    monkeypatch.setattr(construction.time, "perf_counter", lambda: float(next(clock) ** 2))
    evaluation = ConstructionEvaluation(run=RUN.id, datasets=DATASETS, decoding=MULTI)
    records, arrays = evaluated(tmp_path, evaluation, RUN)
    assert len(arrays) == 4
    ticks = np.array([2 * i + 1 for i in range(0, 12, 2)]).reshape(2, 3)  # (i + 1)^2 - i^2
    for dataset, seconds in zip(DATASETS, ticks, strict=True):
        batch = vrp_dataset(dataset)
        own = [lengths(one, decode("vrp", net, one, MULTI).numpy())[0] for one in (batch[i : i + 1] for i in range(3))]
        np.testing.assert_allclose(arrays[f"{dataset.id}|multi"], own)
        np.testing.assert_array_equal(arrays[f"{dataset.id}|seconds"], seconds)
        values = records[records.test == dataset.id].set_index("metric").value
        assert values["time_s"] == seconds.mean()
        assert values["length"] == pytest.approx(np.mean(own))
        assert values["parameters"] == parameters(net)
    assert set(records.batch_size) == {1}
    assert set(records.group) == {"construction"}
    assert set(records.decoding) == {"multi"}
    assert set(records.n_instances) == {3}
