"""What a run had learnt at the end of its earlier stages (icam, Table 8): their checkpoints on labelled test sets."""

from pathlib import Path
from typing import Any

import numpy as np

from neuroute.evaluation.measure import measure_tests
from neuroute.evaluation.records import Where, load_run, write_records
from neuroute.plan.objects import Run, StageEvaluation


def measure(
    evaluation: StageEvaluation, run: Run, checkpoint: Path, out: Path, label_dirs: list[Path], where: Where
) -> None:
    """Write `out` (.csv), whose records are of `<run>@<stage>`, and its .npz twin.

    The twin's keys are "<stage>|<dataset id>|<decoding id>", and with "reference" for the decoding, -> (count,).
    The stages' checkpoints lie beside `checkpoint`.  Raises NeurouteError when one does not fit the run.
    """
    rows: list[dict[str, Any]] = []
    lengths: dict[str, np.ndarray] = {}
    for stage in evaluation.stages:
        loaded = load_run(run, checkpoint.with_name(f"{stage}.safetensors"), where)
        found, own = measure_tests(loaded, evaluation.group, evaluation.tests, label_dirs)
        rows += [row | {"run": f"{run.id}@{stage}"} for row in found]
        lengths |= {f"{stage}|{key}": value for key, value in own.items()}
    write_records(out, rows, lengths)
