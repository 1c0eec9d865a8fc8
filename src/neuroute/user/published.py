"""Published test sets for the plan: MVMoE's pickles and the solutions beside them; any file that `data` reads.

MVMoE's instances are a list of (depot, customers, demands, capacity), then the longest route where it is limited, then
service times, openings and closings where there are windows; names of files begin with the variant: `ovrp50_uniform`.
Solutions lie beside them, one file a solver, `hgs_cvrp50_uniform.pkl`: a list of (cost, customers), 0 between routes.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.datasets.problem_spec import spec_of
from neuroute.datasets.published import write_instances
from neuroute.datasets.shard_files import Facts, instances_digest, write_shard
from neuroute.datasets.vrp_stream import HORIZON
from neuroute.plan.specs import SHARD, Labels
from neuroute.problems.vrp import Vrp, from_routes, lengths
from neuroute.problems.vrp_variants import SWITCHES, Variant
from neuroute.user.arrays import parse_arrays
from neuroute.user.data import read_instances
from neuroute.user.instances import Group, Instances, refuse
from neuroute.user.pickled import read_pickle

NAME = re.compile(rf"({'|'.join(sorted(SWITCHES, key=len, reverse=True))})(\d+)_", re.IGNORECASE)
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
    group = _group(read_test_set(source), labels, source)
    write_instances(Path(d.file), group.inputs())
    found = solutions_of(group, source).get(labels.solver)
    if labels.solver == "published" and found is None:
        raise NeurouteError(
            f"{source}: holds no solutions, so no gap can be measured; give them, or `test_sets: drawn`"
        )
    if found is None:
        return
    name, solutions = found
    kind, rows = spec_of(labels), solutions[:SHARD]
    whole = labels.model_copy(update={"dataset": d.model_copy(update={"first": 0, "count": len(rows)})})
    instances = kind.instances(whole.dataset)
    refuse(~kind.valid(instances, rows), source, f"its solution in {name} does not {kind.meaning}")
    stored = kind.canonical(rows).astype(kind.dtype(d.n))
    facts: Facts = {
        "solver": labels.solver,
        "version": f"published: {name}",
        "seed": None,
        "optimal": None,
        "cores": None,
    }
    facts |= {"seconds": None, "count": len(rows), "instances_sha256": instances_digest(whole, 0, len(rows))}
    write_shard(
        store / labels.shard_file(0), stored, {**facts, "mean_length": float(kind.lengths(instances, rows).mean())}
    )


def _group(found: Instances, labels: Labels, source: Path) -> Group:
    """The instances of the size that is asked for."""
    d = labels.dataset
    group = next((each for each in found.groups if each.n == d.n), None)
    if group is None or group.file is not None:
        sizes = ", ".join(sorted({str(each.n) for each in found.groups}))
        raise NeurouteError(f"{source}: instances of {sizes} nodes or customers, where {d.n} are asked for")
    what = group.vrp.variant if group.vrp is not None else group.problem.upper()
    if what != (d.variant or d.problem.upper()):
        raise NeurouteError(f"{source}: instances of {what}, where {d.variant or d.problem.upper()} is asked for")
    if group.count < d.count:
        raise NeurouteError(
            f"{source}: {group.count:,} instances, where {d.count:,} are asked for; set fewer in the scale"
        )
    if d.variant and group.vrp is None:  # the CVRP as one of the 16 VRPs
        group = replace(group, vrp=group.cvrp(group.coords), seen=group.cvrp(group.coords.astype(np.float32)))
    return group


def read_test_set(source: Path) -> Instances:
    """Return the instances of a file, of MVMoE's or of any that `read_instances` reads."""
    named = NAME.match(source.name) if source.suffix == ".pkl" else None
    return _of_mvmoe(source, named[1].upper()) if named else read_instances(source)


