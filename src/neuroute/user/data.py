"""Users' instances, in the formats of the field, checked before anything is solved.

* `.npz` with `coords` and, if known, `tour` and `length`; with `demand` and `capacity` it is CVRP (row 0 the depot),
  whose solutions are `node` (customers in visiting order) and `via_depot` (1: reached through the depot); `vrp_data`
  says what makes it another one of the 16 VRPs;
* `.txt` as LEHD, BQ-NCO and their kin have it: a line `x y x y ... output t1 ... tN t1` per instance, nodes from 1;
* `.txt` of Solomon's instances with time windows (VRPTW);
* `.pkl` as Kool et al. (2019) have it: a list of lists of [x, y], or arrays, or for the CVRP of (depot, customers,
  demands, capacity); read without executing anything;
* `.tsp` and `.vrp` files of TSPLIB and VRPLIB, or a folder of them, with `.tour` and `.sol` beside them if known.

Instances are counted from 0 in messages.
"""

import logging
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.datasets.benchmarks import optimum_of
from neuroute.datasets.sections import read_text, stated_scale
from neuroute.datasets.tsplib import read_tour, read_tsplib
from neuroute.datasets.vrplib import read_solution, read_vrplib
from neuroute.problems.cvrp import check_instances as check_cvrp
from neuroute.problems.cvrp import cost, is_feasible
from neuroute.problems.tsp import tour_length
from neuroute.problems.vrp import Vrp, from_routes
from neuroute.problems.vrp_servable import LARGEST_LOAD
from neuroute.user.instances import Group, Instances, agree, check_instances, check_tours, refuse
from neuroute.user.pickled import read_pickle
from neuroute.user.vrp_data import KEYS, all_whole, read_solutions, shaped, solomon_group, vrp_group

log = logging.getLogger(__name__)


def read_instances(path: Path) -> Instances:
    """Return the instances of a file or folder.

    Raises NeurouteError, with file and instance, if the format is unknown, coordinates are no instance, a solution is
    none, or lengths are not those of the solutions.
    """
    if path.is_dir():
        return _folder(path)
    readers = {".npz": _npz, ".txt": _text, ".pkl": _pickle, ".pickle": _pickle, ".tsp": _files, ".vrp": _files}
    if path.suffix not in readers:
        raise NeurouteError(f"{path}: instances are read from {', '.join(readers)}, or a folder of .tsp or .vrp files")
    return readers[path.suffix](path)


# -- arrays ---------------------------------------------------------------------------------------------------


def _npz(path: Path) -> Instances:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
    except FileNotFoundError:
        raise NeurouteError(f"{path}: no such file") from None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, AttributeError, TypeError) as error:
        raise NeurouteError(f"{path}: not a readable npz of numbers ({' '.join(str(error).split())[:80]})") from None
    return parse_arrays(path, arrays)


def parse_arrays(path: Path, arrays: dict[str, np.ndarray]) -> Instances:
    """Return the instances that arrays make, as in an .npz; `path` names them.  Raises NeurouteError if they do not."""
    if "coords" not in arrays:
        raise NeurouteError(f"{path}: no array 'coords' (count, n, 2); it holds {', '.join(arrays) or 'nothing'}")
    for key, values in arrays.items():
        if values.dtype.kind not in "fiub" and key != "variant":
            raise NeurouteError(f"{path}: array '{key}' holds {values.dtype}, not numbers")
    coords = arrays["coords"].astype(np.float64)
    check_instances(coords, path)
    if any(key in arrays for key in KEYS):
        _check_loads(path, arrays)
        return Instances("vrp", path.stem, (vrp_group(path, coords, arrays),))
    if "demand" in arrays or "capacity" in arrays:  # both are checked for
        return Instances("cvrp", path.stem, (_cvrp(path, coords, arrays),))
    tours = shaped(arrays, "tour", coords.shape[:2], path)
    reference = None if tours is None else check_tours(coords, tours, path)
    stated = shaped(arrays, "length", coords.shape[:1], path)
    known = None if tours is None else tours.astype(np.int64)
    return Instances("tsp", path.stem, (Group(path.stem, coords, agree(reference, stated, path), solutions=known),))


