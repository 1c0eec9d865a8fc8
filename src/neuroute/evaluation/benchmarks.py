"""The evaluation stage on a public benchmark: one model, one instance at a time, against the published optima.

Instances keep their own shape: coordinates are moved and scaled into the unit square by one offset and one scale for
both axes, lengths are of the original coordinates.  Two conventions are recorded: unrounded lengths, as learned
solvers report them (a tour that is optimal in the library's integers then shows a small gap), and the library's own
integer distances, in which the optimum has a gap of exactly 0.
"""

import logging
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from neuroute import device as devices
from neuroute.datasets.benchmarks import known, read_known, read_manifest, studied
from neuroute.datasets.tsplib import TsplibInstance
from neuroute.decoding.decode import decode
from neuroute.errors import NeurouteError
from neuroute.evaluation.records import Loaded, Where, load_run, write_records
from neuroute.plan.objects import BenchmarkEvaluation, Decoding, Run
from neuroute.problems.tsp import is_permutation

log = logging.getLogger(__name__)


def measure(
    evaluation: BenchmarkEvaluation, run: Run, checkpoint: Path, out: Path, label_dirs: list[Path], where: Where
) -> None:
    """Write `out` (.csv) and its .npz twin: names, optima and "<decoding id>" -> unrounded lengths, all (instances,).

    Without any instance (offline, no copy) the records are a header alone.  `label_dirs` is not read.
    Raises NeurouteError when the checkpoint does not fit the run, or an instance is not what the manifest promised.
    """
    if where.benchmarks is None:
        raise NeurouteError(f"{evaluation.id}: no manifest of {evaluation.benchmark}; `neuroute fetch tsplib` makes it")
    folder, available = read_manifest(where.benchmarks)
    names = [k.name for k in studied(evaluation.max_nodes) if k.name in available]
    loaded = load_run(run, checkpoint, where)
    rows: list[dict[str, Any]] = []
    lengths: list[float] = []
    if not names:
        log.warning("%s: no instances of %s are there; nothing is measured", where.benchmarks, evaluation.benchmark)
    else:
        _tour(loaded, read_known(folder, names[0]), evaluation.decoding)  # warm up
    for count, name in enumerate(names, 1):
        instance, optimum = read_known(folder, name), known()[name].optimum
        devices.reset_peak_memory(loaded.place)
        tour, seconds = _tour(loaded, instance, evaluation.decoding)
        lengths.append(instance.length(tour, rounded=False))
        values = {
            "gap_pct": 100 * (lengths[-1] / optimum - 1),
            "gap_rounded_pct": 100 * (instance.length(tour) / optimum - 1),
            "length": lengths[-1],
            "time_s": seconds,
            "peak_memory_mb": devices.peak_memory_mb(loaded.place),
        }
        about = {
            "test": f"{evaluation.benchmark}_{name}",
            "distribution": evaluation.benchmark,
            "n": len(tour),
            "n_instances": 1,
            "reference": "published",
        }
        rows += loaded.rows(evaluation.group, about, evaluation.decoding, values, seconds)
        log.info(
            "%s: %s (%d of %d), gap %.2f %%, %.1f s", evaluation.id, name, count, len(names), values["gap_pct"], seconds
        )
    optima = [known()[name].optimum for name in names]
    arrays = {
        "names": np.array(names, dtype=np.str_),
        "optima": np.array(optima, dtype=np.int64),
        evaluation.decoding.id: np.array(lengths, dtype=np.float64),
    }
    write_records(out, rows, arrays)


def _tour(loaded: Loaded, instance: TsplibInstance, decoding: Decoding) -> tuple[np.ndarray, float]:
    """A tour (n,), and the seconds from coordinates to tour."""
    coords = torch.from_numpy(instance.unit_square())[None]
    devices.synchronize(loaded.place)
    began = time.perf_counter()
    tours = decode(loaded.net, coords, decoding, loaded.memory_gb, loaded.run.training.precision).numpy()
    seconds = time.perf_counter() - began
    if not is_permutation(tours).all():
        raise AssertionError(f"{instance.name}: decoding returned an invalid tour")  # a bug, never the user's
    return tours[0], seconds
