"""Instances and their solutions as files for other people's code; `evaluate --data` reads them with the same gaps.

Solomon's distances are not rounded, and numbers are written as they are.  TSPLIB and VRPLIB round distances to whole
numbers, so coordinates are written times a power of ten, which a comment of the file states: the largest has six
digits.  Read back, with the scale taken off, each lies within half of the last digit, and a solution over coordinates
up to 1 differs by less than 1.5e-6 a node.
"""

import math
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.core.files import name_aside, write_text, write_whole
from neuroute.datasets.solomon import SolomonInstance, format_solomon
from neuroute.datasets.tsplib import TsplibInstance, format_tour, format_tsplib
from neuroute.datasets.vrplib import VrplibInstance, format_solution, format_vrplib
from neuroute.problems.vrp import lengths, to_routes
from neuroute.user.instances import Group, Instances
from neuroute.user.outputs import check_writable

DIGITS = 6  # of the largest coordinate in TSPLIB's and VRPLIB's files
PLANAR = ("EUC_2D", "CEIL_2D", "EXACT_2D")  # files whose coordinates other formats may hold


def export(instances: Instances, to: Path, form: str | None = None, option: str = "--to") -> str:
    """Write instances, with their solutions where the format has room, and return a line that says what was written.

    form: `npz`, `lehd`, `pickle`, or `tsplib`, `vrplib` or `solomon`, which are folders; None: as `to` ends.
    option: what messages call `to`.  Raises NeurouteError, before anything is written, if the format does not hold such
    instances, or nothing can be written there.
    """
    form = check_export(instances, to, form, option)
    FORMATS[form][1](instances, to)
    count, solved = sum(g.count for g in instances.groups), sum(g.count for g in instances.groups if _solved(g, form))
    what = f"{count} {instances.problem.upper()} instances of {instances.name}"
    return f"{what}, {solved or 'none'} with a solution, in {to} ({form})"


def check_export(instances: Instances, to: Path, form: str | None, option: str = "--to") -> str:
    """Return the format.  Raises NeurouteError if instances cannot be written so, or not there."""
    form = form or ENDINGS.get(to.suffix)
    if form not in FORMATS:
        raise NeurouteError(
            f"--format {form or 'is missing'}: give one of {', '.join(FORMATS)}, or let {option} end in "
            f"{', '.join(ENDINGS)}"
        )
    variants = {str(group.vrp.variant) for group in instances.groups if group.vrp is not None}
    others = [name for name, (problems, _) in FORMATS.items() if {instances.problem, *variants} & set(problems)]
    if form not in others:
        what = ", ".join(sorted(variants)) or instances.problem.upper()
        raise NeurouteError(f"--format {form}: holds no {what} that is read back; give one of {', '.join(others)}")
    for group in instances.groups:
        if group.file is not None and group.file.edge_type not in PLANAR:
            raise NeurouteError(
                f"{group.name}: distances of {group.file.edge_type} are not of the plane; copy the file"
            )
    if form == "npz" and len({group.n for group in instances.groups}) > 1:
        raise NeurouteError(
            f"{instances.name}: has several sizes, of which an .npz holds one; --format tsplib, vrplib or solomon"
        )
    if form not in ENDINGS.values():
        if to.exists() and (not to.is_dir() or any(to.iterdir())):
            raise NeurouteError(f"{option} {to}: is there already; name a new folder")
        check_writable(option, to.with_name(f"{to.name}.part"))
    else:
        check_writable(option, to)
    return form


def _solved(group: Group, form: str) -> bool:
    return group.solutions is not None and form != "pickle"


# -- one file for all -------------------------------------------------------------------------------------------------


def _npz(instances: Instances, to: Path) -> None:
    write_npz(to, {**instance_arrays(instances), **solution_arrays(instances)})


