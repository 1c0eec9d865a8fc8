"""Evaluation records: the columns of the .csv files, the units of the numbers in them, and how they are written.

Rendering reads the columns, so nothing here imports torch.
"""

import csv
import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from neuroute.core.arrays import read_arrays
from neuroute.core.files import write_whole
from neuroute.core.lazy import pd
from neuroute.core.text import csv_text
from neuroute.specs.objects import Dataset

# weights: where they come from if they were not trained here; precision: of the network's products.
COLUMNS = (
    "paper", "run", "group", "seed", "test", "distribution", "n", "n_instances", "reference", "decoding", "method",
    "beam", "log_n", "batch_size", "metric", "value", "unit", "device", "threads", "torch", "scale", "code",
    "wall_time_s", "weights", "precision",
)  # fmt: skip
UNITS = {
    "gap_pct": "%",
    "gap_mean_of_ratios_pct": "%",
    "gap_rounded_pct": "%",
    "gap_spread_pct": "%",
    "reference_feasible_pct": "%",
    "rescale_factor": "",
    "length": "",
    "time_s": "s",
    "peak_memory_mb": "MiB",
    "gflops_paper": "GFLOP",
    "gflops_shrinking": "GFLOP",
    "parameters": "",
    "success_pct": "%",
    "decisions": "",
    "out_of_memory": "",
    "share_at_once": "",
}
CLOCKS = ("time_s", "peak_memory_mb")  # metrics that another run of the same measures anew
CLOCK_ARRAYS = re.compile("seconds|^efficiency/")  # names of arrays, likewise
VALUES = (
    "run", "group", "seed", "test", "distribution", "n", "n_instances", "reference", "decoding", "metric", "value",
    "unit", "weights", "precision",
)  # fmt: skip
Rows = list[dict[str, Any]]  # one record each, keys of COLUMNS
Arrays = dict[str, np.ndarray]  # what does not fit a row


def describe_test(dataset: Dataset, reference: str = "none", instances: int | None = None) -> dict[str, Any]:
    """Return the columns that name what is measured: a data set, or some instances of it, against a reference."""
    count = dataset.count if instances is None else instances
    about = {"test": dataset.id, "distribution": dataset.distribution, "n": dataset.n}
    return {**about, "n_instances": count, "reference": reference}


def write_records(out: Path, rows: Rows, arrays: Mapping[str, np.ndarray]) -> None:
    """Write `out` (.csv, one row per number) and its .npz twin (the arrays), each whole."""
    table = csv_text(pd.DataFrame(rows, columns=list(COLUMNS)))
    write_whole(out.with_suffix(".npz"), lambda file: np.savez(file, **arrays))  # type: ignore[arg-type]
    write_whole(out, lambda file: file.write(table.encode()))


def values_digest(table: Path) -> str:
    """Return a sha256 of the values of a table and its .npz: without times, and without machine, versions and code."""
    digest = hashlib.sha256()
    with table.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["metric"] not in CLOCKS:
                digest.update(repr([row[column] for column in VALUES]).encode())
    for name, array in sorted(read_arrays(table.with_suffix(".npz")).items()):
        if not CLOCK_ARRAYS.search(name):
            digest.update(f"{name} {array.dtype.str} {array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
