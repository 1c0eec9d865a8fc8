"""Instances and their solutions as files for other people's code; `evaluate --data` reads them with the same gaps.

Solomon's distances are not rounded, and numbers are written as they are.  TSPLIB and VRPLIB round distances to whole
numbers, so coordinates of others are written times a power of ten, which a comment of the file states: the largest has
six digits.  Read back, with the scale taken off, each lies within half of the last digit, and a solution over
coordinates up to 1 differs by less than 1.5e-6 a node.
"""

import math
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.core.files import check_writable, name_aside, write_text, write_whole
from neuroute.problems.instances.instance import Instance, Instances
from neuroute.problems.instances.tsplib import format_instance, format_solomon, format_solution, format_tour
from neuroute.problems.vrp import to_routes

DIGITS = 6  # of the largest coordinate in TSPLIB's and VRPLIB's files
PLANAR = ("EUC_2D", "CEIL_2D", "EXACT_2D")  # files whose coordinates other formats may hold


def export(instances: Instances, to: Path, form: str | None = None, option: str = "--to") -> str:
    """Write instances, with their solutions where the format has room, and return a line that says what was written.

    form: `npz`, `lehd`, or `tsplib`, `vrplib` or `solomon`, which are folders; None: as `to` ends.
    option: what messages call `to`.  Raises NeurouteError, before anything is written, if the format does not hold such
    instances, or nothing can be written there.
    """
    form = check_export(instances, to, form, option)
    if form in ENDINGS.values():
        instances = replace(instances, members=tuple(map(_not_rounded, instances.members)))
    FORMATS[form][1](instances, to)
    solved = sum(each.solution is not None for each in instances.members)
    lost = form != "npz" and solved < sum(each.best_known is not None for each in instances.members)
    what = f"{instances.count} {', '.join(sorted({each.variant for each in instances.members}))} instances"
    note = "; reference lengths are left out (an .npz keeps them)" if lost else ""
    return f"{what} of {instances.name}, {solved or 'none'} with a solution, in {to} ({form}){note}"


def check_export(instances: Instances, to: Path, form: str | None, option: str = "--to") -> str:
    """Return the format.  Raises NeurouteError if instances cannot be written so, or not there."""
    of_ending = ENDINGS.get(to.suffix)
    if form and of_ending and form != of_ending:
        raise NeurouteError(f"{option} {to}: a {to.suffix} is of format {of_ending}, not {form}; leave one of them out")
    form = form or of_ending
    if form not in FORMATS:
        raise NeurouteError(
            f"--format {form or 'is missing'}: give one of {', '.join(FORMATS)}, or let {option} end in "
            f"{', '.join(ENDINGS)}"
        )
    variants = {each.variant for each in instances.members} if instances.problem == "vrp" else set()
    others = [name for name, (problems, _) in FORMATS.items() if {instances.problem, *variants} & set(problems)]
    if form not in others:
        what = ", ".join(sorted(variants)) or instances.problem.upper()
        raise NeurouteError(f"--format {form}: cannot hold {what}; give one of {', '.join(others)}")
    for each in instances.members:
        if each.distances not in PLANAR:
            raise NeurouteError(f"{each.file}: distances of {each.distances} are not of the plane; copy the file")
    if form == "npz" and len({each.n for each in instances.members}) > 1:
        raise NeurouteError(
            f"{instances.name}: has several sizes, an .npz holds one; use --format tsplib, vrplib or solomon"
        )
    if form not in ENDINGS.values():
        if to.exists() and (not to.is_dir() or any(to.iterdir())):
            raise NeurouteError(f"{option} {to}: exists; name a new folder")
        check_writable(option, to.with_name(f"{to.name}.part"))
    else:
        check_writable(option, to)
    return form


def _not_rounded(instance: Instance) -> Instance:
    """Return an instance of a library with its solution's length as a file without a library's rules measures it."""
    if not instance.library or instance.solution is None:
        return instance
    return replace(instance, best_known=instance.length(instance.solution, rounded=False))


