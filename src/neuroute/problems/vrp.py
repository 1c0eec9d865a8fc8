"""16 vehicle routing problems in one form (MVMoE; Zhou et al., 2024): instances, and solutions with their lengths.

A solution of V customers is an array (2, V) as in `problems.cvrp`: the customers in visiting order, and flags, 1 where
the customer is reached from the depot.  Each 1 starts a route.  A route ends at the depot, to which open routes do not
drive, so only the order of its customers counts, not the order of the routes.
"""

import numpy as np

from neuroute.problems.vrp_batch import Vrp
from neuroute.problems.vrp_checker import EPS, Rule, fault, valid
from neuroute.problems.vrp_variants import SWITCHES, Switches, Variant, variant_of

__all__ = [
    "EPS",
    "SWITCHES",
    "Rule",
    "Switches",
    "Variant",
    "Vrp",
    "canonical",
    "fault",
    "lengths",
    "valid",
    "variant_of",
]


def lengths(instances: Vrp, solutions: np.ndarray) -> np.ndarray:
    """Euclidean length of solutions (count, 2, V): float64 (count,).  Open routes do not pay the way home."""
    order, starts = solutions[:, 0].astype(np.int64), solutions[:, 1].astype(bool)
    coords = instances.coords.astype(np.float64)
    points, depot = np.take_along_axis(coords, order[..., None], axis=1), coords[:, :1]
    before = np.where(starts[..., None], depot, np.concatenate([depot, points[:, :-1]], axis=1))
    total = _distance(points, before).sum(1)
    if instances.open:
        return total
    ends = np.concatenate([starts[:, 1:], np.ones_like(starts[:, :1])], axis=1)
    return total + (_distance(points, depot) * ends).sum(1)


def _distance(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    # Not np.hypot: square root and product are exactly rounded everywhere.
    step = a - b
    return np.sqrt(step[..., 0] * step[..., 0] + step[..., 1] * step[..., 1])


def canonical(solutions: np.ndarray) -> np.ndarray:
    """The same routes (count, 2, V), ordered by their first customers; none is turned around, which may be late."""
    order, starts = solutions[:, 0], solutions[:, 1] == 1
    first = np.maximum.accumulate(np.where(starts, np.arange(order.shape[1]), 0), axis=1)
    # No customer is in two routes, so the stops of a route stay together, and a stable sort keeps their order.
    by_first = np.argsort(np.take_along_axis(order, first, axis=1), axis=1, kind="stable")
    return np.stack([np.take_along_axis(a, by_first, axis=1) for a in (order, solutions[:, 1])], axis=1)
