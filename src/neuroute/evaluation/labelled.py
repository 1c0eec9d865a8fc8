"""Gaps and times of a model on labelled test sets.

Timed: from coordinates in host memory to solutions in host memory, transfers included, the model loaded and warmed up.
Not timed: reading labels, computing lengths, the warm-up, keeping what is measured.  Of a test that was interrupted the
seconds are those of all that went into its result, and the peak memory is that of the last process.
"""

import logging
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from neuroute.analysis.intervals import gaps
from neuroute.core import device as devices
from neuroute.core.errors import NeurouteError
from neuroute.datasets.problem_spec import SPEC, spec_of
from neuroute.datasets.store import load_tours
from neuroute.decoding.decode import decode, improve, instances_per_batch
from neuroute.decoding.decode import decode_timed as decode_instances
from neuroute.decoding.memory import CHOICES, faster_precision
from neuroute.decoding.multi_start import starts_of
from neuroute.evaluation.flops import per_solution
from neuroute.evaluation.loaded import Arrays, LoadedModel, Rows, describe_test
from neuroute.networks.weights import parameters
from neuroute.solvers.base import GRID
from neuroute.solvers.registry import get
from neuroute.specs.objects import ConstructionEvaluation, Dataset, Decoding, Test

log = logging.getLogger(__name__)
ROUNDING = 4 / GRID  # of a proven optimum, a node: coordinates and distances are rounded to the grid, in both tours


def measure(loaded: LoadedModel, test: Test) -> tuple[Rows, Arrays]:
    """Return records, and lengths (count,) float64 as "<dataset id>|<decoding>" and "<dataset id>|reference".

    Where networks keep to stricter rules than labels have to, also "<dataset id>|reference_feasible" (count,), 1 where
    the reference solution keeps to them (0 elsewhere), and a record of how many do.  Of a stage's checkpoint each key
    comes after "<stage>|" (icam, Table 8).

    Raises NeurouteError if labels are missing, or proven optima longer than what is found.
    """
    dataset = test.labels.dataset
    spec = spec_of(test.labels)
    instances = spec.instances(dataset)
    solutions = load_tours(test.labels, loaded.context.label_dirs)
    reference = spec.lengths(instances, solutions)
    rows, lengths = Rows(), {f"{dataset.id}|reference": reference}
    feasible = spec.by_networks_rules and spec.by_networks_rules(instances, solutions)
    if feasible is not None:
        lengths[f"{dataset.id}|reference_feasible"] = feasible.astype(np.float64)
    about = describe_test(dataset, test.labels.solver)
    loaded = in_faster_precision(loaded, dataset.problem, instances, dataset.n, test.decoding)
    for decoding, repeats, seconds, peak in _decode_test(loaded, instances, test):
        # Lengths below proven optima are of other instances.
        best = repeats.min(axis=0)
        below = reference - best
        worst = int(np.argmax(below))
        if get(test.labels.solver).optimal and below[worst] > ROUNDING * test.labels.dataset.nodes:
            raise NeurouteError(
                f"{test.labels.id}, instance {worst}: {decoding.name} found {best[worst]:.6f}, below its proven "
                f"optimum {reference[worst]:.6f}; delete the labels and run `neuroute label {test.labels.id}`"
            )
        lengths[f"{dataset.id}|{decoding.name}"] = mean_lengths = repeats.mean(axis=0)
        values = {
            **gaps(mean_lengths, reference),
            "length": mean_lengths.mean(),
            "time_s": seconds,
            "peak_memory_mb": peak,
            "parameters": parameters(loaded.net),
        }
        if feasible is not None:
            values["reference_feasible_pct"] = 100 * float(feasible.mean())
        values |= describe_repeats(loaded, decoding, dataset.n, repeats, reference)
        if decoding.method not in ("rrc", "prc", "revise"):
            values |= _flops(loaded, dataset, decoding, spec.starts(instances) if spec.starts else dataset.n)
        rows += loaded.rows(test.name, about, decoding, values, seconds)
        log.info("%s, %s: gap %.2f %%", dataset.id, decoding.name, values["gap_pct"])
    return rows, {f"{test.stage}|{key}" if test.stage else key: each for key, each in lengths.items()}


def _flops(loaded: LoadedModel, dataset: Dataset, decoding: Decoding, places: int) -> dict[str, float]:
    """Return the FLOPs of one instance: of a solution, or of all those of a network of many starts.

    places: nodes where these may begin.  Beams search from each.
    """
    if decoding.is_own:  # all of an instance's nodes are computed at every decision
        return per_solution(loaded.run.network, dataset.nodes, decoding.beam, shrinks=False)
    if not loaded.net.multi_start:
        return per_solution(loaded.run.network, dataset.nodes, decoding.beam)
    images, starts = decoding.number_of_images, min(starts_of(decoding) or places, places)
    solutions, searches = decoding.beam * starts * images, decoding.method != "greedy"
    return per_solution(loaded.run.network, dataset.nodes, solutions, images, shrinks=searches)


def describe_repeats(
    loaded: LoadedModel, decoding: Decoding, nodes: int, lengths: np.ndarray, reference: np.ndarray
) -> dict[str, float]:
    """Return the gaps' standard deviation over repeats, and the scaling factor, where there are any.

    lengths: (repeats, count); of a network that has nothing to draw, one repeat.
    """
    values = {}
    if decoding.repeats > 1:
        gaps = 100 * lengths.mean(axis=1) / reference.mean()
        values["gap_spread_pct"] = float(np.std(gaps, ddof=1)) if len(gaps) > 1 else 0.0
    if decoding.rescale != 1:
        values["rescale_factor"] = float(loaded.resolve_decoding(decoding, nodes).rescale)
    return values


