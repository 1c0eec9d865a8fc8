"""The public benchmarks' libraries: what their files are like, where they come from, how models meet their instances.

Digests are of instances as parsed: line endings, headers and spellings of a number do not matter.  The addresses of
CVRPLIB and of Solomon's instances, which CVRPLIB has too, are those that CVRPLIB's pages link to; they were never
contacted from where this was written, so a first fetch may show that they have moved.  What comes back is checked
against the digests all the same.
"""

import hashlib
from collections.abc import Sequence

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.datasets.benchmarks import Library, scaled
from neuroute.datasets.solomon import SolomonInstance, parse_solomon
from neuroute.datasets.tsplib import TsplibInstance, parse_tsplib
from neuroute.datasets.vrplib import VrplibInstance, parse_vrplib
from neuroute.problems.tsp import is_permutation
from neuroute.problems.vrp import Vrp, to_routes
from neuroute.problems.vrp_checker import EPS, fault

GRID = 1000.0  # Set X lies in [0, 1000] squared
CVRPLIB_HOME = "http://vrp.galgos.inf.puc-rio.br/media/com_vrp/instances"


def _sha256(head: str, *arrays: np.ndarray) -> str:
    """Return the digest of a line of text and of arrays, whole numbers as int64, others as float64."""
    digest = hashlib.sha256(f"{head}\n".encode())
    for array in arrays:
        kind = "<i8" if array.dtype.kind in "iu" else "<f8"
        digest.update((np.ascontiguousarray(array, dtype=kind) + 0).tobytes())  # -0.0 is 0.0
    return digest.hexdigest()


# -- TSPLIB -----------------------------------------------------------------------------------------------------------


def _tsplib_inputs(instance: TsplibInstance, per_axis: bool) -> np.ndarray:
    return scaled(instance, per_axis)[None]


def _tsplib_length(instance: TsplibInstance, tour: np.ndarray, rounded: bool) -> float:
    if not is_permutation(tour[None]).all() or len(tour) != len(instance.coords):
        raise NeurouteError(f"{instance.name}: not a tour of its {len(instance.coords)} nodes")
    return instance.length(tour, rounded)


TSPLIB = Library(
    name="tsplib",
    title="TSPLIB",
    problem="tsp",
    suffix=".tsp",
    folders=("tsplib",),
    home="http://comopt.ifi.uni-heidelberg.de/software/TSPLIB95/tsp",
    path=lambda instance: f"{instance.name}.tsp.gz",
    archive="ALL_tsp.tar.gz",
    parse=parse_tsplib,
    sha256=lambda instance: _sha256(instance.edge_type, instance.coords),
    inputs=_tsplib_inputs,
    length=_tsplib_length,
)


# -- CVRPLIB ----------------------------------------------------------------------------------------------------------


def _cvrplib_inputs(instance: VrplibInstance, per_axis: bool) -> Vrp:
    return Vrp(scaled(instance, per_axis)[None], instance.demand[None], np.array([instance.capacity]))


def _cvrplib_as_vrp(instance: VrplibInstance, per_axis: bool) -> Vrp:
    """Return it as one of the 16 VRPs, on Set X's grid divided by its size, as mvmoe's published code does."""
    on_grid = instance.coords.min() >= 0 and GRID / 2 < instance.coords.max() <= GRID
    coords = (instance.coords / GRID).astype(np.float32) if on_grid and not per_axis else scaled(instance, per_axis)
    return Vrp(coords[None], instance.demand[None], np.array([instance.capacity]))


def _cvrplib_length(instance: VrplibInstance, solution: np.ndarray, rounded: bool) -> float:
    routes = to_routes(solution)
    instance.check(routes, instance.name)
    return instance.cost(routes, rounded)


CVRPLIB = Library(
    name="cvrplib",
    title="CVRPLIB",
    problem="cvrp",
    suffix=".vrp",
    folders=("cvrplib", "cvrplib_x", "cvrplib_xxl", "cvrplib_li"),
    home=CVRPLIB_HOME,
    path=lambda instance: f"{instance.set}/{instance.name}.vrp",
    archive=None,
    parse=parse_vrplib,
    sha256=lambda instance: _sha256(f"{instance.edge_type}\n{instance.capacity}", instance.coords, instance.demand),
    inputs=_cvrplib_inputs,
    length=_cvrplib_length,
    others={"vrp": _cvrplib_as_vrp},
)


# -- Solomon (VRPTW; mvmoe, Table 7) ----------------------------------------------------------------------------------


def _solomon_sha256(instance: SolomonInstance) -> str:
    arrays = (instance.demand, instance.coords, instance.windows, instance.service)
    return _sha256(str(instance.capacity), *arrays)


def _solomon_inputs(instance: SolomonInstance, per_axis: bool) -> Vrp:
    """Return coordinates and times by one scale, as mvmoe's published code has them.

    Raises NeurouteError for `per_axis`, which would make times meaningless.
    """
    if per_axis:
        raise NeurouteError(f"{instance.name}: time is as long as a way, so one scale is for both axes; no `per_axis`")
    return instance.scaled()


def check_routes(instance: SolomonInstance, solution: np.ndarray) -> None:
    """Raises NeurouteError unless a solution (2, n) serves all in time, within the capacity.

    In the file's own units what is driven may be late by as much as the environment lets it be, in units of the scale,
    and by how numbers are rounded there.
    """
    why = fault(instance.unscaled(), 0, solution, "network", 2 * EPS * instance.scale)
    if why is not None:
        raise NeurouteError(f"{instance.name}: {why}")


def cut_cost(instance: SolomonInstance, routes: Sequence[Sequence[int]]) -> float:
    """Return the length of routes of distances cut after one decimal, by which the best costs known are counted."""
    return float(np.floor(10 * instance.ways(routes)).sum() / 10)


def _solomon_length(instance: SolomonInstance, solution: np.ndarray, rounded: bool) -> float:
    check_routes(instance, solution)
    routes = to_routes(solution)
    return cut_cost(instance, routes) if rounded else instance.cost(routes)


SOLOMON = Library(
    name="solomon",
    title="Solomon's set",
    problem="vrp",
    suffix=".txt",
    folders=("solomon",),
    home=CVRPLIB_HOME,
    path=lambda instance: f"Solomon/{instance.name}.txt",
    archive=None,
    parse=parse_solomon,
    sha256=_solomon_sha256,
    inputs=_solomon_inputs,
    length=_solomon_length,
)
