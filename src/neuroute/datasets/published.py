"""Published test sets in the place of drawn ones: their instances, as `neuroute label` keeps them beside labels."""

from pathlib import Path

import numpy as np

from neuroute.core.arrays import read_arrays
from neuroute.core.errors import NeurouteError
from neuroute.core.files import write_whole
from neuroute.plan.specs import Dataset
from neuroute.problems.vrp import Vrp

FIELDS = ("coords", "demand", "capacity", "open", "limit", "windows", "service")  # of a `Vrp`; the TSP has the first


def write_instances(path: Path, instances: np.ndarray | Vrp) -> None:
    """Keep coordinates (count, n, 2), or instances with vehicles, where data sets with that `file` find them."""
    fields = {"coords": instances} if isinstance(instances, np.ndarray) else {k: getattr(instances, k) for k in FIELDS}
    arrays = {key: np.asarray(value) for key, value in fields.items() if value is not None}
    write_whole(path, lambda file: np.savez(file, **arrays))  # type: ignore[arg-type]


def read_coordinates(dataset: Dataset) -> np.ndarray:
    """Return coordinates (count, n, 2) float32.  Raises NeurouteError if they are not there."""
    return _rows(dataset)["coords"]


def read_vehicles(dataset: Dataset) -> Vrp:
    """Return instances with vehicles.  Raises NeurouteError if they are not there."""
    arrays = _rows(dataset)
    return Vrp(**{**arrays, "open": bool(arrays["open"])})  # type: ignore[arg-type]


def _rows(dataset: Dataset) -> dict[str, np.ndarray]:
    assert dataset.file is not None
    path, rows = Path(dataset.file), slice(dataset.first, dataset.first + dataset.count)
    try:
        arrays = {key: values if key == "open" else values[rows] for key, values in read_arrays(path).items()}
    except NeurouteError as error:
        raise NeurouteError(
            f"{error}: instances of {dataset.id} cannot be read; run `neuroute label` and the id of their label job"
        ) from None
    if len(arrays["coords"]) < dataset.count:
        raise NeurouteError(f"{path}: fewer instances than the {dataset.count:,} of {dataset.id}; give a larger file")
    return arrays