def _check_loads(path: Path, arrays: dict[str, np.ndarray]) -> None:
    for key in ("demand", "capacity"):
        if key not in arrays or not all_whole(arrays[key]):
            raise NeurouteError(f"{path}: no '{key}' in whole numbers, which instances with vehicles need")


def _cvrp(path: Path, coords: np.ndarray, arrays: dict[str, np.ndarray]) -> Group:
    _check_loads(path, arrays)
    if (arrays["capacity"] <= 0).any():
        raise NeurouteError(f"{path}: 'capacity' is not above 0; give every instance a vehicle that carries something")
    for key in ("demand", "capacity"):
        if (np.abs(arrays[key].astype(np.float64)) > LARGEST_LOAD).any():
            raise NeurouteError(f"{path}: '{key}' goes beyond {LARGEST_LOAD:,}; give it in larger units")
    instances = Vrp(coords, arrays["demand"].astype(np.int64), arrays["capacity"].astype(np.int64))
    check_cvrp(instances, str(path))
    solutions = read_solutions(path, arrays, (len(coords), coords.shape[1] - 1))
    reference = None
    if solutions is not None:
        why = "its solution ('node', 'via_depot') does not serve every customer once, or overloads a route"
        refuse(~is_feasible(instances, solutions), path, why)
        reference = cost(instances, solutions)
    reference = agree(reference, shaped(arrays, "length", (len(coords),), path), path)
    return Group(path.stem, coords, reference, instances.demand, instances.capacity, solutions=solutions)


# -- lists ----------------------------------------------------------------------------------------------------


def _text(path: Path) -> Instances:
    """Of LEHD's kind, unless a line is the heading of a section of Solomon's files."""
    text = read_text(path, "a text file of instances")
    if any(line.strip().upper() in ("VEHICLE", "CUSTOMER") for line in text.splitlines()):
        return Instances("vrp", path.stem, (solomon_group(text, path),))
    return _lehd(path, text)


def _lehd(path: Path, text: str) -> Instances:
    coords, tours = [], []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        left, output, right = line.partition("output")
        where = f"{path}, line {number}"
        try:
            points, tour = np.array(left.split(), dtype=np.float64), np.array(right.split(), dtype=np.int64)
        except ValueError:
            raise NeurouteError(f"{where}: expected numbers `x y x y ... output t1 ... tN t1`") from None
        if not len(points) or len(points) % 2:
            raise NeurouteError(f"{where}: {len(points)} numbers before 'output'; x and y of each node are expected")
        coords.append(points.reshape(-1, 2))
        if output:
            n = len(coords[-1])
            if len(tour) != n + 1 or tour[0] != tour[-1]:
                raise NeurouteError(f"{where}: the tour after 'output' must name {n} nodes and the first one again")
            tours.append(tour[:-1] - 1)
    if tours and len(tours) < len(coords):
        raise NeurouteError(
            f"{path}: {len(tours)} of {len(coords)} instances have a tour; give all or none of them one"
        )
    return Instances("tsp", path.stem, _by_size(path, coords, tours))


def _pickle(path: Path) -> Instances:
    data = read_pickle(path)
    if not isinstance(data, list | tuple | np.ndarray) or not len(data):
        raise NeurouteError(f"{path}: a list of instances is expected, each a list of [x, y]")
    if _is_cvrp(data[0]):
        return _pickled_cvrp(path, data)
    coords = []
    for number, each in enumerate(data):
        points = _array(each)
        if points.ndim != 2 or points.shape[1] != 2:
            raise NeurouteError(
                f"{path}, instance {number}: a list of [x, y] is expected, or (depot, customers, demands, capacity)"
            )
        coords.append(points)
    return Instances("tsp", path.stem, _by_size(path, coords, []))


def _is_cvrp(each: Any) -> bool:
    """Whether it is (depot, customers, demands, capacity), as Kool et al. (2019) have the CVRP."""
    return isinstance(each, list | tuple) and len(each) == 4 and _array(each[3]).ndim == 0 and _array(each[3]).size == 1


