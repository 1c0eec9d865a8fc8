"""Solomon's instances as a benchmark (VRPTW; mvmoe, Table 7): their files, their home, and routes over them.

The addresses are CVRPLIB's, which has the files under this name; like those of `cvrplib_library` they were never
contacted from where this was written.  What comes back is checked against the digests all the same.
"""

import hashlib
from collections.abc import Sequence

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.datasets.benchmarks import Known, Library
from neuroute.datasets.solomon import SolomonInstance, parse_solomon
from neuroute.problems.vrp import Vrp, to_routes
from neuroute.problems.vrp_checker import EPS, fault


def _path(known: Known) -> str:
    return f"Solomon/{known.name}.txt"


def _sha256(instance: SolomonInstance) -> str:
    """Of capacity, coordinates, demands, windows and service times as parsed, the depot first."""
    digest = hashlib.sha256(f"{instance.capacity}\n".encode())
    digest.update(np.ascontiguousarray(instance.demand, dtype="<i8").tobytes())
    for array in (instance.coords, instance.windows, instance.service):
        digest.update((np.ascontiguousarray(array, dtype="<f8") + 0.0).tobytes())  # -0.0 is 0.0
    return digest.hexdigest()


def _parse(text: str, where: str, name: str) -> SolomonInstance:
    return parse_solomon(text, where, name)


def _inputs(instance: SolomonInstance, per_axis: bool) -> Vrp:
    """Coordinates and times by one scale, as mvmoe's published code has them; `per_axis` would make times meaningless.

    Raises NeurouteError for `per_axis`.
    """
    if per_axis:
        raise NeurouteError(f"{instance.name}: time is as long as a way, so one scale is for both axes; no `per_axis`")
    return instance.scaled()


def check_routes(instance: SolomonInstance, solution: np.ndarray) -> None:
    """Raises NeurouteError unless a solution (2, n) serves all in time, within the capacity.

    In the file's own units what is driven may be late by as much as the environment lets it be, in units of the scale,
    and by how numbers are rounded there.
    """
    why = fault(instance.own(), 0, solution, "network", 2 * EPS * instance.scale)
    if why is not None:
        raise NeurouteError(f"{instance.name}: {why}")


def cut_cost(instance: SolomonInstance, routes: Sequence[Sequence[int]]) -> float:
    """Length of routes of ways that are cut after one decimal, by which the best costs known are counted."""
    path = np.concatenate([[0, *route] for route in routes] + [[0]]).astype(np.int64)
    ways = np.sqrt(((instance.coords[path[1:]] - instance.coords[path[:-1]]) ** 2).sum(-1))
    return float(np.floor(10 * ways).sum() / 10)


def _length(instance: SolomonInstance, solution: np.ndarray, rounded: bool) -> float:
    check_routes(instance, solution)
    routes = to_routes(solution)
    return cut_cost(instance, routes) if rounded else instance.cost(routes)


LIBRARY = Library(
    name="solomon",
    title="Solomon's set",
    problem="vrp",
    suffix=".txt",
    folders=("solomon",),
    home="http://vrp.galgos.inf.puc-rio.br/media/com_vrp/instances",
    path=_path,
    archive=None,
    parse=_parse,
    sha256=_sha256,
    inputs=_inputs,
    length=_length,
)
