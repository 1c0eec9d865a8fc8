"""A solver's solutions of users' instances, as what gaps are measured against."""

import logging
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.datasets.chunks import solver_pool
from neuroute.datasets.progress import Progress
from neuroute.instances.export import check_export, instance_arrays, solution_arrays, write_npz
from neuroute.instances.instances import Instances
from neuroute.solvers.registry import get
from neuroute.user.classical import check_seconds, check_solver, solve_with
from neuroute.user.files import read_instances

log = logging.getLogger(__name__)


def check_reference(instances: Instances, solver: str, out: Path | None) -> None:
    """Raises NeurouteError if a solver cannot solve the instances, or its answers cannot be kept beside `out`."""
    for group in instances.groups:
        check_solver(solver, group.members[0])
    keep = kept_in(instances, solver, out)
    if keep is not None and not keep.exists():
        check_export(instances, keep, "npz")


def kept_in(instances: Instances, solver: str, out: Path | None) -> Path | None:
    """Return where the answers are kept: beside `out`.  None without it, and for files and several sizes."""
    several = len({each.n for each in instances.members}) > 1
    if out is None or several or any(each.file for each in instances.members):
        return None
    return out.with_name(f"{out.stem}.{solver}.npz")


def with_reference(
    instances: Instances, solver: str, out: Path | None, workers: int, seconds: float | None = None
) -> Instances:
    """Return the instances with a solver's solutions as their references; seeds are 0.

    Solved in `workers` processes; kept beside `out`, from where a later call with the same instances, solver, version
    and seconds takes them.  Raises NeurouteError as `check_reference`, if what is kept is of anything else, or if the
    solver fails or a worker dies.
    """
    check_seconds(seconds)
    check_reference(instances, solver, out)
    keep = kept_in(instances, solver, out)
    search = f"{get(solver).version()}, {'no limit' if seconds is None else f'{seconds:g} s'}"
    if keep is not None and keep.exists():
        log.info("references of %s are those in %s", solver, keep)
        return _reuse(instances, keep, search)
    solved = instances.with_solutions(_solve(instances, solver, workers, seconds))
    if keep is not None:
        arrays = {**instance_arrays(solved), **solution_arrays(solved), "solver": np.array(search)}
        write_npz(keep, arrays)
        log.info("references of %s are kept in %s", solver, keep)
    return solved


def _solve(instances: Instances, solver: str, workers: int, seconds: float | None) -> list[np.ndarray]:
    """Return a solution of each instance."""
    tasks = [(solver, each, seconds) for each in instances.members]
    solutions: list[np.ndarray] = [np.empty(0)] * len(tasks)
    with solver_pool(min(workers, len(tasks))) as pool, Progress(len(tasks), f"{solver}, for reference", True) as bar:
        if pool is None:
            for place, task in enumerate(tasks):
                solutions[place] = solve_with(*task).solution
                bar.add(1)
            return solutions
        futures = {pool.submit(solve_with, *task): place for place, task in enumerate(tasks)}
        try:
            for future in as_completed(futures):
                solutions[futures[future]] = future.result().solution
                bar.add(1)
        except BrokenProcessPool:
            raise NeurouteError(
                f"a {solver} worker died (killed, or out of memory); run again with fewer --workers"
            ) from None
    return solutions


def _reuse(instances: Instances, keep: Path, search: str) -> Instances:
    """Return the instances with the references of a file.

    search: solver, version and limit, as the file states them.  Raises NeurouteError if it is of any other, or of
    instances that differ in any array.
    """
    mend = "move it away, or give another --out"
    previous, arrays = read_instances(keep), instance_arrays(instances)
    kept_arrays = instance_arrays(previous)
    differ = sorted(key for key in {*kept_arrays, *arrays} if not _equal(kept_arrays.get(key), arrays.get(key)))
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


def _equal(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    return one is not None and other is not None and np.array_equal(one, other)
