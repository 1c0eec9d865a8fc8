"""Instances that methods are compared on: sets of the public libraries, or files of one's own."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from neuroute import Instance
from neuroute.api.files import load_all
from neuroute.api.reference import LIBRARIES, listed, read_listed
from neuroute.core.errors import NeurouteError

SETS = tuple(LIBRARIES)
Places = Callable[[str], Path]  # a set -> the folder where its files are


@dataclass(frozen=True)
class Member:
    """An instance of a set, and the best cost known."""

    set: str
    name: str
    instance: Instance
    best_known: float

    @property
    def n(self) -> int:
        """Nodes (TSP) or customers (CVRP), as the survey counts."""
        return self.instance.n

    @cached_property
    def digest(self) -> str:
        """Of what there is to solve."""
        hashed = hashlib.sha256(self.instance.distances.encode())
        for array in (self.instance.coords, self.instance.demand, self.instance.capacity):
            hashed.update(b"" if array is None else np.ascontiguousarray(array, dtype="<f8").tobytes())
        return hashed.hexdigest()[:16]


def describe(member: Member) -> dict[str, Any]:
    """Return the columns of records that an instance gives."""
    about = {"problem": member.instance.problem, "set": member.set, "instance": member.name}
    return about | {"n": member.n, "best_known": member.best_known}


def describe_listed(names: Sequence[str], least: int, most: int) -> dict[str, dict[str, Any]]:
    """Return the same of all instances of named sets with `least` to `most` nodes, wherever their files are."""
    return {
        k.name: {"problem": k.problem, "set": name, "instance": k.name, "n": k.n, "best_known": k.best_known}
        for name in names
        if name in SETS
        for k in listed(name)
        if least <= k.n <= most
    }


def collect(
    names: Sequence[str], least: int, most: int, places: Places, ignore: Sequence[str] = ()
) -> tuple[list[Member], list[str]]:
    """Return the instances of sets with `least` to `most` nodes, smallest first, and a line for each that is not whole.

    Names are of `SETS`, or of files and folders of one's own; `places`: where a library's files are, beside those that
    come with the package; ignore: keys and sections that are left out of files of one's own.  Raises NeurouteError for
    an unknown set, an altered file, an instance without a best cost, or if none is left.
    """
    members, notes = list[Member](), list[str]()
    for name in dict.fromkeys(names):
        if name in LIBRARIES:
            listed_here = [k for k in listed(name) if least <= k.n <= most]
            folder = places(name) if listed_here else Path()
            found = {k: instance for k in listed_here if (instance := read_listed(k, folder))}
            more = [Member(name, k.name, instance, k.best_known) for k, instance in found.items()]
            lacking = [k.name for k in listed_here if k not in found]
        elif Path(name).exists():
            more, lacking = _of_file(Path(name), least, most, ignore), []
            if ignored := sorted({section for m in more for section in m.instance.ignored}):
                notes.append(f"Instances of {name} are without {', '.join(ignored)} of their files.")
        else:
            raise NeurouteError(f"--set {name}: no such file or folder, nor one of the sets {', '.join(SETS)}")
        members += more
        if lacking:
            notes.append(
                f"Of {name} {len(more)} of {len(more) + len(lacking)} instances of {least} to {most} nodes are there; "
                f"not {_some(lacking)}."
            )
    if not members:
        why = f" ({notes[0].rstrip('.')})" if notes else ""
        raise NeurouteError(
            f"--set {','.join(names)}: no instance of {least} to {most} nodes is there{why}; name a folder with copies "
            "(--benchmarks), or widen --min-nodes and --max-nodes"
        )
    if doubled := first_double([(m.instance.problem, m.name) for m in members]):
        raise NeurouteError(f"--set: two instances are called {doubled[1]}; rename one, or leave one of its sets out")
    return sorted(members, key=lambda m: (m.instance.problem != "tsp", m.n, m.name)), notes


def _of_file(path: Path, least: int, most: int, ignore: Sequence[str]) -> list[Member]:
    members = []
    for number, each in enumerate(load_all(path, ignore)):
        if each.problem not in ("tsp", "cvrp") or each.ways is not None:
            raise NeurouteError(f"--set {path}: {each.name} is a {each.variant}; coordinates of a TSP or CVRP go here")
        if each.best_known is None:
            raise NeurouteError(
                f"--set {path}: no best cost of {each.name} is known; put a solution beside it (.tour, .sol), or into "
                "the .npz (tour or length)"
            )
        if least <= each.n <= most:
            name = each.name if each.file else f"{path.stem}_{number}"
            members.append(Member(path.stem, name, each, each.best_known))
    return members


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def first_double(values: Sequence[tuple[str, str]]) -> tuple[str, str] | None:
    """Return the first pair that stands there a second time; None if each is there once."""
    return next((value for i, value in enumerate(values) if value in values[:i]), None)
