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


# -- Whether every customer of instances of the 16 vehicle routing problems can be served, by a vehicle of its own
# If so, a solution can always be completed: a vehicle drives only where it gets home from, and each of the
# customers that are left can be the only one of a route.

LARGEST_LOAD = 10**9  # of a demand or a capacity that users bring: sums of them are exact


def check_instances(instances: Vrp, where: str) -> None:
    """Raises NeurouteError, naming `where`, the instance and the customer, for what cannot be served."""
    _check_shapes(instances, where)
    _check_numbers(instances, where)
    demand, capacity = instances.demand, instances.capacity[:, None]
    faults = {
        "it demands more than the capacity; split it": demand > capacity,
        "its goods to be picked up are more than the capacity; split it": -demand > capacity,
    }
    out = np.sqrt(((instances.coords.astype(np.float64) - instances.coords[:, :1]) ** 2).sum(-1))
    if instances.limit is not None:
        way, there = (out, "there") if instances.open else (2 * out, "there and back")
        why = f"the way {there} alone is longer than the limit; raise it"
        faults[why] = way > instances.limit[:, None] + EPS
    if instances.windows is not None and instances.service is not None:
        opens, closes = (instances.windows[..., i].astype(np.float64) for i in (0, 1))
        faults["no vehicle gets there before its window closes; widen it"] = out > closes + EPS
        if not instances.open:
            back = np.maximum(out, opens) + instances.service + out
            why = "no vehicle that serves it is back before the depot closes; widen the depot's window"
            faults[why] = back > closes[:, :1] + EPS
    _refuse(faults, where)


def _check_shapes(instances: Vrp, where: str) -> None:
    nodes = instances.demand.shape
    if instances.coords.ndim != 3 or nodes != instances.coords.shape[:2] or instances.coords.shape[2] != 2:
        raise NeurouteError(
            f"{where}: coordinates {instances.coords.shape} and demands {nodes} do not fit; give (count, V + 1, 2) and "
            "(count, V + 1)"
        )
    if (instances.windows is None) != (instances.service is None):
        raise NeurouteError(f"{where}: time windows and service times belong together; give both or none")
    shapes = {"capacity": nodes[:1], "limit": nodes[:1], "windows": (*nodes, 2), "service": nodes}
    for name, shape in shapes.items():
        array = getattr(instances, name)
        if array is not None and array.shape != shape:
            raise NeurouteError(f"{where}: '{name}' has shape {array.shape}; give {shape}")


def _check_numbers(instances: Vrp, where: str) -> None:
    faults = {
        "a coordinate is not a finite number; correct it": ~np.isfinite(instances.coords).all(-1),
        "the capacity is not above 0; give vehicles that carry something": instances.capacity <= 0,
        "the depot has a demand; give it 0": instances.demand[:, 0] != 0,
    }
    if instances.limit is not None:
        faults["the limit of a route is not a number above 0; correct it"] = ~(instances.limit > 0)
    if instances.windows is not None and instances.service is not None:
        opens, closes = instances.windows[..., 0], instances.windows[..., 1]
        faults |= {
            "a time of its window is no number; correct it": np.isnan(instances.windows).any(-1) | np.isposinf(opens),
            "its window closes before it opens; swap the two": closes < opens,
            "its service time is not a number from 0 on; correct it": ~(
                np.isfinite(instances.service) & (instances.service >= 0)
            ),
            "the depot has a service time; give it 0": instances.service[:, 0] != 0,
            "the depot does not open at 0, when vehicles leave; count time from there": opens[:, 0] != 0,
        }
    _refuse(faults, where)


def _refuse(faults: dict[str, np.ndarray], where: str) -> None:
    """For the first fault that there is, of its first instance and node.

    faults: why, and how to mend it -> bool (count, 1 + V) or (count,)
    """
    for why, bad in faults.items():
        if bad.any():
            instance, *node = np.argwhere(bad)[0].tolist()
            which = "" if not node else f", customer {node[0]}" if node[0] else ", the depot"
            raise NeurouteError(f"{where}, instance {instance}{which}: {why}")
