"""TSPLIB as a benchmark: its files, its home, and tours over its instances."""

import hashlib

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.datasets.benchmarks import Known, Library, scaled
from neuroute.datasets.tsplib import TsplibInstance, parse_tsplib
from neuroute.problems.tsp import is_permutation


def _path(known: Known) -> str:
    return f"{known.name}.tsp.gz"


def _sha256(instance: TsplibInstance) -> str:
    """Of edge type and coordinates as parsed: line endings, headers and spellings of a number do not matter."""
    coords = np.ascontiguousarray(instance.coords, dtype="<f8") + 0.0  # -0.0 is 0.0
    return hashlib.sha256(f"{instance.edge_type}\n".encode() + coords.tobytes()).hexdigest()


def _inputs(instance: TsplibInstance, per_axis: bool) -> np.ndarray:
    return scaled(instance, per_axis)[None]


def _length(instance: TsplibInstance, tour: np.ndarray, rounded: bool) -> float:
    if not is_permutation(tour[None]).all() or len(tour) != len(instance.coords):
        raise NeurouteError(f"{instance.name}: not a tour of its {len(instance.coords)} nodes")
    return instance.length(tour, rounded)


LIBRARY = Library(
    name="tsplib",
    title="TSPLIB",
    problem="tsp",
    suffix=".tsp",
    folders=("tsplib",),
    home="http://comopt.ifi.uni-heidelberg.de/software/TSPLIB95/tsp",
    path=_path,
    archive="ALL_tsp.tar.gz",
    parse=parse_tsplib,
    sha256=_sha256,
    inputs=_inputs,
    length=_length,
)
