"""CVRPLIB as a benchmark: its files, its home, and routes over its instances.

The addresses are those that CVRPLIB's pages link to; they were never contacted from where this was written, so a first
fetch may show that they have moved.  What comes back is checked against the digests all the same.
"""

import hashlib

import numpy as np

from neuroute.datasets.benchmarks import Known, Library, scaled
from neuroute.datasets.vrplib import VrplibInstance, parse_vrplib
from neuroute.problems.vrp import Vrp, to_routes

GRID = 1000.0  # Set X lies in [0, 1000] squared


def _path(known: Known) -> str:
    return f"{known.set}/{known.name}.vrp"


def _sha256(instance: VrplibInstance) -> str:
    """Of edge type, capacity, coordinates and demands as parsed, the depot first."""
    coords = np.ascontiguousarray(instance.coords, dtype="<f8") + 0.0  # -0.0 is 0.0
    demand = np.ascontiguousarray(instance.demand, dtype="<i8")
    head = f"{instance.edge_type}\n{instance.capacity}\n".encode()
    return hashlib.sha256(head + coords.tobytes() + demand.tobytes()).hexdigest()


def _inputs(instance: VrplibInstance, per_axis: bool) -> Vrp:
    return Vrp(scaled(instance, per_axis)[None], instance.demand[None], np.array([instance.capacity]))


def _as_vrp(instance: VrplibInstance, per_axis: bool) -> Vrp:
    """As one of the 16 VRPs.  An instance on Set X's grid is divided by its size, as mvmoe's published code does."""
    on_grid = instance.coords.min() >= 0 and GRID / 2 < instance.coords.max() <= GRID
    coords = (instance.coords / GRID).astype(np.float32) if on_grid and not per_axis else scaled(instance, per_axis)
    return Vrp(coords[None], instance.demand[None], np.array([instance.capacity]))


def _length(instance: VrplibInstance, solution: np.ndarray, rounded: bool) -> float:
    routes = to_routes(solution)
    instance.check(routes, instance.name)
    return instance.cost(routes, rounded)


LIBRARY = Library(
    name="cvrplib",
    title="CVRPLIB",
    problem="cvrp",
    suffix=".vrp",
    folders=("cvrplib", "cvrplib_x", "cvrplib_xxl", "cvrplib_li"),
    home="http://vrp.galgos.inf.puc-rio.br/media/com_vrp/instances",
    path=_path,
    archive=None,
    parse=parse_vrplib,
    sha256=_sha256,
    inputs=_inputs,
    length=_length,
    others={"vrp": _as_vrp},
)
