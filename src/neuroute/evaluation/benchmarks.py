"""Gaps of a model on a public benchmark, one instance at a time, against the best costs published.

Instances keep their own shape: coordinates are moved and scaled into the unit square by one offset and one scale for
both axes, with the depot, unless an evaluation scales `per_axis`; lengths are of the original coordinates.  Two
conventions are recorded: unrounded lengths, as learned solvers report them (a tour that is optimal in the library's
integers then shows a small gap), and the library's own distances, in which the best solution known has a gap of exactly
0.  A library may scale its instances in another way for models of another problem (`Library.others`).
"""

import logging
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from neuroute.core import device as devices
from neuroute.core.errors import NeurouteError
from neuroute.datasets.benchmarks import Library, known, library, read_known, read_manifest, studied
from neuroute.decoding.decode import decode, improve
from neuroute.evaluation.labelled import about_repeats_and_factor
from neuroute.evaluation.loaded import LoadedModel
from neuroute.evaluation.records import Arrays, Rows
from neuroute.plan.objects import BenchmarkEvaluation, Decoding

log = logging.getLogger(__name__)


def measure(loaded: LoadedModel, evaluation: BenchmarkEvaluation) -> tuple[Rows, Arrays]:
    """Return records and, all (instances,): names, optima (or best costs), "<decoding id>", unrounded lengths, means
    of the repeats.

    Without any instance (offline, no copy) there are no records.  Raises NeurouteError if the benchmark is of another
    problem than the model, or an instance is not what the manifest promised.
    """
    benchmark, about = evaluation.benchmark, library(evaluation.benchmark)
    manifest = loaded.context.benchmarks.get(benchmark)
    if manifest is None:
        raise NeurouteError(f"{evaluation.id}: no manifest of {benchmark}; `neuroute fetch {benchmark}` makes it")
    problem = loaded.run.validation.dataset.problem
    if problem not in about.problems:
        raise NeurouteError(
            f"{evaluation.id}: {about.title} is for models of the {' and the '.join(map(str.upper, about.problems))}"
        )
    taken = about.inputs_for(problem)
    folder, available = read_manifest(manifest, benchmark)
    chosen = studied(evaluation.max_nodes, evaluation.min_nodes, benchmark, evaluation.sets)
    names = [k.name for k in chosen if k.name in available]
    rows = Rows()
    lengths: dict[str, list[float]] = {part.id: [] for asked in evaluation.decodings for part in _parts(asked)}
    if not names:
        log.warning("%s: no instances of %s are there; nothing is measured", manifest, benchmark)
    else:
        smallest = read_known(folder, names[0], benchmark)
        inputs = taken(smallest, evaluation.per_axis)
        _warm_up(loaded, inputs, len(smallest.coords), evaluation.decodings[0])
    for count, name in enumerate(names, 1):
        instance, optimum = read_known(folder, name, benchmark), known(benchmark)[name].optimum
        n, inputs = len(instance.coords), taken(instance, evaluation.per_axis)
        test = {
            "test": f"{benchmark}_{name}",
            "distribution": benchmark,
            "n": n,
            "n_instances": 1,
            "reference": "published",
        }
        measured: set[str] = set()
        for asked in evaluation.decodings:
            devices.reset_peak_memory(loaded.place)
            for decoding, solutions, seconds in _solved(loaded, inputs, n, asked):
                if decoding.id in measured:  # a milestone that is also asked for by itself
                    continue
                measured.add(decoding.id)
                own, rounded = (_lengths(about, instance, solutions, r) for r in (False, True))
                lengths[decoding.id].append(float(own.mean()))
                values = {
                    "gap_pct": 100 * (own.mean() / optimum - 1),
                    "gap_rounded_pct": 100 * (rounded.mean() / optimum - 1),
                    "length": own.mean(),
                    "time_s": seconds,
                    "peak_memory_mb": devices.peak_memory_mb(loaded.place),
                }
                values |= about_repeats_and_factor(loaded, decoding, n, own[:, None], np.array([optimum]))
                rows += loaded.rows(evaluation.group, test, decoding, values, seconds)
                how = (evaluation.id, name, count, len(names), decoding.id, values["gap_pct"], seconds)
                log.info("%s: %s (%d of %d), %s, gap %.2f %%, %.1f s", *how)
    optima = [known(benchmark)[name].optimum for name in names]
    arrays = {"names": np.array(names, dtype=np.str_), "optima": np.array(optima, dtype=np.float64)}
    return rows, arrays | {key: np.array(each, dtype=np.float64) for key, each in lengths.items()}


def _parts(decoding: Decoding) -> list[Decoding]:
    """What is recorded of a decoding: itself, or one for each of its milestones."""
    return [decoding.model_copy(update={"iterations": m, "milestones": ()}) for m in decoding.milestones] or [decoding]


def _solved(
    loaded: LoadedModel, inputs: Any, nodes: int, asked: Decoding
) -> Iterator[tuple[Decoding, list[np.ndarray], float]]:
    """(decoding, a solution per repeat, mean seconds from coordinates to solution), for each of the parts."""
    settled, precision = loaded.resolve_decoding(asked, nodes), loaded.run.training.precision
    problem = loaded.run.validation.dataset.problem
    devices.synchronize(loaded.place)
    if asked.milestones:
        found = improve(problem, loaded.net, inputs, settled, loaded.memory_gb, precision)
        for iterations, solutions, seconds in found:
            yield asked.model_copy(update={"iterations": iterations, "milestones": ()}), [solutions[0].numpy()], seconds
        return
    draws = settled.draws()
    began = time.perf_counter()
    each = [decode(problem, loaded.net, inputs, draw, loaded.memory_gb, precision)[0].numpy() for draw in draws]
    yield asked, each, (time.perf_counter() - began) / len(draws)


def _warm_up(loaded: LoadedModel, inputs: Any, nodes: int, decoding: Decoding) -> None:
    short = decoding.model_copy(update={"iterations": min(decoding.iterations, 1), "milestones": (), "repeats": 1})
    list(_solved(loaded, inputs, nodes, short))


def _lengths(about: Library, instance: Any, solutions: list[np.ndarray], rounded: bool) -> np.ndarray:
    """Of a solution per repeat: float64 (repeats,)."""
    try:
        return np.array([about.length(instance, solution, rounded) for solution in solutions])
    except NeurouteError as error:  # a bug, never the user's
        raise AssertionError(f"decoding returned no solution: {error}") from error
