"""Published test sets for the plan: any file that `api.files` reads, and the solutions beside MVMoE's pickles.

Solutions lie beside instances, a file for each solver (`hgs_cvrp50_uniform.pkl`): (cost, customers), 0 between routes.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from neuroute.api.files import read_instances
from neuroute.core.errors import NeurouteError
from neuroute.datasets.problem_spec import spec_of
from neuroute.datasets.store import Facts, instances_digest, write_shard
from neuroute.datasets.streams import write_instances
from neuroute.problems.instances.arrays import refuse
from neuroute.problems.instances.instance import Instances
from neuroute.problems.instances.pickled import read_pickle
from neuroute.problems.vrp import Vrp, from_routes, lengths
from neuroute.specs.data import SHARD, Labels

# Names of published files of solutions begin so -> the solver here whose work that is.
SOLVERS = {
    "hgs": "hgs-long",
    "lkh": "lkh3",
    "or_tools_20s": "ortools",
    "or_tools_40s": "ortools",
    "or_tools_200s": "ortools-x10",
    "or_tools_400s": "ortools-x10",
}
TOLERANCE = 1e-5  # relative, of stated costs


def import_test_set(labels: Labels, source: Path, store: Path) -> None:
    """Keep a published test set as the plan reads it: its instances, and its solutions by the solver of these labels.

    Of a solver that the set has no solutions by nothing is kept: it has to solve.  Raises NeurouteError, with the file
    and the instance, if the set is of another problem, size or number than asked for, or a solution does not fit.
    """
    d = labels.dataset
    assert d.file is not None
    group = _group(read_instances(source), labels, source)
    write_instances(Path(d.file), group.inputs())
    entry = solutions_of(group, source).get(labels.solver)
    if labels.solver == "published" and entry is None:
        raise NeurouteError(
            f"{source}: holds no solutions, so no gap can be measured; give them, or `test_sets: drawn`"
        )
    if entry is None:
        return
    name, solutions = entry
    kind, rows = spec_of(labels), solutions[:SHARD]
    whole = labels.model_copy(update={"dataset": d.model_copy(update={"first": 0, "count": len(rows)})})
    instances = kind.instances(whole.dataset)
    refuse(~kind.valid(instances, rows), source, f"its solution in {name} does not {kind.meaning}")
    stored = kind.canonical(rows).astype(kind.dtype(d.n))
    digest, mean = instances_digest(whole, 0, len(rows)), float(kind.lengths(instances, rows).mean())
    facts: Facts = dict.fromkeys(("seed", "optimal", "cores", "seconds"))
    facts |= {"solver": labels.solver, "version": f"published: {name}", "count": len(rows)}
    write_shard(store / labels.shard_file(0), stored, {**facts, "instances_sha256": digest, "mean_length": mean})


def _group(instances: Instances, labels: Labels, source: Path) -> Instances:
    """The instances of the size that is asked for."""
    d = labels.dataset
    group = next((each for each in instances.groups if each.n == d.n), None)
    if group is None or group.members[0].file:
        sizes = ", ".join(sorted({str(each.n) for each in instances.groups}))
        raise NeurouteError(f"{source}: instances of {sizes} stops, not {d.n}; name another file in `test_sets`")
    what = group.vrp.variant if group.vrp is not None else group.problem.upper()
    if what != (d.variant or d.problem.upper()):
        variant = d.variant or d.problem.upper()
        raise NeurouteError(f"{source}: instances of {what}, not of {variant}; name another file in `test_sets`")
    if group.count < d.count:
        raise NeurouteError(
            f"{source}: {group.count:,} instances, where {d.count:,} are asked for; set fewer in the scale"
        )
    if d.variant and group.vrp is None:  # the CVRP as one of the 16 VRPs
        group = replace(group, members=tuple(replace(each, is_vrp=True) for each in group.members))
    return group


def solutions_of(group: Instances, source: Path) -> dict[str, tuple[str, np.ndarray]]:
    """Return solver -> (file, solutions (count, ...)); "published" are the file's own, else those with the least mean.

    Raises NeurouteError if their number, a cost or an order of customers does not fit the instances.
    """
    if group.solutions is not None:
        return {"published": (source.name, group.solutions)}
    by_solver: dict[str, tuple[str, np.ndarray]] = {}
    means: dict[str, float] = {}
    for prefix, solver in SOLVERS.items():
        beside = source.with_name(f"{prefix}_{source.name}")
        if group.vrp is not None and beside.is_file():
            by_solver[solver] = beside.name, _solutions(beside, group.inputs())
            means[solver] = float(lengths(group.inputs(), by_solver[solver][1]).mean())
    return by_solver | ({"published": by_solver[min(means, key=lambda solver: means[solver])]} if means else {})


def _solutions(path: Path, instances: Vrp) -> np.ndarray:
    """Return the solutions (count, 2, V) of a file, whose costs are those that it states."""
    data = read_pickle(path)
    if not isinstance(data, list) or len(data) != len(instances):
        count = len(data) if isinstance(data, list) else "no list of"
        raise NeurouteError(f"{path}: {count} solutions of {len(instances)} instances; give one of each, or remove it")
    paths, costs = [], []
    customers = np.arange(1, instances.customers + 1)
    for number, record in enumerate(data):
        try:
            cost, route = record[:2]
            visits = np.asarray(route, dtype=np.int64)
            costs.append(float(cost))
        except (TypeError, ValueError):
            raise NeurouteError(f"{path}, instance {number}: (cost, customers) is expected") from None
        if not np.array_equal(np.sort(visits[visits > 0]), customers) or (visits < 0).any():
            raise NeurouteError(f"{path}, instance {number}: its solution does not serve every customer once")
        paths.append(from_routes([part[part > 0].tolist() for part in np.split(visits, np.flatnonzero(visits == 0))]))
    solutions = np.stack(paths)
    off = np.abs(np.array(costs) / lengths(instances, solutions) - 1)
    refuse(~(off <= TOLERANCE), path, "its stated cost is not that of its solution")
    return solutions
