"""Sets of public instances with the best costs known.

They are those of the survey of neural routing solvers (Ba et al., arXiv 2602.21761): TSPLIB with plane coordinates, the
National and VLSI collections, the clustered ones of the 8th DIMACS challenge, and of CVRPLIB the sets X and AGS.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from neuroute.datasets.benchmarks import place_of, published_instances, read_known, read_manifest
from neuroute.datasets.fetch import fetch_again, provide
from neuroute.problems.instances.instance import Instance

LIBRARIES = {  # set -> benchmark that is downloaded for it, and part of it
    "tsplib": ("tsplib", ""), "x": ("cvrplib", "X"), "ags": ("cvrplib", "Arnold"), "national": ("national", ""),
    "vlsi": ("vlsi", ""), "dimacs": ("dimacs", ""),
}  # fmt: skip


@dataclass(frozen=True)
class Listed:
    """An instance of a set: `n` nodes (TSP) or customers (CVRP), and the best cost known in its own distances."""

    set: str
    name: str
    problem: str
    n: int
    best_known: float


def listed(name: str) -> list[Listed]:
    """Return the instances of a set, smallest first, wherever their files are."""
    benchmark, part = LIBRARIES[name]
    problem = "cvrp" if benchmark == "cvrplib" else "tsp"
    return [
        Listed(name, k.name, problem, k.nodes - (problem == "cvrp"), k.optimum)
        for k in published_instances(benchmark).values()
        if not part or k.set == part
    ]


def read_listed(each: Listed, folder: Path) -> Instance | None:
    """Return an instance of `folder`, else of those that come with the package; None if neither has it.

    Raises NeurouteError if the file is altered or cannot be read.
    """
    benchmark, _ = LIBRARIES[each.set]
    place = place_of(folder, each.name, benchmark)
    if place is None:
        return None
    return replace(read_known(place, each.name, benchmark), name=each.name, best_known=each.best_known)


def fetch_set(name: str, work: Path) -> Path:
    """Download into `work` what is missing of a set's library, as far as there is a network; returns the folder."""
    benchmark, _ = LIBRARIES[name]
    manifest = work / "benchmarks" / f"{benchmark}.json"
    if manifest.exists():
        fetch_again({benchmark: manifest})
    else:
        provide(benchmark, manifest, manifest.with_suffix(""), None)
    return read_manifest(manifest, benchmark)[0]
