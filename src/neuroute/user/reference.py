"""A solver's solutions of users' instances, as what gaps are measured against."""

import logging
from collections.abc import Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.datasets.chunks import solver_pool
from neuroute.datasets.progress import Progress
from neuroute.problems.cvrp import cost
from neuroute.problems.tsp import tour_length
from neuroute.problems.vrp import lengths as vrp_lengths
from neuroute.user.classical import check_seconds, check_solver, solve_with
from neuroute.user.data import read_instances
from neuroute.user.export import check_export, export
from neuroute.user.instance import Instance
from neuroute.user.instances import Group, Instances

log = logging.getLogger(__name__)


def check_reference(instances: Instances, solver: str, out: Path | None) -> None:
    """Raises NeurouteError if a solver cannot solve the instances, or its answers cannot be kept beside `out`."""
    for group in instances.groups:
        check_solver(solver, Instance(group.slice(0, 1)).for_solvers())
    keep = kept_in(instances, solver, out)
    if keep is not None and not keep.exists():
        check_export(instances, keep, "npz")


def kept_in(instances: Instances, solver: str, out: Path | None) -> Path | None:
    """Return where the answers are kept: beside `out`.  None without it, and for files and several sizes."""
    several = len({group.n for group in instances.groups}) > 1
    if out is None or several or any(group.file is not None for group in instances.groups):
        return None
    return out.with_name(f"{out.stem}.{solver}.npz")


def with_reference(
    instances: Instances, solver: str, out: Path | None, workers: int, seconds: float | None = None
) -> Instances:
    """Return the instances with a solver's solutions as their references; seeds are 0.

    Solved in `workers` processes; kept beside `out`, from where a later call on the same instances takes them.  Raises
    NeurouteError as `check_reference`, or if the solver fails or a worker dies.
    """
    check_seconds(seconds)
    check_reference(instances, solver, out)
    keep = kept_in(instances, solver, out)
    if keep is not None and keep.exists():
        previous = _reuse(instances, keep)
        if previous is not None:
            log.info("references of %s are those in %s", solver, keep)
            return previous
    answers = _solve(instances, solver, workers, seconds)
    groups = []
    for group in instances.groups:
        solutions = np.stack([answers.pop(0) for _ in range(group.count)])
        groups.append(replace(group, solutions=solutions, reference=_measure(group, solutions)))
    solved = replace(instances, groups=tuple(groups))
    if keep is not None:
        log.info("%s", export(solved, keep))
    return solved


def _solve(instances: Instances, solver: str, workers: int, seconds: float | None) -> list[np.ndarray]:
    """Return a solution of each instance, in the order of the groups."""
    each = [Instance(group.slice(i, i + 1)) for group in instances.groups for i in range(group.count)]
    tasks = [(solver, instance.for_solvers(), seconds) for instance in each]
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


def _measure(group: Group, solutions: np.ndarray) -> np.ndarray:
    """Return lengths (count,) as references have them: of files in their own distances, else not rounded."""
    if group.file is not None:
        return np.array([Instance(group).cost(solutions[0])])
    if group.vrp is not None:
        return vrp_lengths(group.vrp, solutions)
    return tour_length(group.coords, solutions) if group.demand is None else cost(group.cvrp(group.coords), solutions)


def _reuse(instances: Instances, keep: Path) -> Instances | None:
    """Return the instances with the references of a file; None if it is of other instances."""
    stored: Sequence[Group] = read_instances(keep).groups
    whole = Group.joined(instances.groups, instances.name)
    same = stored[0].coords.shape == whole.coords.shape and (stored[0].coords == whole.coords).all()
    if not same or stored[0].solutions is None or stored[0].problem != whole.problem:
        raise NeurouteError(f"{keep}: holds other instances; move it away, or give another --out")
    return replace(instances, groups=(replace(stored[0], name=whole.name),))
