"""Where instances come from: files, random streams, arrays; and how several are put together to be evaluated."""

from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.datasets.explicit import is_explicit, read_explicit
from neuroute.problems.tsp import FEWEST_NODES
from neuroute.problems.vrp import Vrp
from neuroute.problems.vrp_variants import SWITCHES, Variant
from neuroute.user.data import read_instances
from neuroute.user.instance import Instance
from neuroute.user.instances import Group, Instances

if TYPE_CHECKING:
    from neuroute.plan.specs import Distribution


APART = 100_000_000  # instances between two seeds
MOST_SEEDS = 400_000  # shards of a stream are numbered by 32 bits


def load(path: str | Path, index: int | None = None) -> Instance:
    """Read one instance.

    Args:
        path: TSPLIB's .tsp or .atsp, VRPLIB's .vrp, each of coordinates or of distances, Solomon's .txt; or a file of
            many, .npz, .txt or .pkl (see `load_all`).
        index: which instance of a file of many, from 0; may be left out where there is one.

    Raises:
        NeurouteError: if the file cannot be read, or has no such instance.
    """
    every = load_all(path)
    if index is None and len(every) > 1:
        raise NeurouteError(f"{path}: holds {len(every)} instances; give the index of one, from 0, or take `load_all`")
    if index is not None and not 0 <= index < len(every):
        raise NeurouteError(f"{path}: no instance {index}; give an index from 0 to {len(every) - 1}")
    return every[index or 0]


def load_all(path: str | Path) -> list[Instance]:
    """Read all instances of a file or folder, smallest first.

    Args:
        path: what `load` reads, or a folder of .tsp or .vrp files.  Arrays in an .npz: `coords` (count, n, 2); with
            vehicles (count, 1 + n, 2), `demand` (count, 1 + n) and `capacity` (count,); see `neuroute.user.data`.

    Raises:
        NeurouteError: if something cannot be read, with the file, the line or instance, and how to mend it.
    """
    path = Path(path)
    if is_explicit(path):
        return [Instance(read_explicit(path))]
    return [each for group in read_instances(path).groups for each in _instances(group)]


def _instances(group: Group) -> list[Instance]:
    """Return the instances of a group, numbered where there are several."""
    if group.count == 1:
        return [Instance(group)]
    return [Instance(replace(group.slice(i, i + 1), name=f"{group.name}_{i}")) for i in range(group.count)]


def generate(
    problem: str = "tsp",
    n: int = 50,
    count: int = 1,
    *,
    seed: int = 0,
    first: int = 0,
    distribution: "Distribution | str" = "uniform",
    capacity: int | None = None,
) -> list[Instance]:
    """Make random instances in the unit square, as the papers draw them.

    Instances of a kind and seed are numbered, and each is a function of its number: two calls agree on those that they
    share.  Those of seed 0 are the papers' test instances.

    Args:
        problem: `tsp`, `cvrp`, or one of the 16 vehicle routing problems, such as `ovrptw`.
        n: nodes; with vehicles, customers.
        count: how many instances.
        seed: other seeds give other instances, from 0 to 400,000.
        first: the number of the first one, from 0; `first=100` leaves out the first hundred of the seed.
        distribution: of the TSP: `uniform`, `cluster`, `explosion` or `implosion`; others are uniform.
        capacity: of vehicles, at least 9 (demands are 1 to 9); None: the papers' for this n.

    Raises:
        NeurouteError: if there is no such problem or distribution, or a number is too small.
    """
    from pydantic import ValidationError

    from neuroute.datasets.problem_spec import SPEC
    from neuroute.plan.specs import Dataset

    name = problem.lower()
    if name != "tsp" and get_close_matches(name.upper(), ("TSP", *SWITCHES), n=1, cutoff=0.5) == ["TSP"]:
        raise NeurouteError(f"no routing problem '{problem}'; is tsp meant?")
    variant = None if name in ("tsp", "cvrp") else str(Variant(problem.upper()))
    if n < FEWEST_NODES or count < 1 or first < 0:
        raise NeurouteError(
            f"n {n}, count {count}, first {first}: give n from {FEWEST_NODES}, count from 1, first from 0"
        )
    if not 0 <= seed <= MOST_SEEDS or first + count > APART:
        raise NeurouteError(f"seed {seed}: give a seed from 0 to {MOST_SEEDS:,}, each of {APART:,} instances")
    number = seed * APART + first
    try:
        dataset = Dataset.model_validate(
            {
                "problem": name if variant is None else "vrp",
                "n": n,
                "count": count,
                "first": number,
                "distribution": distribution,
                "capacity": capacity,
                "variant": variant,
            }
        )
    except ValidationError as error:
        problem_found = error.errors()[0]
        where = ".".join(map(str, problem_found["loc"]))
        raise NeurouteError(f"generate: {where + ': ' if where else ''}{problem_found['msg']}") from None
    instances = SPEC.of(dataset.problem).instances(dataset)
    stem = f"{name}{n}" + (f"_s{seed}" if seed else "")
    if dataset.problem == "tsp":
        groups = [Group(f"{stem}_{first + i}", points[None].astype(np.float64)) for i, points in enumerate(instances)]
    else:
        groups = [_vehicles(f"{stem}_{first + i}", instances[i : i + 1], dataset.problem) for i in range(count)]
    return [Instance(group) for group in groups]


def _vehicles(name: str, vrp: Vrp, problem: str) -> Group:
    whole = vrp if problem == "vrp" else None
    return Group(name, vrp.coords.astype(np.float64), None, vrp.demand, vrp.capacity, vrp=whole, seen=whole)


def gather(source: "Instances | Instance | str | Path | Sequence[Instance]", name: str = "instances") -> Instances:
    """Return instances of one problem in groups of one size, as they are evaluated.

    Raises NeurouteError if there are none, or they are of several problems.
    """
    if isinstance(source, Instances):
        return source
    if isinstance(source, str | Path):
        return read_instances(Path(source))
    every = [source] if isinstance(source, Instance) else list(source)
    if len({each.variant for each in every}) != 1:
        kinds = ", ".join(sorted({each.variant for each in every})) or "none"
        raise NeurouteError(f"{name}: instances of one problem are evaluated together, not of {kinds}; split the list")
    alike: dict[Any, list[Group]] = {}
    for number, each in enumerate(every):
        group = each.group
        alike.setdefault((each.n, number if group.file else -1, group.reference is None), []).append(group)
    groups = [Group.joined(alike[key], f"{name}_n{key[0]}") for key in sorted(alike)]
    return Instances(every[0].group.problem, name, tuple(groups))


def as_instance(source: "Instance | str | Path | np.ndarray") -> Instance:
    """Return an instance as it is, of a file, or of coordinates (n, 2)."""
    if isinstance(source, Instance):
        return source
    return load(source) if isinstance(source, str | Path) else Instance.from_arrays(source)
