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
from neuroute.evaluation.measure import about_repeats_and_factor
from neuroute.evaluation.records import Loaded, Where, load_run, write_records
from neuroute.plan.objects import BenchmarkEvaluation, Decoding, Run
from neuroute.problems.tsp import is_permutation

log = logging.getLogger(__name__)


def measure(
    evaluation: BenchmarkEvaluation, run: Run, checkpoint: Path, out: Path, label_dirs: list[Path], where: Where
) -> None:
    """Write `out` (.csv) and its .npz twin: names, optima and "<decoding id>" -> unrounded lengths (means of
    the repeats), all (instances,).

    Without any instance (offline, no copy) the records are a header alone.  `label_dirs` is not read.
    Raises NeurouteError when the checkpoint does not fit the run, or an instance is not what the manifest promised.
    """
    if where.benchmarks is None:
        raise NeurouteError(f"{evaluation.id}: no manifest of {evaluation.benchmark}; `neuroute fetch tsplib` makes it")
    folder, available = read_manifest(where.benchmarks)
    names = [k.name for k in studied(evaluation.max_nodes) if k.name in available]
    loaded = load_run(run, checkpoint, where)
    rows: list[dict[str, Any]] = []
    lengths: dict[str, list[float]] = {decoding.id: [] for decoding in evaluation.decodings}
    if not names:
        log.warning("%s: no instances of %s are there; nothing is measured", where.benchmarks, evaluation.benchmark)
    else:
        _tours(loaded, read_known(folder, names[0]), evaluation.decodings[0])  # warm up
    for count, name in enumerate(names, 1):
        instance, optimum = read_known(folder, name), known()[name].optimum
        for decoding in evaluation.decodings:
            devices.reset_peak_memory(loaded.place)
            tours, seconds = _tours(loaded, instance, decoding)
            own = np.array([instance.length(tour, rounded=False) for tour in tours])
            rounded = float(np.mean([instance.length(tour) for tour in tours]))
            lengths[decoding.id].append(float(own.mean()))
            values = {
                "gap_pct": 100 * (own.mean() / optimum - 1),
                "gap_rounded_pct": 100 * (rounded / optimum - 1),
                "length": own.mean(),
                "time_s": seconds,
                "peak_memory_mb": devices.peak_memory_mb(loaded.place),
            }
            n = len(instance.coords)
            values |= about_repeats_and_factor(loaded, decoding, n, own[:, None], np.array([optimum]))
            about = {
                "test": f"{evaluation.benchmark}_{name}",
                "distribution": evaluation.benchmark,
                "n": n,
                "n_instances": 1,
                "reference": "published",
            }
            rows += loaded.rows(evaluation.group, about, decoding, values, seconds)
            log.info(
                "%s: %s (%d of %d), %s, gap %.2f %%, %.1f s",
                evaluation.id,
                name,
                count,
                len(names),
                decoding.id,
                values["gap_pct"],
                seconds,
            )
    optima = [known()[name].optimum for name in names]
    arrays = {"names": np.array(names, dtype=np.str_), "optima": np.array(optima, dtype=np.int64)}
    write_records(out, rows, arrays | {key: np.array(found, dtype=np.float64) for key, found in lengths.items()})


def _tours(loaded: Loaded, instance: TsplibInstance, decoding: Decoding) -> tuple[list[np.ndarray], float]:
    """A tour (n,) per repeat, and the mean seconds from coordinates to tour."""
    coords = torch.from_numpy(instance.unit_square())[None]
    draws = loaded.settled(decoding, coords.shape[1]).draws()
    devices.synchronize(loaded.place)
    began = time.perf_counter()
    precision = loaded.run.training.precision
    tours = [decode(loaded.net, coords, draw, loaded.memory_gb, precision).numpy() for draw in draws]
    seconds = (time.perf_counter() - began) / len(draws)
    if not all(is_permutation(found).all() for found in tours):
        raise AssertionError(f"{instance.name}: decoding returned an invalid tour")  # a bug, never the user's
    return [found[0] for found in tours], seconds