def _pickled_cvrp(path: Path, data: Any) -> Instances:
    rows: dict[int, list[dict[str, np.ndarray]]] = {}
    for number, each in enumerate(data):
        depot, customers, demand = (_array(part) for part in each[:3]) if _is_cvrp(each) else [np.empty(0)] * 3
        if (
            depot.shape != (2,)
            or customers.ndim != 2
            or customers.shape[1:] != (2,)
            or demand.shape != customers.shape[:1]
        ):
            raise NeurouteError(f"{path}, instance {number}: (depot, customers, demands, capacity) is expected")
        one = {"coords": np.vstack([depot, customers]), "demand": np.append(0, demand), "capacity": _array(each[3])}
        rows.setdefault(len(customers), []).append(one)
    groups = []
    for n, parts in sorted(rows.items()):
        arrays = {key: np.stack([part[key] for part in parts]) for key in parts[0]}
        check_instances(arrays["coords"], path)
        group = _cvrp(path, arrays["coords"], arrays)
        groups.append(group if len(rows) == 1 else replace(group, name=f"{path.stem}_n{n}"))
    return Instances("cvrp", path.stem, tuple(groups))


def _array(values: Any) -> np.ndarray:
    """Return an array of numbers, empty where they make none."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return np.empty(0)


def _by_size(path: Path, coords: list[np.ndarray], tours: list[np.ndarray]) -> tuple[Group, ...]:
    """Groups of instances (n, 2), smallest first; `tours` is empty or has one for each."""
    if not coords:
        raise NeurouteError(f"{path}: no instances in it")
    members: dict[int, list[int]] = {}
    for number, points in enumerate(coords):
        members.setdefault(len(points), []).append(number)
    groups = []
    for n, numbers in sorted(members.items()):
        points = np.stack([coords[i] for i in numbers])
        check_instances(points, path, numbers)
        known = np.stack([tours[i] for i in numbers]) if tours else None
        reference = None if known is None else check_tours(points, known, path, numbers)
        name = path.stem if len(members) == 1 else f"{path.stem}_n{n}"
        groups.append(Group(name, points, reference, solutions=known))
    return tuple(groups)


# -- TSPLIB and VRPLIB files ----------------------------------------------------------------------------------


def _files(path: Path) -> Instances:
    group = _tsplib(path) if path.suffix == ".tsp" else _vrplib(path)
    return Instances("tsp" if path.suffix == ".tsp" else "cvrp", path.stem, (group,))


def _folder(path: Path) -> Instances:
    """All .tsp files of a folder, else all .vrp files; types that are not read are left out with a line."""
    found = sorted(path.glob("*.tsp")) or sorted(path.glob("*.vrp"))
    groups: list[Group] = []
    for file in found:
        try:
            groups.append(_files(file).groups[0])
        except NeurouteError as error:
            if "is not read" not in str(error):  # a damaged file is no reason to measure on fewer
                raise
            log.warning("%s; left out", error)
    if not groups:
        raise NeurouteError(f"{path}: a folder without .tsp or .vrp files that can be read")
    groups = _joined(groups, path.name)
    groups.sort(key=lambda g: (g.n, g.name))
    return Instances("tsp" if found[0].suffix == ".tsp" else "cvrp", path.name, tuple(groups))


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
    if scale is not None:
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
        routes, stated = read_solution(solution)
        instance.check(routes, str(solution))
        length = instance.cost(routes)
        agree(np.array([length]), None if stated is None else np.array([stated]), solution)
        reference, solutions = np.array([length]), from_routes(routes)[None]
    loads = (instance.demand[None], np.array([instance.capacity]))
    scale = stated_scale(read_text(path, "a VRPLIB .vrp file"))
    if scale is None:
        return Group(path.stem, instance.coords[None], reference, *loads, file=instance)
    coords = instance.coords[None] / scale
    exact = None if solutions is None else cost(Vrp(coords, *loads), solutions)
    return Group(path.stem, coords, exact, *loads, solutions=solutions)
