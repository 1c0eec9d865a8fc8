"""Gaps of a model on a public benchmark, one instance at a time, against the best costs published.

Instances keep their own shape: coordinates are moved and scaled into the unit square by one offset and one scale for
both axes, with the depot, unless an evaluation scales `per_axis`; lengths are of the original coordinates.  Two
conventions are recorded: unrounded lengths, as learned solvers report them (a tour that is optimal in the library's
integers then shows a small gap), and the library's own distances, in which the best solution known has a gap of exactly
0.  `Instance.inputs` may scale them in another way for models of another problem.
"""

import logging
from functools import partial
from pathlib import Path

import numpy as np

from neuroute.analysis.intervals import gap_pct
from neuroute.core import device as devices
from neuroute.core.errors import NeurouteError
from neuroute.datasets.benchmarks import (
    PACKAGED,
    library,
    packaged_files,
    published_instances,
    read_known,
    read_manifest,
    study_instances,
)
from neuroute.decoding.decode import instances_per_batch
from neuroute.decoding.environment import ENVIRONMENT
from neuroute.evaluation.labelled import decode_timed, describe_repeats, in_faster_precision, warm_up
from neuroute.evaluation.loaded import Arrays, LoadedModel, Rows
from neuroute.problems.instances.instance import Instances
from neuroute.specs.objects import BenchmarkEvaluation, Decoding

log = logging.getLogger(__name__)


def measure(loaded: LoadedModel, evaluation: BenchmarkEvaluation) -> tuple[Rows, Arrays]:
    """Return records and arrays (instances,): names, optima (or best costs), "<decoding>", unrounded mean lengths.

    Instances are taken from the folder of the benchmark's manifest, else from the package, which alone serves where no
    manifest is given.  Without any instance there are no records.  Raises NeurouteError if the benchmark is of another
    problem than the model, or an instance is not what the manifest promised.
    """
    benchmark, about = evaluation.benchmark, library(evaluation.benchmark)
    problem = loaded.run.validation.dataset.problem
    if problem not in about.problems:
        raise NeurouteError(
            f"{evaluation.id}: {about.title} is for models of the {' and the '.join(map(str.upper, about.problems))}"
        )
    manifest = loaded.context.benchmarks.get(benchmark)
    folder, available = read_manifest(manifest, benchmark) if manifest else (PACKAGED, [])
    places = dict.fromkeys(packaged_files(benchmark), PACKAGED) | dict.fromkeys(available, folder)
    instances = study_instances(
        evaluation.max_nodes, evaluation.min_nodes, benchmark, evaluation.sets, evaluation.names
    )
    names = [k.name for k in instances if k.name in places]
    rows = Rows()
    lengths: dict[str, list[float]] = {
        decoding.model_copy(update={"iterations": iterations, "milestones": ()}).name: []
        for decoding in evaluation.decodings
        for iterations in decoding.milestones or (decoding.iterations,)
    }
    if not names:
        log.warning("%s: no instances of %s are there; nothing is measured", evaluation.id, about.title)
    else:
        smallest = read_known(places[names[0]], names[0], benchmark)
        inputs, n = smallest.inputs(problem, evaluation.per_axis), smallest.nodes
        warm_up(loaded, problem, inputs, n, _shortened(evaluation.decodings[0], problem, n))
        middle = read_known(places[names[len(names) // 2]], names[len(names) // 2], benchmark)
        n, inputs = middle.nodes, middle.inputs(problem, evaluation.per_axis)
        decoding = _shortened(evaluation.decodings[0], problem, n)
        loaded = in_faster_precision(loaded, problem, inputs, n, decoding)
    for name in names:
        unit = f"{evaluation.canonical()}|{name}"
        instance_rows, lengths_by_decoding = loaded.steps.measure_once(
            unit, partial(_measure_instance, loaded, evaluation, places[name], name, unit)
        )
        rows += instance_rows
        for key, length in lengths_by_decoding.items():
            lengths[key].append(float(length))
    optima = [published_instances(benchmark)[name].optimum for name in names]
    arrays = {"names": np.array(names, dtype=np.str_), "optima": np.array(optima, dtype=np.float64)}
    return rows, arrays | {key: np.array(each, dtype=np.float64) for key, each in lengths.items()}


def _measure_instance(
    loaded: LoadedModel, evaluation: BenchmarkEvaluation, folder: Path, name: str, unit: str
) -> tuple[Rows, Arrays]:
    """Return records of one instance, and its unrounded mean length () by decoding."""
    benchmark, problem = evaluation.benchmark, loaded.run.validation.dataset.problem
    instance, optimum = read_known(folder, name, benchmark), published_instances(benchmark)[name].optimum
    n, inputs = instance.nodes, instance.inputs(problem, evaluation.per_axis)
    test = {
        "test": f"{benchmark}_{name}",
        "distribution": benchmark,
        "n": n,
        "n_instances": 1,
        "reference": "published",
    }
    rows, lengths = Rows(), Arrays()
    for planned in evaluation.decodings:
        devices.reset_peak_memory(loaded.place)
        possible = _shortened(planned, problem, n)
        batch_size = instances_per_batch(loaded.net, instance.n, possible, loaded.memory_gb)
        for decoded, solutions, seconds in decode_timed(loaded, problem, inputs, n, possible, unit):
            decoding = decoded.model_copy(update={"longest": planned.longest})  # one name on all instances
            if decoding.name in lengths:  # a milestone that is also planned by itself
                continue
            repeats = Instances(name, (instance,) * len(solutions))  # one solution (1, ...) each
            unrounded, rounded = (repeats.lengths(np.concatenate(solutions), each) for each in (False, True))
            lengths[decoding.name] = unrounded.mean()
            values = {
                "gap_pct": gap_pct(unrounded, optimum),
                "gap_rounded_pct": gap_pct(rounded, optimum),
                "length": unrounded.mean(),
                "time_s": seconds,
                "peak_memory_mb": devices.peak_memory_mb(loaded.place),
            }
            values |= describe_repeats(loaded, decoding, n, unrounded[:, None], np.array([optimum]))
            rows += loaded.rows(evaluation.name, test, decoding, values, seconds, batch_size)
            state = (evaluation.id, name, decoding.name, values["gap_pct"], seconds)
            log.info("%s: %s, %s, gap %.2f %%, %.1f s", *state)
    return rows, lengths


def _shortened(decoding: Decoding, problem: str, nodes: int) -> Decoding:
    """Return the decoding with sub-paths that an instance of so many nodes has: a benchmark's sizes differ."""
    stops = nodes - ENVIRONMENT.of(problem).depots
    return decoding.model_copy(update={"longest": decoding.longest and min(decoding.longest, stops)})
