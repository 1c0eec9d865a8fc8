"""Seconds to solve one instance after the other (mvmoe, Table 6).

No labels are needed.  Timed as in `labelled`, each instance by itself.
"""

import time

import numpy as np

from neuroute.core import device as devices
from neuroute.core.errors import NeurouteError
from neuroute.datasets.problem_spec import SPEC
from neuroute.decoding.decode import decode
from neuroute.evaluation.labelled import in_faster_precision
from neuroute.evaluation.loaded import Arrays, LoadedModel, Rows, describe_test
from neuroute.networks.weights import parameters
from neuroute.specs.objects import ConstructionEvaluation, Dataset


def measure(loaded: LoadedModel, evaluation: ConstructionEvaluation) -> tuple[Rows, Arrays]:
    """Return records, "<dataset id>|seconds" and "<dataset id>|<decoding>", lengths, both (count,).

    time_s is the mean over instances.  Raises NeurouteError if the decoding does not fit the network.
    """
    rows, arrays = Rows(), Arrays()
    for dataset in evaluation.datasets:
        one = SPEC.of(dataset.problem).instances(dataset)[:1]
        model = in_faster_precision(loaded, dataset.problem, one, dataset.n, evaluation.decoding)
        devices.reset_peak_memory(loaded.place)
        seconds, lengths = timed(model, evaluation, dataset)
        arrays |= {f"{dataset.id}|seconds": seconds, f"{dataset.id}|{evaluation.decoding.name}": lengths}
        values = {
            "time_s": seconds.mean(),
            "length": lengths.mean(),
            "peak_memory_mb": devices.peak_memory_mb(loaded.place),
            "parameters": parameters(loaded.net),
        }
        about, total = describe_test(dataset), float(seconds.sum())
        rows += model.rows(evaluation.name, about, evaluation.decoding, values, total, batch_size=1)
    return rows, arrays


def timed(loaded: LoadedModel, evaluation: ConstructionEvaluation, dataset: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Return seconds and lengths (count,) of instances solved one at a time; the first one also warms up."""
    spec, precision = SPEC.of(dataset.problem), loaded.run.training.precision
    decoding, instances = loaded.resolve_decoding(evaluation.decoding, dataset.n), spec.instances(dataset)
    valid = spec.built or spec.valid
    seconds, lengths = [], []
    decode(dataset.problem, loaded.net, instances[:1], decoding, loaded.memory_gb, precision)
    for i in range(dataset.count):
        one = instances[i : i + 1]
        devices.synchronize(loaded.place)
        began = time.perf_counter()
        solution = decode(dataset.problem, loaded.net, one, decoding, loaded.memory_gb, precision).numpy()
        seconds.append(time.perf_counter() - began)
        if not valid(one, solution).all():
            raise NeurouteError(f"{dataset.id}: {decoding.name} returned no {spec.noun}")
        lengths.append(spec.lengths(one, solution)[0])
    return np.array(seconds), np.array(lengths)
