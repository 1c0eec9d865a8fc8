"""Whether every customer of instances of the 16 vehicle routing problems can be served, by a vehicle of its own.

If so, a solution can always be completed: a vehicle drives only where it gets home from, and each of the customers
that are left can be the only one of a route.
"""

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.problems.vrp import Vrp
from neuroute.problems.vrp_checker import EPS

LARGEST_LOAD = 10**9  # of a demand or a capacity that users bring: sums of them are exact


def check_instances(instances: Vrp, where: str) -> None:
    """Raises NeurouteError, naming `where`, the instance and the customer, for what cannot be served."""
    _check_shapes(instances, where)
    _check_numbers(instances, where)
    out = np.sqrt(((instances.coords.astype(np.float64) - instances.coords[:, :1]) ** 2).sum(-1))
    for fault in (_load, _duration, _window):
        _refuse(fault(instances, out), where)


Faults = dict[str, np.ndarray]  # why, and how to mend it -> bool (count, 1 + V) or (count,)


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


def _load(instances: Vrp, out: np.ndarray) -> Faults:
    demand, capacity = instances.demand, instances.capacity[:, None]
    return {
        "it demands more than the capacity; split it": demand > capacity,
        "its goods to be picked up are more than the capacity; split it": -demand > capacity,
    }


def _duration(instances: Vrp, out: np.ndarray) -> Faults:
    if instances.limit is None:
        return {}
    way, there = (out, "there") if instances.open else (2 * out, "there and back")
    return {f"the way {there} alone is longer than the limit; raise it": way > instances.limit[:, None] + EPS}


def _window(instances: Vrp, out: np.ndarray) -> Faults:
    if instances.windows is None or instances.service is None:
        return {}
    opens, closes = (instances.windows[..., i].astype(np.float64) for i in (0, 1))
    faults = {"no vehicle gets there before its window closes; widen it": out > closes + EPS}
    if not instances.open:
        back = np.maximum(out, opens) + instances.service + out
        why = "no vehicle that serves it is back before the depot closes; widen the depot's window"
        faults[why] = back > closes[:, :1] + EPS
    return faults


def _refuse(faults: Faults, where: str) -> None:
    """For the first fault that there is, of its first instance and node."""
    for why, bad in faults.items():
        if bad.any():
            instance, *node = np.argwhere(bad)[0].tolist()
            which = "" if not node else f", customer {node[0]}" if node[0] else ", the depot"
            raise NeurouteError(f"{where}, instance {instance}{which}: {why}")
