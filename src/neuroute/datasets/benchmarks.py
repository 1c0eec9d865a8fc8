"""Public benchmark instances: which there are, what they hold, and which lie in a folder or come with the package.

`<benchmark>.csv` lists a benchmark's instances: nodes, edge type, the best cost known and a digest of the content, so
that a file is what it says it is.  `Library` says what its files are like.

* `tsplib`: TSPLIB's symmetric instances with Euclidean coordinates; the costs are the optima of TSPLIB's own list.
* `cvrplib`: of CVRPLIB, the sets X (Uchoa et al., 2017), Arnold (Antwerp1 to Flanders2; also called XXL or AGS) and Li
  (Li_21 to Li_32).  The costs of X and Arnold are those of CVRPLIB's best solutions, each computed anew from its
  routes; Li's are those that its files state, and keep to a limit on routes' lengths that learned solvers ignore.
* `national`, `vlsi`, `dimacs`: the TSPs of these names in the survey of neural routing solvers (Ba et al., arXiv
  2602.21761), with the best lengths known that it uses; no digests of their content are known, so files are checked by
  nodes and edge type alone.  Those of `dimacs` are made from their names (`make_clustered`).
* `solomon`: Solomon's instances with time windows of 100 customers, classes R1, RC1 and RC2; the costs are the best
  known ones that Table 7 of mvmoe prints, of ways that are cut after one decimal.
"""

import csv
import hashlib
import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import cast

import numpy as np

from neuroute.core.dotted import resolve
from neuroute.core.errors import NeurouteError
from neuroute.core.files import read_json, write_json
from neuroute.problems.instances.instance import Instance
from neuroute.problems.instances.sections import read_text
from neuroute.problems.instances.tsplib import parse

LISTS = Path(__file__).resolve().parents[1] / "datasets"
PACKAGED = LISTS / "instances"  # a folder for each benchmark; its README says where they are from


def list_file(benchmark: str) -> Path:
    """Return the file that lists a benchmark's instances."""
    return LISTS / f"{benchmark}.csv"


@cache
def instance_names(benchmark: str) -> tuple[str, ...]:
    """Return the names of a benchmark's instances."""
    with list_file(benchmark).open(newline="") as file:
        return tuple(row["name"] for row in csv.DictReader(file))


@cache
def packaged_files(benchmark: str) -> dict[str, Path]:
    """Return the files of the instances that come with the package, by name."""
    return {path.stem: path for path in sorted((PACKAGED / benchmark).glob("*"))}


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
    return cast(Library, resolve(f"neuroute.datasets.benchmarks:{benchmark.upper()}"))


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


# -- the random clustered instances of the 8th DIMACS challenge, as its generator `portcgen` makes them --------------
# No server has these files, but each follows from its name: C3k.1 is that of 3,162 nodes with the seed 31621
# (C3k.0: 3162). Nearest-neighbour tours of what is made here have the lengths that a survey's logs state of the
# originals (Ba et al., arXiv 2602.21761), which hang on every node.

RANGE = 10**9  # of the random numbers
SIDE = 10**6  # of the square in which clusters have their centres
OF_A_CLUSTER = 100  # nodes, on average


class _Numbers:
    """The subtractive generator of Knuth (The Art of Computer Programming 2, 3.6), and normal numbers of it."""

    def __init__(self, seed: int) -> None:
        self._values, self._first, self._second = [0] * 55, 0, 24
        last, following = seed, 1
        self._values[0] = last
        for i in range(1, 55):
            place = 21 * i % 55
            self._values[place] = following
            following = (last - following) % RANGE
            last = self._values[place]
        self._spare: float | None = None
        for _ in range(165):
            self.draw()

    def draw(self) -> int:
        """Return a number from 0 to below `RANGE`."""
        self._first, self._second = (self._first - 1) % 55, (self._second - 1) % 55
        value = (self._values[self._first] - self._values[self._second]) % RANGE
        self._values[self._first] = value
        return value

    def normal(self) -> float:
        """Return a standard normal number (polar method: every second one is left from the pair before)."""
        if self._spare is not None:
            value, self._spare = self._spare, None
            return value
        square = 1.0
        while not 0 < square < 1:
            u, v = (2 * self.draw() / RANGE - 1 for _ in range(2))
            square = u * u + v * v
        stretch = math.sqrt(-2 * math.log(square) / square)
        self._spare = u * stretch
        return v * stretch


