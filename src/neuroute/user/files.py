"""Instances of files, in the formats of the field, checked before anything is solved.

* `.npz` with `coords` and, if known, `tour` and `length`; with `demand` and `capacity` it is CVRP (row 0 the depot),
  whose solutions are `node` (customers in visiting order) and `via_depot` (1: reached through the depot);
  `instances.arrays` says what makes it another one of the 16 VRPs;
* `.txt` as LEHD, BQ-NCO and their kin have it, a line for each instance (`instances.lists` says which);
* `.txt` of Solomon's instances with time windows (VRPTW), or a folder of them, with `.sol` beside them if known;
* `.pkl` as Kool et al. (2019) have it: a list of lists of [x, y], or arrays, or for the CVRP of (depot, customers,
  demands, capacity); or as MVMoE has the 16 VRPs; read without executing anything;
* `.tsp` and `.vrp` files of TSPLIB and VRPLIB, or a folder of them, with `.tour` and `.sol` beside them if known.

Instances are counted from 0 in messages.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.datasets.benchmarks import optimum_of
from neuroute.instances.arrays import agree
from neuroute.instances.instance import Instance
from neuroute.instances.instances import Instances
from neuroute.instances.lists import read_lehd, read_npz, read_pickled
from neuroute.instances.sections import read_text, stated_scale
from neuroute.instances.solomon import SIZES, is_solomon, parse_solomon, stated_customers
from neuroute.instances.tsplib import is_explicit, parse_explicit, read_solution, read_tour, read_tsplib, read_vrplib

log = logging.getLogger(__name__)
FILES = (".tsp", ".vrp", ".txt")  # of one instance
ENDINGS = (".npz", ".txt", ".pkl", ".pickle", ".tsp", ".vrp")


def load(path: str | Path, index: int | None = None) -> Instance:
    """Read one instance.

    Args:
        path: TSPLIB's .tsp or .atsp, VRPLIB's .vrp, each of coordinates or of distances, Solomon's .txt; or a file of
            many, .npz, .txt or .pkl (see `load_all`).
        index: which instance of a file of many, from 0; may be left out where there is one.

    Raises:
        NeurouteError: if the file cannot be read, or has no such instance.
    """
    every = load_all(path)
    if index is None and len(every) > 1:
        raise NeurouteError(f"{path}: holds {len(every)} instances; give the index of one, from 0, or take `load_all`")
    if index is not None and not 0 <= index < len(every):
        raise NeurouteError(f"{path}: no instance {index}; give an index from 0 to {len(every) - 1}")
    return every[index or 0]


def load_all(path: str | Path) -> list[Instance]:
    """Read all instances of a file or folder, smallest first.

    Args:
        path: what `load` reads, or a folder of .tsp or .vrp files.  Arrays in an .npz: `coords` (count, n, 2); with
            vehicles (count, 1 + n, 2), `demand` (count, 1 + n) and `capacity` (count,); see `neuroute.user.files`.

    Raises:
        NeurouteError: if something cannot be read, with the file, the line or instance, and how to mend it.
    """
    path = Path(path)
    if is_explicit(path):
        return [parse_explicit(read_text(path, "a TSPLIB or VRPLIB file"), str(path), path.stem)]
    return list(read_instances(path).members)


def read_instances(path: Path) -> Instances:
    """Return the instances, in coordinates, of a file or folder.

    Raises NeurouteError, with file and instance, if the format is unknown, coordinates are no instance, a solution is
    none, or lengths are not those of the solutions.
    """
    if path.is_dir():
        return _folder(path)
    if path.suffix not in ENDINGS:
        raise NeurouteError(
            f"{path}: instances are read from {', '.join(ENDINGS)}, or a folder of .tsp, .vrp or Solomon's .txt files"
        )
    if path.suffix == ".npz":
        return read_npz(path)
    if path.suffix in (".pkl", ".pickle"):
        return read_pickled(path)
    if path.suffix == ".txt" and not is_solomon(text := read_text(path, "a text file of instances")):
        return read_lehd(path, text)
    return Instances(path.stem, (_one(path),))


def _folder(path: Path) -> Instances:
    """All .tsp files of a folder, else all .vrp, else all .txt; what is not read is left out with a line."""
    files = next((matches for ending in FILES if (matches := sorted(path.glob(f"*{ending}")))), [])
    for file in sorted(path.iterdir()):
        if file.suffix.lower() in (".tsp", ".vrp") and file not in files:
            log.warning("%s: of a folder its .tsp files are read, else its .vrp files; left out", file)
    members: list[Instance] = []
    for file in files:
        try:
            members.append(_one(file))
        except NeurouteError as error:
            if "is not read" not in str(error):  # a damaged file is no reason to measure on fewer
                raise
            log.warning("%s; left out", error)
    if not members:
        raise NeurouteError(f"{path}: a folder without .tsp, .vrp or Solomon's .txt files that can be read")
    return Instances(path.name, tuple(sorted(members, key=lambda each: (each.n, each.file or each.name))))


def _one(path: Path) -> Instance:
    """Return the instance of a file of one, with the best cost known, or the cost of the solution beside it.

    Coordinates that were multiplied to be written (`export`) are divided again, and their distances not rounded.
    """
    if path.suffix == ".txt":
        return _solomon(path)
    is_tsp = path.suffix == ".tsp"
    instance = (read_tsplib if is_tsp else read_vrplib)(path)
    instance = _with_solution(instance, path.with_suffix(".tour" if is_tsp else ".sol"))
    scale = stated_scale(read_text(path, "a file of TSPLIB or VRPLIB"))
    if scale is not None and instance.distances == "EUC_2D":
        points = instance.coords / scale
        return _solved(replace(instance, points=points, distances="EXACT_2D", library="", name=path.stem, numbers=None))
    best = optimum_of(instance, instance.library)
    if best is None:
        best = _solved(instance).best_known
    return replace(instance, file=path.stem, best_known=best, solution=None)


def _with_solution(instance: Instance, beside: Path) -> Instance:
    """Return the instance with the solution of a file, if there is one, whose cost is the one that it states."""
    if not beside.is_file():
        return instance
    if instance.problem == "tsp":
        return replace(instance, solution=read_tour(beside, instance))
    routes, cost = read_solution(beside)
    try:
        stops = instance.stops_of(routes)
        length = np.array([instance.length(stops)])
    except NeurouteError as error:
        raise NeurouteError(f"{beside}: {str(error).removeprefix(f'{instance.name}: ')}") from None
    agree(length, None if cost is None else np.array([cost]), beside)
    return replace(instance, solution=stops)


def _solved(instance: Instance) -> Instance:
    """Return the instance with the length of its solution, if it has one, as the best cost."""
    return instance if instance.solution is None else replace(instance, best_known=instance.length(instance.solution))


def _solomon(path: Path) -> Instance:
    """Return the instance of a file of Solomon's.

    Of a published one the best cost is the one known, of others the length of the .sol file beside it.  Raises
    NeurouteError, naming file, line and mend, if file or solution is none.
    """
    text = read_text(path, "one of Solomon's .txt files")
    count = stated_customers(text)
    instance = parse_solomon(text, str(path), path.stem, SIZES if count is None else (count,))
    if instance.vehicles is not None and instance.vehicles < instance.n:
        what = "%s: its number of vehicles (%d) is ignored; routes are as many as they need be"
        log.warning(what, path, instance.vehicles)
    best = optimum_of(instance, "solomon")
    if best is not None:
        return replace(instance, file=path.stem, best_known=best)
    return _solved(_with_solution(replace(instance, library=""), path.with_suffix(".sol")))


def gather(
    source: Instances | Instance | str | Path | np.ndarray | Sequence[Instance | str | Path], name: str = "instances"
) -> Instances:
    """Return instances of one problem, as they are evaluated.

    Raises NeurouteError if there are none, they are of several problems, or have no coordinates.
    """
    if isinstance(source, Instances):
        return source
    if isinstance(source, str | Path):
        return read_instances(Path(source))
    every = [as_instance(each) for each in ([source] if isinstance(source, Instance) else source)]
    if len({each.variant for each in every}) != 1:
        kinds = ", ".join(sorted({each.variant for each in every})) or "none"
        raise NeurouteError(f"{name}: instances of one problem are evaluated together, not of {kinds}; split the list")
    for each in every:
        _ = each.coords  # which are asked for of an instance in distances
    return Instances(name, tuple(every))


def as_instance(source: Instance | str | Path | np.ndarray) -> Instance:
    """Return an instance as it is, of a file, or of coordinates (n, 2).

    Raises NeurouteError for a list of instances, and what is none.
    """
    if isinstance(source, Instance):
        return source
    if isinstance(source, list) and source and isinstance(source[0], Instance):
        raise NeurouteError(f"a list of {len(source)}, where one instance is solved; give one of them")
    return load(source) if isinstance(source, str | Path) else Instance.from_arrays(source)
