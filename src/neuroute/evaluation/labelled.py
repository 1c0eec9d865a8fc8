"""Gaps and times of a model on labelled test sets.

Timed: from coordinates in host memory to solutions in host memory, transfers included, the model loaded and warmed up.
Not timed: reading labels, computing lengths, the warm-up.
"""

import time
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from neuroute.accounting import cost
from neuroute.core import device as devices
from neuroute.datasets.labels import load_tours
from neuroute.datasets.problem_spec import spec_of
from neuroute.decoding.decode import decode, improve
from neuroute.decoding.multi_start import starts_of
from neuroute.evaluation.loaded import LoadedModel
from neuroute.evaluation.records import Arrays, Rows, describe_test
from neuroute.networks.weights import parameters
from neuroute.plan.objects import Dataset, Decoding, Evaluation, Test


def measure(loaded: LoadedModel, evaluation: Evaluation) -> tuple[Rows, Arrays]:
    """Return records, and lengths (count,) float64 as "<dataset id>|<decoding id>" and "<dataset id>|reference".

    Where networks keep to stricter rules than labels have to, also "<dataset id>|reference_feasible" (count,), 1 where
    the reference solution keeps to them (0 elsewhere), and a record of how many do.

    Raises NeurouteError if labels are missing.
    """
    return measure_tests(loaded, evaluation.group, evaluation.tests)


def measure_tests(loaded: LoadedModel, group: str, tests: Iterable[Test]) -> tuple[Rows, Arrays]:
    """Return what `measure` does, of these tests."""
    rows: Rows = []
    lengths: Arrays = {}
    for test in tests:
        dataset = test.labels.dataset
        spec = spec_of(test.labels)
        instances = spec.instances(dataset)
        solutions = load_tours(test.labels, loaded.context.label_dirs)
        reference = spec.lengths(instances, solutions)
        lengths[f"{dataset.id}|reference"] = reference
        feasible = spec.by_networks_rules and spec.by_networks_rules(instances, solutions)
        if feasible is not None:
            lengths[f"{dataset.id}|reference_feasible"] = feasible.astype(np.float64)
        about = describe_test(dataset, test.labels.solver)
        for decoding, each, seconds, peak in _decoded(loaded, instances, test):
            cell = f"{dataset.id}|{decoding.id}"
            if cell in lengths:  # a milestone (greedy) that another test of this evaluation has measured
                continue
            lengths[cell] = own = each.mean(axis=0)
            values = {
                "gap_pct": 100 * (own.mean() / reference.mean() - 1),
                "gap_mean_of_ratios_pct": 100 * float(np.mean(own / reference) - 1),
                "length": own.mean(),
                "time_s": seconds,
                "peak_memory_mb": peak,
                "parameters": parameters(loaded.net),
            }
            if feasible is not None:
                values["reference_feasible_pct"] = 100 * float(feasible.mean())
            values |= about_repeats_and_factor(loaded, decoding, dataset.n, each, reference)
            if decoding.method not in ("rrc", "prc"):
                values |= _flops(loaded, dataset, decoding, spec.starts(instances) if spec.starts else dataset.n)
            rows += loaded.rows(group, about, decoding, values, seconds)
    return rows, lengths


def _flops(loaded: LoadedModel, dataset: Dataset, decoding: Decoding, places: int) -> dict[str, float]:
    """Of one instance: a solution, or all those of a network of many starts, of which the best is taken.

    places: where these may begin.  Beams search from each.
    """
    if not loaded.net.multi_start:
        return cost.per_solution(loaded.run.network, dataset.nodes, decoding.beam)
    images, starts = 8 if decoding.augment else 1, min(starts_of(decoding) or places, places)
    solutions, searches = decoding.beam * starts * images, decoding.method != "greedy"
    return cost.per_solution(loaded.run.network, dataset.nodes, solutions, images, shrinks=searches)


def about_repeats_and_factor(
    loaded: LoadedModel, decoding: Decoding, nodes: int, each: np.ndarray, reference: np.ndarray
) -> dict[str, float]:
    """What several solutions of each instance differ by, and the scaling factor; each (repeats, count) lengths."""
    values = {}
    if decoding.repeats > 1:
        values["gap_spread_pct"] = float(np.std(100 * each.mean(axis=1) / reference.mean()))
    if decoding.rescale != 1:
        values["rescale_factor"] = float(loaded.resolve_decoding(decoding, nodes).rescale)
    return values


def _decoded(loaded: LoadedModel, instances: Any, test: Test) -> Iterator[tuple[Decoding, np.ndarray, float, float]]:
    """(decoding, lengths (repeats, count), seconds of one repeat, peak memory in MiB) of one test.

    Several with milestones.
    """
    spec, precision, asked = spec_of(test.labels), loaded.run.training.precision, test.decoding
    problem, how = test.labels.dataset.problem, (loaded.memory_gb, precision)
    decoding = loaded.resolve_decoding(asked, test.labels.dataset.n)
    short = decoding.model_copy(update={"iterations": min(decoding.iterations, 1), "milestones": ()})
    decode(problem, loaded.net, instances[: min(2, decoding.batch_size or 2)], short, *how)  # warm up
    devices.reset_peak_memory(loaded.place)
    devices.synchronize(loaded.place)
    if decoding.milestones:
        solutions = [
            (iterations, [found], seconds)
            for iterations, found, seconds in improve(problem, loaded.net, instances, decoding, *how)
        ]
    else:
        began = time.perf_counter()
        repeats = [decode(problem, loaded.net, instances, each, *how) for each in decoding.draws()]
        solutions = [(decoding.iterations, repeats, (time.perf_counter() - began) / len(repeats))]
    peak = devices.peak_memory_mb(loaded.place)
    valid = spec.built or spec.valid
    for iterations, repeats, seconds in solutions:
        if not all(valid(instances, found.numpy()).all() for found in repeats):
            raise AssertionError(f"{test.labels.id}: decoding returned no {spec.noun}")  # a bug, never the user's
        part = asked.model_copy(update={"iterations": iterations, "milestones": ()})
        yield part, np.stack([spec.lengths(instances, found.numpy()) for found in repeats]), seconds, peak
