"""What gaps are to, and what speaks against it: a reference that cannot be right is said, as gaps to it say nothing."""

import numpy as np
from scipy.spatial import cKDTree

from neuroute.core.errors import NeurouteError
from neuroute.problems.instances.instance import Instance
from neuroute.problems.instances.instances import Instances
from neuroute.solvers.registry import is_installed

CLEAR = 0.1  # % below a reference, from which on its being better is no matter of rounding
FIRST = 8  # instances that a construction solves for comparison
CONSTRUCTION = "nearest"
QUICK = ("insertion", "nearest", "savings", "insertion-angle", "insertion-published")  # solvers that a network beats


def origin(instances: Instances) -> str:
    """Return whose the references of instances are, in words."""
    known = [each for each in instances.members if each.best_known is not None]
    if all(each.library and each.solution is None for each in known):
        return f"best costs known of {' and '.join(sorted({each.library for each in known}))}"
    return "the data's own solutions" if all(each.solution is not None for each in known) else "lengths in the data"


def doubts(instances: Instances, gap_pct: float, solver: str | None = None) -> tuple[str, ...]:
    """Return a line for each reason why references are no yardstick.

    gap_pct: of the network to them; solver: whose they are, None: they came with the instances, of which the first ones
    are compared with a construction and, where no solutions are there, all with what no solution can be shorter than.
    """
    lines = []
    if gap_pct < -CLEAR and solver not in QUICK:
        lines.append(f"the network is {-gap_pct:.3f} % shorter than the reference, which is not near-optimal")
    if solver is not None:
        return tuple(lines)
    known = [each for each in instances.members if each.best_known is not None]
    by_construction = [(each, _construct(each)) for each in known[:FIRST]]
    worse = [cost < (each.best_known or 0) * (1 - CLEAR / 100) for each, cost in by_construction if cost is not None]
    if any(worse):
        lines.append(f"{CONSTRUCTION} neighbour is shorter than it on {sum(worse)} of the first {len(worse)} instances")
    lengths_alone = [each for each in known if each.solution is None and not each.open and each.points is not None]
    if short := [each for each in lengths_alone if (each.best_known or 0) < 0.999 * least_length(each)]:
        lines.append(
            f"{len(short)} reference{'s are' if len(short) > 1 else ' is'} impossibly short (first: {short[0].name}, "
            f"{short[0].format(short[0].best_known or 0)}); are they of other instances, or in other units?"
        )
    return tuple(lines)


def least_length(instance: Instance) -> float:
    """Return what no solution with routes that end at the depot, or no tour, is shorter than, without rounding.

    Every node of a tour is reached and left by the ways to its two nearest ones at best, a customer by the nearest one
    twice.
    """
    coords = instance.coords
    near: np.ndarray = np.asarray(cKDTree(coords).query(coords, k=3)[0])[:, 1:]
    bound = near.sum() / 2 if instance.problem == "tsp" else near[1:, 0].sum()
    loss = 0 if instance.distances == "EXACT_2D" else len(coords) + instance.n  # that rounding may take, and more
    return float(bound - loss) if instance.distances in ("EXACT_2D", "EUC_2D", "CEIL_2D") else 0.0


def _construct(instance: Instance) -> float | None:
    """Return the length of a construction, if there is one of the problem."""
    from neuroute.api.classical import solve_with  # solvers compile when they are imported

    try:
        return instance.length(solve_with(CONSTRUCTION, instance).stops) if is_installed(CONSTRUCTION) else None
    except NeurouteError:
        return None
