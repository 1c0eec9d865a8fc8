"""What gaps are measured against: a solver's solutions of users' instances, and the best costs known of public ones.

Their sets are those of the survey of neural routing solvers (Ba et al., arXiv 2602.21761): TSPLIB with plane
coordinates, the National and VLSI collections, the clustered ones of the 8th DIMACS challenge, and of CVRPLIB the sets
X and AGS.
"""

import logging
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path

import numpy as np

from neuroute.api.classical import check_solver, solve_with
from neuroute.api.files import read_instances
from neuroute.core.errors import NeurouteError
from neuroute.core.progress import Progress
from neuroute.datasets.benchmarks import place_of, published_instances, read_known, read_manifest
from neuroute.datasets.chunks import solver_pool
from neuroute.datasets.fetch import fetch_again, provide
from neuroute.problems.instances.export import check_export, instance_arrays, solution_arrays, write_npz
from neuroute.problems.instances.instance import Instance, Instances
from neuroute.solvers.registry import get

log = logging.getLogger(__name__)


def with_reference(instances: Instances, solver: str, out: Path | None, workers: int) -> Instances:
    """Return the instances with a solver's solutions as their references; seeds are 0.

    Solved in `workers` processes; kept beside `out`, but for files and several sizes, from where a later call with the
    same instances, solver and version takes them.  Raises NeurouteError if the solver cannot solve them, its answers
    cannot be kept, what is kept is of anything else, or if the solver fails or a worker dies.
    """
    for group in instances.groups:
        check_solver(solver, group.members[0])
    keep, search = None, f"{get(solver).version()}, no limit"
    sizes, files = {each.n for each in instances.members}, any(each.file for each in instances.members)
    if out is not None and len(sizes) == 1 and not files:
        keep = out.with_name(f"{out.stem}.{solver}.npz")
    if keep is not None and keep.exists():
        log.info("references of %s are those in %s", solver, keep)
        return _reuse(instances, keep, search)
    if keep is not None:
        check_export(instances, keep, "npz")
    solutions = _solve(instances, solver, workers)
    lengths = [each.length(stops) for each, stops in zip(instances.members, solutions, strict=True)]
    solved = instances.with_solutions(solutions, lengths)
    if keep is not None:
        arrays = {**instance_arrays(solved), **solution_arrays(solved), "solver": np.array(search)}
        write_npz(keep, arrays)
        log.info("references of %s are kept in %s", solver, keep)
    return solved


def _solve(instances: Instances, solver: str, workers: int) -> list[np.ndarray]:
    """Return a solution of each instance."""
    solutions = list[np.ndarray]()
    what, count = f"{solver}, for reference", instances.count
    with solver_pool(min(workers, count)) as pool, Progress(count, what) as bar:
        run = map if pool is None else pool.map
        try:
            for answer in run(solve_with, repeat(solver), instances.members):
                solutions.append(answer.stops)
                bar.add(1)
        except BrokenProcessPool:
            raise NeurouteError(
                f"a {solver} worker died (killed, or out of memory); run again with fewer --workers"
            ) from None
    return solutions


def _reuse(instances: Instances, keep: Path, search: str) -> Instances:
    """Return the instances with the references of a file.

    search: solver and version, as the file states them.  Raises NeurouteError if it is of any other, or of instances
    that differ in any array.
    """
    mend = "move it away, or give another --out"
    previous, arrays = read_instances(keep), instance_arrays(instances)
    kept_arrays = instance_arrays(previous)
    nothing = np.empty(0)
    pairs = {key: (kept_arrays.get(key, nothing), arrays.get(key, nothing)) for key in {*kept_arrays, *arrays}}
    differ = sorted(key for key, pair in pairs.items() if not np.array_equal(*pair))
    solutions, reference = previous.solutions, previous.reference
    if differ or solutions is None or reference is None:
        what = f"{', '.join(differ)} differ{'s' * (len(differ) == 1)}" if differ else "none is solved"
        raise NeurouteError(f"{keep}: holds other instances ({what}); {mend}")
    with np.load(keep, allow_pickle=False) as file:
        kept_search = str(file["solver"]) if "solver" in file.files else "unknown"
    if kept_search != search:
        raise NeurouteError(
            f"{keep}: its references are of another search ({kept_search}; asked for: {search}); {mend}"
        )
    return instances.with_solutions(list(solutions))


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
