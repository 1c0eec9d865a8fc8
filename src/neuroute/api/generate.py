"""Random instances, as the papers draw them."""

from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from neuroute.core.errors import NeurouteError
from neuroute.problems.instances.instance import Instance
from neuroute.problems.instances.instances import Instances
from neuroute.problems.tsp import FEWEST_NODES
from neuroute.problems.vrp import SWITCHES, Variant

if TYPE_CHECKING:
    from neuroute.specs.data import Distribution

APART = 100_000_000  # instances between two seeds
MOST_SEEDS = 400_000  # shards of a stream are numbered by 32 bits


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
    from neuroute.core.yaml_files import validate
    from neuroute.datasets.problem_spec import SPEC
    from neuroute.specs.data import Dataset

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
    fields = {"problem": name if variant is None else "vrp", "variant": variant, "n": n, "count": count}
    fields |= {"first": seed * APART + first, "distribution": distribution, "capacity": capacity}
    dataset = validate(Dataset, fields, "generate", see="neuroute.generate")
    instances = Instances.of_batch("", SPEC.of(dataset.problem).instances(dataset), dataset.problem)
    stem = f"{name}{n}" + (f"_s{seed}" if seed else "")
    return [replace(each, name=f"{stem}_{first + i}") for i, each in enumerate(instances.members)]
