"""Public benchmark instances: which there are, what they hold, and which lie in a folder or come with the package.

`<benchmark>.csv` lists a benchmark's instances: nodes, edge type, the best cost known and a digest of the content, so
that a file is what it says it is.  `libraries` says what its files are like.

* `tsplib`: TSPLIB's symmetric instances with Euclidean coordinates; the costs are the optima of TSPLIB's own list.
* `cvrplib`: of CVRPLIB, the sets X (Uchoa et al., 2017), Arnold (Antwerp1 to Flanders2; also called XXL or AGS) and Li
  (Li_21 to Li_32).  The costs of X and Arnold are those of CVRPLIB's best solutions, each computed anew from its
  routes; Li's are those that its files state, and keep to a limit on routes' lengths that learned solvers ignore.
* `national`, `vlsi`, `dimacs`: the TSPs of these names in the survey of neural routing solvers (Ba et al., arXiv
  2602.21761), with the best lengths known that it uses; no digests of their content are known, so files are checked by
  nodes and edge type alone.  Those of `dimacs` are made from their names (`dimacs.py`).
* `solomon`: Solomon's instances with time windows of 100 customers, classes R1, RC1 and RC2; the costs are the best
  known ones that Table 7 of mvmoe prints, of ways that are cut after one decimal.
"""

import csv
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import cast

from neuroute.core.dotted import resolve
from neuroute.core.errors import NeurouteError
from neuroute.core.files import read_json, write_json
from neuroute.problems.instances.instance import Instance
from neuroute.problems.instances.sections import read_text
from neuroute.problems.public_instances import PACKAGED, list_file, packaged_files

BENCHMARKS = ("tsplib", "cvrplib", "solomon")
COMPARED = ("national", "vlsi", "dimacs")  # on which `neuroute compare` alone measures
LARGE = 1000  # nodes from which on a study is one of large instances


@dataclass(frozen=True)
class PublishedInstance:
    """A published instance: `optimum`, or the best cost known, is in the library's own distances."""

    name: str
    nodes: int  # with the depot
    edge_type: str
    optimum: float
    sha256: str  # of the content, not of the file; empty where it is not known
    set: str = ""  # of the instances that were published together


@dataclass(frozen=True)
class Library:
    """What the files of a benchmark are like, where they come from, and how a model meets their instances."""

    name: str
    title: str
    problems: tuple[str, ...]  # whose models solve its instances
    suffix: str
    folders: tuple[str, ...]  # in which a copy may lie, inside the folder that is named
    home: str
    path: Callable[[PublishedInstance], str]  # from there to the file
    parse: Callable[[str, str, str], Instance]  # (text, where, name)
    sha256: Callable[[Instance], str]  # of what makes an instance the published one
    make: Callable[[PublishedInstance], str] | None = None  # its text, where a generator stands for files


def library(benchmark: str) -> Library:
    """Return the library of a benchmark.  Raises NeurouteError for an unknown one."""
    if benchmark not in (*BENCHMARKS, *COMPARED):
        raise NeurouteError(f"unknown benchmark '{benchmark}'; known: {', '.join((*BENCHMARKS, *COMPARED))}")
    return cast(Library, resolve(f"neuroute.datasets.libraries:{benchmark.upper()}"))


@cache
def published_instances(benchmark: str = "tsplib") -> dict[str, PublishedInstance]:
    """Return a benchmark's instances by name, smallest first."""
    with list_file(benchmark).open(newline="") as file:
        rows = [
            PublishedInstance(
                r["name"],
                int(r["nodes"]),
                r["edge_type"],
                float(r.get("optimum") or r["best_known"]),
                r.get("sha256", ""),
                r.get("set", ""),
            )
            for r in csv.DictReader(file)
        ]
    return {k.name: k for k in sorted(rows, key=lambda k: (k.nodes, k.name))}