def make_clustered(about: PublishedInstance) -> str:
    """Return the file of an instance (C1k.0, ..., C100k.1), in TSPLIB's format."""
    number, n = int(about.name.partition(".")[2]), about.nodes
    numbers = _Numbers(10 * n + number if number else n)
    centres = [(numbers.draw() * SIDE // RANGE, numbers.draw() * SIDE // RANGE) for _ in range(n // OF_A_CLUSTER)]
    lines, spread = list[str](), SIDE / math.sqrt(n)
    for node in range(1, n + 1):
        x, y = centres[numbers.draw() * len(centres) // RANGE]
        lines.append(f"{node} {x + int(numbers.normal() * spread)} {y + int(numbers.normal() * spread)}")
    head = f"NAME: {about.name}\nTYPE: TSP\nDIMENSION: {n}\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n"
    return head + "\n".join(lines) + "\nEOF\n"


CVRPLIB_HOME = "http://vrp.galgos.inf.puc-rio.br/media/com_vrp/instances"


def _sha256(head: str, *arrays: np.ndarray | None) -> str:
    """Return the digest of a line of text and of arrays, whole numbers as int64, others as float64."""
    digest = hashlib.sha256(f"{head}\n".encode())
    for array in arrays:
        assert array is not None
        kind = "<i8" if array.dtype.kind in "iu" else "<f8"
        digest.update((np.ascontiguousarray(array, dtype=kind) + 0).tobytes())  # -0.0 is 0.0
    return digest.hexdigest()


TSPLIB = Library(
    name="tsplib",
    title="TSPLIB",
    problems=("tsp",),
    suffix=".tsp",
    folders=("tsplib",),
    home="http://comopt.ifi.uni-heidelberg.de/software/TSPLIB95/tsp",
    path=lambda instance: f"{instance.name}.tsp.gz",
    parse=parse,
    sha256=lambda instance: _sha256(instance.distances, instance.coords),
)


def _of_the_survey(name: str, title: str, home: str) -> Library:
    return replace(TSPLIB, name=name, title=title, folders=(name,), home=home, path=lambda k: f"{k.name}.tsp")


NATIONAL = _of_the_survey("national", "the National TSPs", "https://www.math.uwaterloo.ca/tsp/world")
VLSI = _of_the_survey("vlsi", "the VLSI TSPs", "https://www.math.uwaterloo.ca/tsp/vlsi")
DIMACS = replace(_of_the_survey("dimacs", "the DIMACS challenge", ""), make=make_clustered)
CVRPLIB = Library(
    name="cvrplib",
    title="CVRPLIB",
    problems=("cvrp", "vrp"),
    suffix=".vrp",
    folders=("cvrplib", "cvrplib_x", "cvrplib_xxl", "cvrplib_li"),
    home=CVRPLIB_HOME,
    path=lambda instance: f"{instance.set}/{instance.name}.vrp",
    parse=parse,
    sha256=lambda instance: _sha256(f"{instance.distances}\n{instance.capacity}", instance.coords, instance.demand),
)
SOLOMON = Library(
    name="solomon",
    title="Solomon's set",
    problems=("vrp",),
    suffix=".txt",
    folders=("solomon",),
    home=CVRPLIB_HOME,
    path=lambda instance: f"Solomon/{instance.name}.txt",
    parse=parse,
    sha256=lambda k: _sha256(str(k.capacity), k.demand, k.coords, k.windows, k.service),
)
