"""The evaluation stage's stopwatch: seconds to solve one instance after the other (mvmoe, Table 6).

Nothing is compared with, so no labels are needed.  What is timed is as in `measure`, for each instance by itself.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np

from neuroute.core import device as devices
from neuroute.datasets.problem_spec import SPEC
from neuroute.decoding.decode import decode
from neuroute.evaluation.records import Loaded, Where, load_run, write_records
from neuroute.networks.weights import parameters
from neuroute.plan.objects import ConstructionEvaluation, Dataset, Run


def measure(
    evaluation: ConstructionEvaluation, run: Run, checkpoint: Path, out: Path, label_dirs: list[Path], where: Where
) -> None:
    """Write `out` (.csv) and its .npz twin: "<dataset id>|seconds" and "<dataset id>|<decoding id>", lengths, (count,).

    time_s is the mean of an instance.  `label_dirs` is not read.  Raises NeurouteError when the checkpoint does not fit
    the run, or the decoding the network.
    """
    loaded = load_run(run, checkpoint, where)
    rows: list[dict[str, Any]] = []
    arrays: dict[str, np.ndarray] = {}
    for dataset in evaluation.datasets:
        devices.reset_peak_memory(loaded.place)
        seconds, lengths = timed(loaded, evaluation, dataset)
        arrays |= {f"{dataset.id}|seconds": seconds, f"{dataset.id}|{evaluation.decoding.id}": lengths}
        values = {
            "time_s": seconds.mean(),
            "length": lengths.mean(),
            "peak_memory_mb": devices.peak_memory_mb(loaded.place),
            "parameters": parameters(loaded.net),
        }
        d = dataset
        about = {"test": d.id, "distribution": d.distribution, "n": d.n, "n_instances": d.count, "reference": "none"}
        of = loaded.rows(evaluation.group, about, evaluation.decoding, values, float(seconds.sum()))
        rows += [row | {"batch_size": 1} for row in of]
    write_records(out, rows, arrays)


def timed(loaded: Loaded, evaluation: ConstructionEvaluation, dataset: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Seconds and lengths (count,) of the instances of a data set, one at a time; the first one warms up besides."""
    spec, precision = SPEC.of(dataset.problem), loaded.run.training.precision
    decoding, instances = loaded.settled(evaluation.decoding, dataset.n), spec.instances(dataset)
    valid = spec.built or spec.valid
    seconds, lengths = [], []
    decode(dataset.problem, loaded.net, instances[:1], decoding, loaded.memory_gb, precision)
    for i in range(dataset.count):
        one = instances[i : i + 1]
        devices.synchronize(loaded.place)
        began = time.perf_counter()
        found = decode(dataset.problem, loaded.net, one, decoding, loaded.memory_gb, precision).numpy()
        seconds.append(time.perf_counter() - began)
        if not valid(one, found).all():
            raise AssertionError(f"{dataset.id}: decoding returned no {spec.noun}")  # a bug, never the user's
        lengths.append(spec.lengths(one, found)[0])
    return np.array(seconds), np.array(lengths)