def _decode_test(
    loaded: LoadedModel, instances: Any, test: Test
) -> Iterator[tuple[Decoding, np.ndarray, float, float]]:
    """Yield decoding, lengths (repeats, count), seconds of a repeat and peak memory in MiB, for each milestone."""
    spec, dataset, decoding = spec_of(test.labels), test.labels.dataset, test.decoding
    warm_up(loaded, dataset.problem, instances[: min(2, decoding.batch_size or 2)], dataset.n, decoding)
    devices.reset_peak_memory(loaded.place)
    results = list(decode_timed(loaded, dataset.problem, instances, dataset.n, decoding, test.canonical()))
    peak = devices.peak_memory_mb(loaded.place)
    valid = spec.built or spec.valid
    for part, repeats, seconds in results:
        if not all(valid(instances, solutions).all() for solutions in repeats):
            raise NeurouteError(f"{test.labels.id}: {decoding.name} returned no {spec.noun}")
        yield part, np.stack([spec.lengths(instances, solutions) for solutions in repeats]), seconds, peak


def warm_up(loaded: LoadedModel, problem: str, instances: Any, nodes: int, decoding: Decoding) -> None:
    """Decode once, with at most one iteration; on a CPU only where no other size was decoded so."""
    short = _short(decoding)
    if loaded.place.type != "cpu" or (problem, short) not in loaded.warm:
        loaded.warm.add((problem, short))
        list(decode_timed(loaded, problem, instances, nodes, short))


def _short(decoding: Decoding) -> Decoding:
    update = {"iterations": min(decoding.iterations, 1), "milestones": (), "repeats": 1}
    return decoding.model_copy(update=update)


def in_faster_precision(
    loaded: LoadedModel, problem: str, instances: Any, nodes: int, decoding: Decoding
) -> LoadedModel:
    """The model in the precision in which it decodes such batches faster, where its run leaves that open.

    Measured on the first batch, with at most one iteration; a decoding that goes on after a kill keeps to it.
    """
    if not loaded.auto:
        return loaded
    short = _short(decoding)
    size = instances_per_batch(loaded.net, nodes, loaded.resolve_decoding(short, nodes), loaded.memory_gb)
    batch = instances[:size]
    either = {each: replace(loaded, run=loaded.run.in_precision(each)) for each in CHOICES}
    key = f"precision|{problem}|{nodes}|{len(batch)}|{short.canonical()}"
    kept = loaded.steps.load(key)
    if kept is None:
        chosen, ratio = faster_precision(
            lambda each, _: list(decode_timed(either[each], problem, batch, nodes, short)), loaded.place
        )
        kept = {"bf16": np.array(chosen == "bf16")}
        loaded.steps.put(key, kept)
        state = (loaded.run.id, decoding.name, nodes, len(batch), chosen, ratio)
        log.info("%s, %s, %d nodes, %d at once: precision auto: %s, as bf16 is %.2f times as fast as fp32", *state)
    return either["bf16" if kept["bf16"] else "fp32"]


def decode_timed(
    loaded: LoadedModel, problem: str, instances: Any, nodes: int, decoding: Decoding, name: str | None = None
) -> Iterator[tuple[Decoding, list[np.ndarray], float]]:
    """Yield the decoding, or that of each milestone, solutions (count, ...) of each repeat, and seconds of a repeat.

    name: under which an interrupted decoding is kept, with what was measured before; None: it is not.
    """
    resolved, limits = loaded.resolve_decoding(decoding, nodes), (loaded.memory_gb, loaded.run.training.precision)
    devices.synchronize(loaded.place)
    if decoding.milestones:
        keeper = loaded.keeper(name, decoding)
        for iterations, solutions, seconds in improve(problem, loaded.net, instances, resolved, *limits, keeper):
            part = decoding.model_copy(update={"iterations": iterations, "milestones": ()})
            yield part, [solutions.numpy()], seconds
        return
    draws = resolved.draws()
    results = [
        decode_instances(problem, loaded.net, instances, draw, *limits, loaded.keeper(name, draw)) for draw in draws
    ]
    yield decoding, [solutions.numpy() for solutions, _ in results], sum(seconds for _, seconds in results) / len(draws)


def measure_construction(loaded: LoadedModel, evaluation: ConstructionEvaluation) -> tuple[Rows, Arrays]:
    """Return records, "<dataset id>|seconds" and "<dataset id>|<decoding>", lengths, both (count,).

    time_s is the mean over instances.  Raises NeurouteError if the decoding does not fit the network.
    """
    rows, arrays = Rows(), Arrays()
    for dataset in evaluation.datasets:
        one = SPEC.of(dataset.problem).instances(dataset)[:1]
        model = in_faster_precision(loaded, dataset.problem, one, dataset.n, evaluation.decoding)
        devices.reset_peak_memory(loaded.place)
        seconds, lengths = time_each(model, evaluation, dataset)
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


def time_each(
    loaded: LoadedModel, evaluation: ConstructionEvaluation, dataset: Dataset
) -> tuple[np.ndarray, np.ndarray]:
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
