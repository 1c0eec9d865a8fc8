"""The evaluation stage: one model on the labelled test sets of one group -> tidy records.

What is timed: from coordinates in host memory to tours in host memory, model loaded and warmed up, including the
transfers; reading labels, computing lengths and the warm-up are not.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from neuroute import device as devices
from neuroute.analysis import cost
from neuroute.datasets.labels import load_tours
from neuroute.datasets.shard_files import kind_of
from neuroute.evaluation.records import Loaded, Where, load_run, write_records
from neuroute.networks.weights import parameters
from neuroute.plan.objects import Decoding, Evaluation, Run, Test
from neuroute.problems.rooms import room


def measure(
    evaluation: Evaluation, run: Run, checkpoint: Path, out: Path, label_dirs: list[Path], where: Where
) -> None:
    """Write `out` (.csv) and its .npz twin: "<dataset id>|<decoding id>" and "<dataset id>|reference" -> (count,).

    Raises NeurouteError when the checkpoint does not fit the run, or labels are missing.
    """
    loaded = load_run(run, checkpoint, where)
    rows: list[dict[str, Any]] = []
    lengths: dict[str, np.ndarray] = {}
    for test in evaluation.tests:
        dataset = test.labels.dataset
        kind = kind_of(test.labels)
        instances = kind.instances(dataset)
        reference = kind.lengths(instances, load_tours(test.labels, label_dirs))
        lengths[f"{dataset.id}|reference"] = reference
        about = {
            "test": dataset.id,
            "distribution": dataset.distribution,
            "n": dataset.n,
            "n_instances": dataset.count,
            "reference": test.labels.solver,
        }
        for decoding, own, seconds, peak in _decoded(loaded, instances, test):
            cell = f"{dataset.id}|{decoding.id}"
            if cell in lengths:  # a milestone (greedy) that another test of this evaluation has measured
                continue
            lengths[cell] = own
            values = {
                "gap_pct": 100 * (own.mean() / reference.mean() - 1),
                "gap_mean_of_ratios_pct": 100 * float(np.mean(own / reference) - 1),
                "length": own.mean(),
                "time_s": seconds,
                "peak_memory_mb": peak,
                "parameters": parameters(loaded.net),
            }
            if decoding.method != "rrc":
                values |= cost.per_solution(run.network, dataset.nodes, decoding.beam)
            rows += loaded.rows(evaluation.group, about, decoding, values, seconds)
    write_records(out, rows, lengths)


def _decoded(loaded: Loaded, instances: Any, test: Test) -> Iterator[tuple[Decoding, np.ndarray, float, float]]:
    """(decoding, lengths (count,), seconds, peak memory in MiB) of one test; several with milestones."""
    kind, precision, decoding = kind_of(test.labels), loaded.run.training.precision, test.decoding
    decode, improve = (room(test.labels.dataset.problem, name) for name in ("decode", "improve"))
    short = decoding.model_copy(update={"iterations": min(decoding.iterations, 1), "milestones": ()})
    decode(loaded.net, instances[:2], short, loaded.memory_gb, precision)  # warm up
    devices.reset_peak_memory(loaded.place)
    devices.synchronize(loaded.place)
    if decoding.milestones:
        solutions = improve(loaded.net, instances, decoding, loaded.memory_gb, precision)
    else:
        began = time.perf_counter()
        found = decode(loaded.net, instances, decoding, loaded.memory_gb, precision)
        solutions = [(decoding.iterations, found, time.perf_counter() - began)]
    peak = devices.peak_memory_mb(loaded.place)
    for iterations, found, seconds in solutions:
        if not kind.valid(instances, found.numpy()).all():
            raise AssertionError(f"{test.labels.id}: decoding returned no {kind.noun}")  # a bug, never the user's
        part = decoding.model_copy(update={"iterations": iterations, "milestones": ()})
        yield part, kind.lengths(instances, found.numpy()), seconds, peak