def solutions_of(group: Group, source: Path) -> dict[str, tuple[str, np.ndarray]]:
    """Return solver -> (file, solutions (count, ...)); "published" are the file's own, else those with the least mean.

    Raises NeurouteError if their number, a cost or an order of customers does not fit the instances.
    """
    if group.solutions is not None:
        return {"published": (source.name, group.solutions)}
    found: dict[str, tuple[str, np.ndarray]] = {}
    means: dict[str, float] = {}
    for prefix, solver in SOLVERS.items():
        beside = source.with_name(f"{prefix}_{source.name}")
        if group.seen is not None and beside.is_file():
            found[solver] = beside.name, _solutions(beside, group.seen)
            means[solver] = float(lengths(group.seen, found[solver][1]).mean())
    return found | ({"published": found[min(means, key=lambda solver: means[solver])]} if means else {})


# -- MVMoE's files ----------------------------------------------------------------------------------------------------


def _of_mvmoe(source: Path, variant: str) -> Instances:
    data, switches = read_pickle(source), Variant(variant).switches
    parts = 4 + switches.limit + 3 * switches.windows
    for number, record in enumerate(data if isinstance(data, list) else []):
        if not isinstance(record, list | tuple) or len(record) != parts:
            raise NeurouteError(
                f"{source}, instance {number}: {parts} parts are expected of {variant}, as MVMoE has them"
            )
    if not isinstance(data, list) or not data:
        raise NeurouteError(f"{source}: a list of instances is expected, as MVMoE has them")
    try:
        arrays = _arrays(list(zip(*data, strict=True)), switches.limit, switches.windows)
    except (TypeError, ValueError):
        raise NeurouteError(f"{source}: the instances are not all of one size, in numbers") from None
    named = {"variant": np.array(variant)} if any(switches) else {}
    return parse_arrays(source, arrays | named)


def _arrays(columns: list[Any], limit: bool, windows: bool) -> dict[str, np.ndarray]:
    """Arrays as an .npz holds them, the depot first."""
    depot, customers, demand, capacity = (np.asarray(column, dtype=np.float64) for column in columns[:4])
    arrays = {
        "coords": np.concatenate([depot.reshape(-1, 1, 2), customers], axis=1),
        "demand": np.pad(demand, ((0, 0), (1, 0))),
        "capacity": capacity.reshape(-1),
    }
    if limit:
        arrays["limit"] = np.asarray(columns[4], dtype=np.float64).reshape(-1)
    if windows:
        service, opens, closes = (np.asarray(column, dtype=np.float64) for column in columns[-3:])
        arrays["service"] = np.pad(service, ((0, 0), (1, 0)))
        of_depot = np.broadcast_to([0.0, HORIZON], (len(opens), 1, 2))
        arrays["windows"] = np.concatenate([of_depot, np.stack([opens, closes], axis=-1)], axis=1)
    return arrays


def _solutions(path: Path, instances: Vrp) -> np.ndarray:
    """Return the solutions (count, 2, V) of a file, whose costs are those that it states."""
    data = read_pickle(path)
    if not isinstance(data, list) or len(data) != len(instances):
        count = len(data) if isinstance(data, list) else "no list of"
        raise NeurouteError(f"{path}: {count} solutions of {len(instances)} instances")
    found, stated = [], []
    customers = np.arange(1, instances.customers + 1)
    for number, record in enumerate(data):
        try:
            cost, route = record[:2]
            visits = np.asarray(route, dtype=np.int64)
            stated.append(float(cost))
        except (TypeError, ValueError):
            raise NeurouteError(f"{path}, instance {number}: (cost, customers) is expected") from None
        if not np.array_equal(np.sort(visits[visits > 0]), customers) or (visits < 0).any():
            raise NeurouteError(f"{path}, instance {number}: its solution does not serve every customer once")
        found.append(from_routes([part[part > 0].tolist() for part in np.split(visits, np.flatnonzero(visits == 0))]))
    solutions = np.stack(found)
    off = np.abs(np.array(stated) / lengths(instances, solutions) - 1)
    refuse(~(off <= TOLERANCE), path, "its stated cost is not that of its solution")
    return solutions
