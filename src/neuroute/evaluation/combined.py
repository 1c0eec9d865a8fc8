"""All evaluations of a model in one process: its records one after the other, its arrays under the parts' names."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

from neuroute.core.dotted import resolve
from neuroute.evaluation.records import Where, write_records
from neuroute.plan.objects import CombinedEvaluation, Evaluation, RescalingEvaluation, Run


def measure(
    evaluation: CombinedEvaluation, run: Run, checkpoint: Path, out: Path, label_dirs: list[Path], where: Where
) -> None:
    """Write `out` (.csv) and its .npz twin: the labelled tests' keys as they are, others as "<group>/<key>".

    Each part is measured by its own entry.  Raises what they raise; nothing is written then.
    """
    rows: list[dict[str, Any]] = []
    arrays: dict[str, np.ndarray] = {}
    with TemporaryDirectory() as folder:
        for part in evaluation.parts:
            own = Path(folder) / f"{part.group}.csv"
            resolve(part.entry)(part, run, checkpoint, own, label_dirs, where)
            if isinstance(part, RescalingEvaluation):
                where = replace(where, rescaling=own.with_suffix(".npz"))
            rows += [{str(k): v for k, v in row.items()} for row in _read(own).to_dict("records")]
            prefix = "" if isinstance(part, Evaluation) else f"{part.group}/"
            with np.load(own.with_suffix(".npz")) as file:
                arrays |= {f"{prefix}{key}": file[key] for key in file.files}
    write_records(out, rows, arrays)


def _read(path: Path) -> pd.DataFrame:
    """A digest of digits and one e is no number."""
    return pd.read_csv(path, dtype={"code": str})
