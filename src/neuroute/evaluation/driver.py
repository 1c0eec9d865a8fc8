"""The evaluation stage: load a trained run, measure what its evaluation asks for, write the records.

An evaluation names the function that measures it (`entry`): `(loaded, evaluation) -> rows, arrays`.
"""

import hashlib
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch

from neuroute.analysis.rescaling import read_best
from neuroute.core.dotted import resolve
from neuroute.core.errors import NeurouteError
from neuroute.core.files import exclusive
from neuroute.core.source import source
from neuroute.core.stated import state
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
from neuroute.networks.weights import weights_digest
from neuroute.specs.objects import (
    BenchmarkEvaluation,
    CombinedEvaluation,
    Evaluation,
    RescalingEvaluation,
    Run,
    RunEvaluation,
    StageEvaluation,
)


def evaluate(
    evaluation: RunEvaluation,
    run: Run,
    checkpoint: Path,
    out: Path,
    context: RunContext,
    part: tuple[int, int] | None = None,
) -> None:
    """Write `out` (.csv), its .npz twin and what both hold (.json); what is measured is kept beside them until then.

    A killed call goes on where it was, with the same records but for times and peak memory.  With a `part` (k, of) only
    every `of`-th test from the k-th on is measured and kept; a call without one takes what is there, and writes.

    Raises NeurouteError if the checkpoint does not fit the run, another process measures the same, an evaluation that
    is several is to be split, and what the measuring functions raise.
    """
    if part and isinstance(evaluation, CombinedEvaluation):
        raise NeurouteError(f"{evaluation.id}: is several evaluations in one, for they are short; leave --part out")
    loaded, folder = load_run(run, checkpoint, context), out.with_name(f".{out.stem}")
    weights = weights_digest(loaded.net)
    steps = MeasuredSteps(folder / _key(evaluation, loaded), part or (0, 1))
    with exclusive(folder / f".lock{steps.part[0]}", f"evaluation of {evaluation.id}"):
        # As it was before an interruption: batches, and so rounding, follow from it, and a GPU's free memory varies.
        memory = steps.load("memory")
        if memory is None:
            steps.hold("memory", memory := {"gb": np.array(loaded.memory_gb)})
        results = measure(replace(loaded, steps=steps, memory_gb=memory["gb"].item()), evaluation)
        if part:
            steps.save()
        else:
            write_records(out, *results)
            labels = label_digests((labels.id for labels in evaluation.labels), context.label_dirs)
            made_from = {"source": source(), "labels_sha256": labels}
            state(out, weights, values_sha256=values_digest(out), **made_from)
            steps.finish()


def _key(evaluation: RunEvaluation, loaded: LoadedModel) -> str:
    """Of all that records depend on: what was measured of anything else is of no use.

    Raises NeurouteError if best scaling factors are asked for and have not been measured.
    """
    context = loaded.context
    files = [loaded.checkpoint, *filter(None, [context.stages])]
    if context.rescaling:
        read_best(context.rescaling, evaluation.id)
        files.append(context.rescaling)
    digests = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
    machine = (loaded.device, str(torch.get_num_threads()), torch.__version__, str(context.memory_gb))
    parts = (evaluation.canonical(), context.scale, context.code, context.data, *digests, *machine)
    return hashlib.sha256("|".join(parts).encode()).hexdigest()[:16]


def measure(loaded: LoadedModel, evaluation: RunEvaluation) -> tuple[Rows, Arrays]:
    """Measure an evaluation, or one part of it after the other.

    Parts find the best scaling factors of a sweep before them.  Arrays of parts are called "<group>/<key>", but for
    the labelled tests', whose keys stay as they are.
    """
    rows: Rows = []
    arrays: Arrays = {}
    for part in evaluation.members():
        function = partial(resolve(part.entry), loaded, part)
        if isinstance(part, Evaluation | StageEvaluation | BenchmarkEvaluation):  # which keep each test by itself
            part_rows, part_arrays = function()
        else:
            part_rows, part_arrays = loaded.steps.once(part.group, function, splits=False)
        if isinstance(part, RescalingEvaluation) and part_arrays:
            loaded = replace(loaded, best_factors=(part_arrays["sizes"], part_arrays["best"]))
        alone = isinstance(part, Evaluation) or not isinstance(evaluation, CombinedEvaluation)
        rows += part_rows
        arrays |= {key if alone else f"{part.group}/{key}": array for key, array in part_arrays.items()}
    return rows, arrays