def write_npz(to: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write arrays as one compressed file, whole or not at all."""
    write_whole(to, lambda file: np.savez_compressed(file, allow_pickle=False, **arrays))


def instance_arrays(instances: Instances) -> dict[str, np.ndarray]:
    """Return all that makes instances of one size what they are, without solutions, by its names in an .npz."""
    coords, vrp = instances.coords, instances.vrp
    short = coords.astype(np.float32)
    arrays: dict[str, np.ndarray | None] = {"coords": short if (short == coords).all() else coords}
    arrays |= {key: instances.stacked(key) for key in ("demand", "capacity")}
    if vrp is not None:
        arrays |= {"variant": np.array(str(vrp.variant)), "open": np.array(vrp.open)}
        arrays |= {"limit": vrp.limit, "windows": vrp.windows, "service": vrp.service}
    return {key: values for key, values in arrays.items() if values is not None}


def solution_arrays(instances: Instances) -> dict[str, np.ndarray]:
    """Return solutions and their lengths, as far as they are known, by their names in an .npz."""
    arrays: dict[str, np.ndarray] = {}
    solutions, reference = instances.solutions, instances.reference
    if solutions is not None and instances.problem == "tsp":
        arrays["tour"] = solutions
    elif solutions is not None:
        arrays |= {"node": solutions[:, 0], "via_depot": solutions[:, 1]}
    if reference is not None:
        arrays["length"] = reference
    return arrays


def _lehd(instances: Instances, to: Path) -> None:
    """As `instances.lists.read_lehd` says."""
    lines = [_tsp_line(each) if each.demand is None else _cvrp_line(each) for each in instances.members]
    write_text(to, "\n".join(lines) + "\n")


def _tsp_line(instance: Instance) -> str:
    points = " ".join(f"{x!r} {y!r}" for x, y in instance.coords.tolist())
    tour = [] if instance.solution is None else instance.solution.tolist()
    right = f"output {' '.join(str(node + 1) for node in (*tour, tour[0]))}" if tour else ""
    return f"{points} {right}"


def _cvrp_line(instance: Instance) -> str:
    depot, *customers = instance.coords.tolist()
    fields: dict[str, list[float]] = {"depot": depot, "customer": [x for point in customers for x in point]}
    fields |= {"capacity": [int(instance.vrp.capacity[0])], "demand": instance.vrp.demand[0].tolist()}
    if instance.solution is not None and instance.best_known is not None:
        fields |= {"cost": [instance.best_known], "node_flag": instance.solution.ravel().tolist()}
    return ",".join(",".join([name, *map(repr, values)]) for name, values in fields.items())


def _library(instances: Instances, to: Path) -> None:
    """TSPLIB's or VRPLIB's files.

    Where distances are not rounded, coordinates are times the power of ten that leaves the largest with DIGITS digits.
    """
    exact = [each.coords for each in instances.members if each.distances == "EXACT_2D"]
    largest = max((float(np.abs(values).max()) for values in exact), default=1.0)
    scale = 10.0 ** (DIGITS - math.ceil(math.log10(largest)))

    def files(name: str, each: Instance) -> dict[str, str]:
        whole, comment = replace(each, name=name, numbers=None), ""
        if each.distances == "EXACT_2D":
            whole = replace(whole, points=np.rint(each.coords * scale), distances="EUC_2D", library="")
            comment = f"coordinates times {scale:g}"
        texts = {".tsp" if each.demand is None else ".vrp": format_instance(whole, comment)}
        if each.solution is not None and each.demand is None:
            texts[".tour"] = format_tour(f"{name}.tour", whole, each.solution)
        elif each.solution is not None:
            texts[".sol"] = format_solution(to_routes(each.solution), whole.length(each.solution))
        return texts

    _folder(instances, to, files)


def _solomon(instances: Instances, to: Path) -> None:
    def files(name: str, each: Instance) -> dict[str, str]:
        texts = {".txt": format_solomon(replace(each, name=name))}
        if each.solution is not None:
            texts[".sol"] = format_solution(to_routes(each.solution), each.length(each.solution, rounded=False))
        return texts

    _folder(instances, to, files)


def _folder(instances: Instances, to: Path, files: Callable[[str, Instance], dict[str, str]]) -> None:
    """Write the files of each instance aside, then rename the folder: it appears whole."""
    temporary = name_aside(to)
    try:
        temporary.mkdir(parents=True)
        for number, each in enumerate(instances.members):
            stem = (each.file or f"{instances.name}_{number:05d}").replace("/", "_")
            for ending, text in files(stem, each).items():
                (temporary / f"{stem}{ending}").write_text(text, encoding="utf-8")
        os.replace(temporary, to)
    except OSError as error:
        raise NeurouteError(f"{to}: cannot be written ({error.strerror}); choose another place") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


# format -> problems, or variants, that it holds, and what writes it
FORMATS: dict[str, tuple[tuple[str, ...], Callable[[Instances, Path], None]]] = {
    "npz": (("tsp", "cvrp", "vrp"), lambda i, to: write_npz(to, {**instance_arrays(i), **solution_arrays(i)})),
    "lehd": (("tsp", "cvrp"), _lehd),
    "tsplib": (("tsp",), _library),
    "vrplib": (("cvrp",), _library),
    "solomon": (("VRPTW",), _solomon),
}
ENDINGS = {".npz": "npz", ".txt": "lehd"}
