"""Users' instances, in the formats of the field, checked before anything is solved.

* `.npz` with `coords` and, if known, `tour` and `length`; with `demand` and `capacity` it is CVRP (row 0 the depot),
  whose solutions are `node` (customers in visiting order) and `via_depot` (1: reached through the depot); `vrp_data`
  says what makes it another one of the 16 VRPs;
* `.txt` as LEHD, BQ-NCO and their kin have it, a line for each instance (`lists` says which), of the TSP and the CVRP;
* `.txt` of Solomon's instances with time windows (VRPTW), or a folder of them, with `.sol` beside them if known;
* `.pkl` as Kool et al. (2019) have it: a list of lists of [x, y], or arrays, or for the CVRP of (depot, customers,
  demands, capacity); or as MVMoE has the 16 VRPs; read without executing anything;
* `.tsp` and `.vrp` files of TSPLIB and VRPLIB, or a folder of them, with `.tour` and `.sol` beside them if known.

Instances are counted from 0 in messages.
"""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np

from neuroute.core.arrays import read_arrays
from neuroute.core.errors import NeurouteError
from neuroute.datasets.benchmarks import optimum_of
from neuroute.datasets.sections import read_text, stated_scale
from neuroute.datasets.tsplib import read_tour, read_tsplib
from neuroute.datasets.vrplib import read_solution, read_vrplib
from neuroute.problems.cvrp import cost
from neuroute.problems.tsp import tour_length
from neuroute.problems.vrp import Vrp, from_routes
from neuroute.user.arrays import parse_arrays
from neuroute.user.instances import Group, Instances, agree
from neuroute.user.lists import read_lehd, read_pickled
from neuroute.user.vrp_data import is_solomon, solomon_group

log = logging.getLogger(__name__)


def read_instances(path: Path) -> Instances:
    """Return the instances of a file or folder.

    Raises NeurouteError, with file and instance, if the format is unknown, coordinates are no instance, a solution is
    none, or lengths are not those of the solutions.
    """
    if path.is_dir():
        return _folder(path)
    readers = {".npz": _npz, ".txt": _text, ".pkl": read_pickled, ".pickle": read_pickled, ".tsp": _file, ".vrp": _file}
    if path.suffix not in readers:
        raise NeurouteError(
            f"{path}: instances are read from {', '.join(readers)}, or a folder of .tsp, .vrp or Solomon's .txt files"
        )
    return readers[path.suffix](path)


def _text(path: Path) -> Instances:
    text = read_text(path, "a text file of instances")
    return _file(path) if is_solomon(text) else read_lehd(path, text)


def _npz(path: Path) -> Instances:
    return parse_arrays(path, read_arrays(path))


# -- files of one instance ---------------------------------------------------------------------------------------------


def _file(path: Path) -> Instances:
    problem, read_group = FILES[path.suffix]
    return Instances(problem, path.stem, (read_group(path),))


def _folder(path: Path) -> Instances:
    """All .tsp files of a folder, else all .vrp, else all .txt; types that are not read are left out with a line."""
    files = next((matches for ending in FILES if (matches := sorted(path.glob(f"*{ending}")))), [])
    groups: list[Group] = []
    for file in files:
        try:
            groups += _file(file).groups
        except NeurouteError as error:
            if "is not read" not in str(error):  # a damaged file is no reason to measure on fewer
                raise
            log.warning("%s; left out", error)
    if not groups:
        raise NeurouteError(f"{path}: a folder without .tsp, .vrp or Solomon's .txt files that can be read")
    groups = _joined(groups, path.name)
    groups.sort(key=lambda g: (g.n, g.name))
    return Instances(groups[0].problem, path.name, tuple(groups))


def _joined(groups: list[Group], name: str) -> list[Group]:
    """Put instances of one size together that are no library's: they are evaluated as one set."""
    alike: dict[tuple[int, bool], list[Group]] = {}
    for group in groups:
        if group.file is None:
            alike.setdefault((group.n, group.reference is None), []).append(group)
    sets = [Group.joined(each, name if len(alike) == 1 else f"{name}_n{n}") for (n, _), each in alike.items()]
    return [*(group for group in groups if group.file is not None), *sets]


def _tsplib(path: Path) -> Group:
    """With the published optimum as the reference, where the content is one of TSPLIB's own; else a .tour beside it.

    Coordinates that were multiplied to be written (`export`) are divided again, and their distances not rounded.
    """
    instance, beside = read_tsplib(path), path.with_suffix(".tour")
    tours = read_tour(beside, instance)[None] if beside.is_file() else None
    scale = stated_scale(read_text(path, "a TSPLIB .tsp file"))
    if scale is not None and instance.edge_type == "EUC_2D":
        coords = instance.coords[None] / scale
        return Group(path.stem, coords, None if tours is None else tour_length(coords, tours), solutions=tours)
    optimum = optimum_of(instance, "tsplib")
    if optimum is None and tours is not None:
        return Group(path.stem, instance.coords[None], np.array([instance.length(tours[0])]), None, None, instance)
    reference = None if optimum is None else np.array([optimum], dtype=np.float64)
    return Group(path.stem, instance.coords[None], reference, file=instance)


def _vrplib(path: Path) -> Group:
    """With the cost of the .sol file beside it as the reference; else the best one known, of one of CVRPLIB's own.

    Coordinates that were multiplied are divided again, as in `_tsplib`.
    """
    instance = read_vrplib(path)
    solution = path.with_suffix(".sol")
    best = optimum_of(instance, "cvrplib")
    reference = None if best is None else np.array([best], dtype=np.float64)
    solutions = None
    if solution.is_file():
        routes, file_cost = read_solution(solution)
        instance.check(routes, str(solution))
        length = instance.cost(routes)
        agree(np.array([length]), None if file_cost is None else np.array([file_cost]), solution)
        reference, solutions = np.array([length]), from_routes(routes)[None]
    loads = (instance.demand[None], np.array([instance.capacity]))
    scale = stated_scale(read_text(path, "a VRPLIB .vrp file"))
    if scale is None or instance.edge_type != "EUC_2D":
        return Group(path.stem, instance.coords[None], reference, *loads, file=instance)
    coords = instance.coords[None] / scale
    exact = None if solutions is None else cost(Vrp(coords, *loads), solutions)
    return Group(path.stem, coords, exact, *loads, solutions=solutions)


FILES: dict[str, tuple[Literal["tsp", "cvrp", "vrp"], Callable[[Path], Group]]] = {
    ".tsp": ("tsp", _tsplib),
    ".vrp": ("cvrp", _vrplib),
    ".txt": ("vrp", solomon_group),
}
