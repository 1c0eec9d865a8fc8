"""The evaluation stage: load a trained run, measure what its evaluation asks for, write the records.

An evaluation names the function that measures it (`entry`): `(loaded, evaluation) -> rows, arrays`.
"""

from dataclasses import replace
from pathlib import Path

from neuroute.core.dotted import resolve
from neuroute.evaluation.loaded import LoadedModel, RunContext, load_run
from neuroute.evaluation.records import Arrays, Rows, write_records
from neuroute.plan.objects import CombinedEvaluation, Evaluation, RescalingEvaluation, Run, RunEvaluation


def evaluate(evaluation: RunEvaluation, run: Run, checkpoint: Path, out: Path, context: RunContext) -> None:
    """Write `out` (.csv) and its .npz twin, both or neither.

    Raises NeurouteError if the checkpoint does not fit the run, and what the measuring functions raise.
    """
    write_records(out, *measure(load_run(run, checkpoint, context), evaluation))


def measure(loaded: LoadedModel, evaluation: RunEvaluation) -> tuple[Rows, Arrays]:
    """Measure an evaluation, or one part of it after the other.

    Parts find the best scaling factors of a sweep before them.  Arrays of parts are called "<group>/<key>", but for
    the labelled tests', whose keys stay as they are.
    """
    rows: Rows = []
    arrays: Arrays = {}
    for part in evaluation.members():
        part_rows, part_arrays = resolve(part.entry)(loaded, part)
        if isinstance(part, RescalingEvaluation):
            loaded = replace(loaded, best_factors=(part_arrays["sizes"], part_arrays["best"]))
        alone = isinstance(part, Evaluation) or not isinstance(evaluation, CombinedEvaluation)
        rows += part_rows
        arrays |= {key if alone else f"{part.group}/{key}": array for key, array in part_arrays.items()}
    return rows, arrays
