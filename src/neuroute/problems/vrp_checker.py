"""Whether solutions of the 16 vehicle routing problems may be driven, told stop by stop and in plain Python.

It shares nothing with the environment that builds solutions (`decoding.vrp`), which it is to check.

Three readings of the backhaul rule, which differ in what a vehicle may carry when it leaves the depot:
* "network": it is full, or empty where its route only picks up.  So the sums of the signed demands along a route
  stay in [0, Q], and in [-Q, 0] on routes that only pick up.  The paper's rule (MVMoE, Appendix A): the first customer
  of a route has a delivery, unless pick-ups are all that is left.  Such routes come last; as nothing else depends on
  the order of the routes, it is not checked.
* "in order": the same, but routes that only pick up do come last in the solution.
* "free start": it carries any load, so that the sums lie within Q of each other and of 0.  What the published
  reference solutions by OR-Tools obey: a relaxation of the above, which the paper does not mention.
"""

from collections import Counter
from typing import Literal, get_args

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.problems.vrp import Vrp, to_routes

Rule = Literal["network", "in order", "free start"]
EPS = 1e-5  # what the published environments allow times and lengths to exceed
ROUNDING = 1e-9  # sums of ways in another order


def valid(instances: Vrp, solutions: np.ndarray, rule: Rule = "network", tolerance: float = EPS) -> np.ndarray:
    """Whether each of solutions (count, 2, V) may be driven: bool (count,).

    tolerance: by how much, in units of the coordinates, a time or a length may be exceeded; 1e-3 for the published
    reference solutions, which come from integer grids.
    """
    return np.array([fault(instances, i, s, rule, tolerance) is None for i, s in enumerate(solutions)], dtype=bool)


def fault(instances: Vrp, row: int, solution: np.ndarray, rule: Rule = "network", tolerance: float = EPS) -> str | None:
    """The first reason why a solution (2, V) of instance `row` may not be driven, with the customer; None: it may."""
    if rule not in get_args(Rule):
        raise NeurouteError(f"no backhaul rule '{rule}'; there are: {', '.join(get_args(Rule))}")
    order, via = solution.tolist()
    customers = instances.customers
    for customer in order:
        if not 1 <= customer <= customers:
            return f"there is no customer {customer} among 1..{customers}"
    times = Counter(order)
    for customer in range(1, customers + 1):
        if times[customer] != 1:
            return f"customer {customer} is served {times[customer]} times"
    if via[0] != 1 or not set(via) <= {0, 1}:
        return "the flags are not 0 and 1, beginning with 1"
    demand = instances.demand[row].tolist()
    routes = to_routes(solution)
    for number, route in enumerate(routes):
        rest = routes[number:] if rule == "in order" else [route]
        empty = all(demand[c] <= 0 for each in rest for c in each)
        why = _load_fault([demand[c] for c in route], int(instances.capacity[row]), empty, rule == "free start")
        why = why or _drive_fault(instances, row, route, tolerance + ROUNDING)
        if why:
            place, reason = why
            return f"route {number + 1}, {f'customer {route[place]}' if place < len(route) else 'way home'}: {reason}"
    return None


def _load_fault(demands: list[int], capacity: int, empty: bool, free: bool) -> tuple[int, str] | None:
    """(which stop, why) of the first stop at which the vehicle carries less than nothing, or more than it may."""
    least, most = (0, capacity) if free else (0, 0) if empty else (capacity, capacity)
    for place, demand in enumerate(demands):  # the loads at which it may have been so far are an interval
        least, most = max(0, least - demand), min(capacity, most - demand)
        if least > most:
            return (
                place,
                f"more than the capacity {capacity}" if demand < 0 else "more than what is left in the vehicle",
            )
    return None


def _drive_fault(instances: Vrp, row: int, route: list[int], tolerance: float) -> tuple[int, str] | None:
    """(which stop, why) of the first stop that is too late or too far; the stop after all others is the depot."""
    place, clock, driven = instances.coords[row, 0].astype(np.float64), 0.0, 0.0
    for stop, node in enumerate(route if instances.open else [*route, 0]):
        there = instances.coords[row, node].astype(np.float64)
        way = float(np.sqrt(((there - place) ** 2).sum()))
        place, clock, driven = there, clock + way, driven + way
        if instances.limit is not None and driven > float(instances.limit[row]) + tolerance:
            return stop, f"a length of {driven:.6g}, more than the limit {float(instances.limit[row]):.6g}"
        if instances.windows is not None and instances.service is not None:
            opens, closes = (float(t) for t in instances.windows[row, node])
            clock = max(clock, opens)
            if clock > closes + tolerance:
                return stop, f"reached at {clock:.6g}, after its window closes at {closes:.6g}"
            clock += float(instances.service[row, node])
    return None
