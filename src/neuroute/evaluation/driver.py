"""The evaluation stage: load a trained run, measure what its evaluation asks for, write the records.

Each measurement names the function that takes it (`entry`): `(loaded, measurement) -> rows, arrays`.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch

from neuroute.analysis.rescaling import read_best
from neuroute.core.dotted import resolve
from neuroute.core.files import exclusive, sha256, state
from neuroute.core.source import source
from neuroute.datasets.store import label_digests
from neuroute.evaluation.loaded import (
    Arrays,
    LoadedModel,
    MeasuredSteps,
    Rows,
    RunContext,
    load_run,
    values_digest,
    write_records,
)
from neuroute.networks.weights import unpacked_stages, weights_digest
from neuroute.specs.objects import (
    BenchmarkEvaluation,
    Evaluation,
    RescalingEvaluation,
    Run,
    Test,
)


def evaluate(
    evaluation: Evaluation,
    run: Run,
    checkpoint: Path,
    out: Path,
    context: RunContext,
    part: tuple[int, int] | None = None,
) -> None:
    """Write `out` (.csv), its .npz twin and what both hold (.json); what is measured is kept beside them until then.

    A killed call goes on where it was, with the same records but for times and peak memory.  With a `part` (k, of) only
    every `of`-th test from the k-th on is measured and kept; a call without one takes what is there, and writes.

    Raises NeurouteError if a checkpoint does not fit the run, another process measures the same, and what the measuring
    functions raise.
    """
    loaded, folder = load_run(run, checkpoint, context), out.with_name(f".{out.stem}")
    weights = weights_digest(loaded.net)
    steps = MeasuredSteps(folder / _key(evaluation, loaded), part or (0, 1))
    with exclusive(folder / f".lock{steps.part[0]}", f"evaluation of {evaluation.id}"):
        # As it was before an interruption: batches, and so rounding, follow from it, and a GPU's free memory varies.
        memory = steps.load("memory")
        if memory is None:
            steps.put("memory", memory := {"gb": np.array(loaded.memory_gb)})
        results = measure(replace(loaded, steps=steps, memory_gb=memory["gb"].item()), evaluation)
        if part:
            steps.flush()
        else:
            write_records(out, *results)
            labels = label_digests((labels.id for labels in evaluation.labels), context.label_dirs)
            made_from = {"source": source(), "labels_sha256": labels}
            state(out, weights, values_sha256=values_digest(out), **made_from)
            steps.finish()


def _key(evaluation: Evaluation, loaded: LoadedModel) -> str:
    """Of all that records depend on: what was measured of anything else is of no use.

    Raises NeurouteError if best scaling factors are asked for and have not been measured.
    """
    context = loaded.context
    files = [loaded.checkpoint, *filter(None, [context.stages])]
    if context.rescaling:
        read_best(context.rescaling, evaluation.id)
        files.append(context.rescaling)
    digests = map(sha256, files)
    machine = (loaded.device, str(torch.get_num_threads()), torch.__version__, str(context.memory_gb))
    parts = (evaluation.canonical(), context.scale, context.code, context.data, *digests, *machine)
    return hashlib.sha256("|".join(parts).encode()).hexdigest()[:16]


def measure(loaded: LoadedModel, evaluation: Evaluation) -> tuple[Rows, Arrays]:
    """Measure one after the other; what a sweep finds are the best scaling factors of those after it."""
    rows, arrays = Rows(), Arrays()
    with _stages(loaded, evaluation) as stages:
        for each in evaluation.measurements:
            model = stages[each.stage] if isinstance(each, Test) and each.stage else loaded
            measure_it, key = partial(resolve(each.entry), model, each), each.canonical()
            if isinstance(each, Test):
                test_rows, lengths = loaded.steps.measure_once(key, measure_it)
                # A milestone (greedy) may be one that another test of this evaluation has measured.
                prefix = f"{each.stage}|" if each.stage else ""
                rows += [row for row in test_rows if f"{prefix}{row['test']}|{row['decoding']}" not in arrays]
                arrays |= {key: array for key, array in lengths.items() if key not in arrays}
                continue
            if isinstance(each, BenchmarkEvaluation):  # which keeps each instance by itself
                more, found = measure_it()
            else:
                is_sweep = isinstance(each, RescalingEvaluation)  # whose factors every part of the rest needs
                more, found = loaded.steps.measure_once(key, measure_it, splits=False, shared=is_sweep)
                if is_sweep:
                    loaded = replace(loaded, best_factors=(found["sizes"], found["best"]))
            rows += more
            arrays |= {f"{each.name}/{key}": array for key, array in found.items()}
    return rows, arrays


@contextmanager
def _stages(loaded: LoadedModel, evaluation: Evaluation) -> Iterator[dict[str, LoadedModel]]:
    """The models at the ends of a run's stages that are tested, called `<run>@<stage>`."""
    run, stages = loaded.run, {test.stage for test in evaluation.of_kind(Test) if test.stage}
    if not stages:
        yield {}
        return
    assert loaded.context.stages
    with unpacked_stages(loaded.context.stages) as folder:
        ends = {stage: load_run(run, folder / f"{stage}.safetensors", loaded.context) for stage in stages}
        yield {
            stage: replace(
                end,
                run=run.model_copy(update={"name": f"{run.name}@{stage}"}),
                auto=loaded.auto,
                memory_gb=loaded.memory_gb,
                steps=loaded.steps,
            )
            for stage, end in ends.items()
        }