def write_npz(to: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write arrays as one compressed file, whole or not at all."""
    write_whole(to, lambda file: np.savez_compressed(file, allow_pickle=False, **arrays))


def instance_arrays(instances: Instances) -> dict[str, np.ndarray]:
    """Return all that makes instances of one size what they are, without solutions, by its names in an .npz."""
    group = Group.joined([_without_file(g) for g in instances.groups], instances.name)
    arrays: dict[str, np.ndarray] = {"coords": _short(group.coords)}
    if group.demand is not None and group.capacity is not None:
        arrays |= {"demand": group.demand, "capacity": group.capacity}
    if group.vrp is not None:
        arrays |= {"variant": np.array(str(group.vrp.variant)), "open": np.array(group.vrp.open)}
        parts = {"limit": group.vrp.limit, "windows": group.vrp.windows, "service": group.vrp.service}
        arrays |= {key: values for key, values in parts.items() if values is not None}
    return arrays


def solution_arrays(instances: Instances) -> dict[str, np.ndarray]:
    """Return solutions and their lengths, as far as they are known, by their names in an .npz."""
    group = Group.joined([_without_file(g) for g in instances.groups], instances.name)
    arrays: dict[str, np.ndarray] = {}
    if group.solutions is not None and group.problem == "tsp":
        arrays["tour"] = group.solutions
    elif group.solutions is not None:
        arrays |= {"node": group.solutions[:, 0], "via_depot": group.solutions[:, 1]}
    if group.reference is not None:
        arrays["length"] = group.reference
    return arrays


def _lehd(instances: Instances, to: Path) -> None:
    """As `user.lists.read_lehd` says."""
    lines = []
    for group in instances.groups:
        for i in range(group.count):
            solution = None if group.solutions is None else group.solutions[i].tolist()
            lines.append(_tsp_line(group, i, solution) if group.demand is None else _cvrp_line(group, i, solution))
    write_text(to, "\n".join(lines) + "\n")


def _tsp_line(group: Group, i: int, tour: list[int] | None) -> str:
    points = " ".join(f"{x!r} {y!r}" for x, y in group.coords[i].tolist())
    right = "" if tour is None else f"output {' '.join(str(node + 1) for node in (*tour, tour[0]))}"
    return f"{points} {right}"


def _cvrp_line(group: Group, i: int, solution: list[list[int]] | None) -> str:
    assert group.demand is not None
    assert group.capacity is not None
    depot, *customers = group.coords[i].tolist()
    fields: dict[str, list[float]] = {"depot": depot, "customer": [x for point in customers for x in point]}
    fields |= {"capacity": [int(group.capacity[i])], "demand": group.demand[i].tolist()}
    if solution is not None and group.reference is not None:
        fields |= {"cost": [float(group.reference[i])], "node_flag": [x for row in solution for x in row]}
    return ",".join(",".join([name, *map(repr, values)]) for name, values in fields.items())


def _pickle(instances: Instances, to: Path) -> None:
    """As Kool et al. (2019): a TSP is a list of [x, y], a CVRP (depot, customers, demands, capacity)."""
    data: list[object] = []
    for group in instances.groups:
        for i, points in enumerate(group.coords.tolist()):
            if group.demand is None or group.capacity is None:
                data.append(points)
            else:
                data.append((points[0], points[1:], group.demand[i, 1:].tolist(), int(group.capacity[i])))
    write_whole(to, lambda file: pickle.dump(data, file, pickle.HIGHEST_PROTOCOL))


# -- a folder, with a file for each -----------------------------------------------------------------------------------


def _tsplib(instances: Instances, to: Path) -> None:
    def files(name: str, group: Group, i: int, scale: float) -> dict[str, str]:
        instance = TsplibInstance(name, "EUC_2D", np.rint(group.coords[i] * scale))
        texts = {".tsp": format_tsplib(instance, _comment(scale))}
        if group.solutions is not None:
            texts[".tour"] = format_tour(f"{name}.tour", instance, group.solutions[i])
        return texts

    _folder(instances, to, files)


def _vrplib(instances: Instances, to: Path) -> None:
    def files(name: str, group: Group, i: int, scale: float) -> dict[str, str]:
        assert group.demand is not None
        assert group.capacity is not None
        points = np.rint(group.coords[i] * scale)
        instance = VrplibInstance(name, "EUC_2D", points, group.demand[i], int(group.capacity[i]))
        texts = {".vrp": format_vrplib(instance, _comment(scale))}
        if group.solutions is not None:
            routes = to_routes(group.solutions[i])
            texts[".sol"] = format_solution(routes, instance.cost(routes))
        return texts

    _folder(instances, to, files)


def _solomon(instances: Instances, to: Path) -> None:
    def files(name: str, group: Group, i: int, scale: float) -> dict[str, str]:
        assert group.vrp is not None
        vrp = group.vrp[i : i + 1]
        assert vrp.windows is not None
        service = np.zeros(vrp.customers + 1) if vrp.service is None else vrp.service[0]
        columns = vrp.coords[0], vrp.demand[0], vrp.windows[0], service
        texts = {".txt": format_solomon(SolomonInstance(name, int(vrp.capacity[0]), *columns))}
        if group.solutions is not None:
            cost = float(lengths(vrp, group.solutions[i : i + 1])[0])
            texts[".sol"] = format_solution(to_routes(group.solutions[i]), cost)
        return texts

    _folder(instances, to, files)


def _folder(instances: Instances, to: Path, files: Callable[[str, Group, int, float], dict[str, str]]) -> None:
    """Write the files of each instance aside, then rename the folder: it appears whole."""
    temporary = name_aside(to)
    scale = _scale(instances)
    try:
        temporary.mkdir(parents=True)
        number = 0
        for group in instances.groups:
            for i in range(group.count):
                stem = (
                    group.name if group.count == 1 and len(instances.groups) > 1 else f"{instances.name}_{number:05d}"
                )
                for ending, text in files(stem.replace("/", "_"), group, i, scale).items():
                    (temporary / f"{stem.replace('/', '_')}{ending}").write_text(text)
                number += 1
        os.replace(temporary, to)
    except OSError as error:
        raise NeurouteError(f"{to}: cannot be written ({error.strerror}); choose another place") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _scale(instances: Instances) -> float:
    """Return the power of ten that leaves the largest coordinate with so many digits; 1 for whole coordinates."""
    coords = [group.coords for group in instances.groups]
    if all((values % 1 == 0).all() for values in coords):
        return 1.0
    largest = max(float(np.abs(values).max()) for values in coords)
    return 10.0 ** (DIGITS - math.ceil(math.log10(largest)))


def _comment(scale: float) -> str:
    return "" if scale == 1 else f"coordinates times {scale:g}"


def _without_file(group: Group) -> Group:
    return Group(group.name, group.coords, group.reference, group.demand, group.capacity, None, group.vrp, group.seen,
                 group.solutions)  # fmt: skip


def _short(coords: np.ndarray) -> np.ndarray:
    """Return float32 coordinates where they are as exact."""
    return short if ((short := coords.astype(np.float32)) == coords).all() else coords


# format -> problems, or variants, that it holds, and what writes it
FORMATS: dict[str, tuple[tuple[str, ...], Callable[[Instances, Path], None]]] = {
    "npz": (("tsp", "cvrp", "vrp"), _npz),
    "lehd": (("tsp", "cvrp"), _lehd),
    "pickle": (("tsp", "cvrp"), _pickle),
    "tsplib": (("tsp",), _tsplib),
    "vrplib": (("cvrp",), _vrplib),
    "solomon": (("VRPTW",), _solomon),
}
ENDINGS = {".npz": "npz", ".txt": "lehd", ".pkl": "pickle"}