def study_instances(
    max_nodes: int = 5000,
    min_nodes: int = 0,
    benchmark: str = "tsplib",
    sets: Collection[str] = (),
    names: Collection[str] = (),
) -> list[PublishedInstance]:
    """Return the instances of a study of `min_nodes` to below `max_nodes` nodes, of these sets and names or all.

    CVRPLIB: all of them; 14 from 1,001 nodes on (sit, Table 2).  TSPLIB: EUC_2D, 70 below 5,000 nodes (scaling, Table
    6); a study of large instances alone, from 1,000 nodes on, also takes CEIL_2D, whose distances are rounded up: so it
    has 33, 23 of them up to 5,000 nodes, as many as sit's Table 2, which calls all of them EUC_2D.
    linhp318, which is lin318 with an edge that must be in the tour, is not among those that are known.
    """
    candidates = [
        k
        for k in published_instances(benchmark).values()
        if min_nodes <= k.nodes < max_nodes and (not sets or k.set in sets) and (not names or k.name in names)
    ]
    if benchmark != "tsplib":
        return candidates
    types = ("EUC_2D", "CEIL_2D") if min_nodes >= LARGE else ("EUC_2D",)
    return [k for k in candidates if k.edge_type in types]


def verify(instance: Instance, expected: PublishedInstance, where: str, benchmark: str = "tsplib") -> None:
    """Raises NeurouteError if this is not the published instance."""
    about = library(benchmark)
    n = instance.nodes
    if expected.sha256:
        same = about.sha256(instance) == expected.sha256
    else:
        same = (n, instance.distances) == (expected.nodes, expected.edge_type)
    if not same:
        raise NeurouteError(
            f"{where}: not {about.title}'s {expected.name} ({expected.nodes} nodes, {expected.edge_type}): "
            f"{n} nodes, {instance.distances}, other content; `neuroute fetch {benchmark}` gets the original"
        )


def instance_file(folder: Path, name: str, benchmark: str = "tsplib") -> Path:
    """Return where a file of a copy is, or would be: in `folder`, or in one of the library's folders inside it."""
    about = library(benchmark)
    places = [folder / sub / f"{name}{about.suffix}" for sub in (*about.folders, "")]
    return next((path for path in places if path.is_file()), places[-1])


def read_known(folder: Path, name: str, benchmark: str = "tsplib") -> Instance:
    """Return a published instance of a folder.  Raises NeurouteError if it is missing, altered or unreadable."""
    path, about = instance_file(folder, name, benchmark), library(benchmark)
    expected = published_instances(benchmark)[name]
    if path.is_file():
        text = read_text(path, f"a {about.title} {about.suffix} file")
    elif about.make:
        text = about.make(expected)
    else:
        raise NeurouteError(f"{path}: no such file; `neuroute fetch {benchmark}` gets it")
    instance = about.parse(text, str(path), name)
    verify(instance, expected, str(path), benchmark)
    return instance


def place_of(folder: Path | None, name: str, benchmark: str) -> Path | None:
    """Return the folder that has an instance: `folder`, else the package's, also if it is made; None if neither has."""
    if folder is not None and instance_file(folder, name, benchmark).is_file():
        return folder
    return PACKAGED if name in packaged_files(benchmark) or library(benchmark).make else None


def survey(folder: Path, benchmark: str = "tsplib") -> dict[str, str]:
    """Return what of a benchmark a folder lacks: name -> why."""
    missing = {}
    for name in published_instances(benchmark):
        try:
            read_known(folder, name, benchmark)
        except NeurouteError as error:
            missing[name] = str(error)
    return missing


def write_manifest(path: Path, folder: Path, missing: dict[str, str], benchmark: str = "tsplib") -> None:
    """Write where the benchmark is and what of it is there, for the jobs that measure on it."""
    available = [name for name in published_instances(benchmark) if name not in missing]
    write_json(path, {"benchmark": benchmark, "folder": str(folder), "available": available, "missing": missing})


def read_manifest(path: Path, benchmark: str = "tsplib") -> tuple[Path, list[str]]:
    """Return the folder, and the names of the instances in it."""
    manifest = read_json(path, f"make it with `neuroute fetch {benchmark}`", "folder", "available")
    return Path(manifest["folder"]), [
        str(name) for name in manifest["available"] if name in published_instances(benchmark)
    ]


def optimum_of(instance: Instance, benchmark: str) -> float | None:
    """Return the published optimum, or best cost known, of an instance whose content is the benchmark's; else None."""
    digest = library(benchmark).sha256(instance)
    return next((k.optimum for k in published_instances(benchmark).values() if k.sha256 == digest), None)
