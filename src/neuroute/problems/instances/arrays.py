"""Instances in arrays, as an .npz has them, checked: the TSP, the CVRP, and the 16 VRPs.

Arrays are of one of the 16 VRPs, rather than of the CVRP, when they say which (`variant`, a name such as "OVRPTW"), or
have `open`, `limit`, `windows`, `service` or demands below 0: shapes as in `problems.vrp.Vrp`, `open` and `limit` also
as one number for all instances.  Vehicles drive at speed 1.  Solutions of the TSP are `tour`, others `node` and
`via_depot`; vehicles may leave the depot with any load in them.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from neuroute.core.arrays import array_of
from neuroute.core.errors import NeurouteError, did_you_mean, near
from neuroute.problems.cvrp import check_instances as check_cvrp
from neuroute.problems.cvrp import cost, is_feasible
from neuroute.problems.instances.distances import LATE, in_unit_square
from neuroute.problems.tsp import FARTHEST, FEWEST_NODES, check_coordinates, is_permutation, tour_length
from neuroute.problems.vrp import LARGEST_LOAD, Switches, Variant, Vrp, check_instances, lengths, valid, variant_of

TOLERANCE = 1e-4  # relative, between a stated length and the one of the coordinates: some formats keep few digits
LARGEST = 999_999_999  # of distances, so that sums stay exact
VEHICLES = ("demand", "capacity", "node", "via_depot")
KEYS = ("variant", "open", "limit", "windows", "service")  # of the 16 VRPs
Arrays = dict[str, np.ndarray]


def check_arrays(path: Path, arrays: Arrays, numbers: Iterable[int] | None = None) -> dict[str, Any]:
    """Return attributes of instances of one size, each stacked (count, ...), of arrays by their names in an .npz.

    `path` names them, `numbers` are those of the instances in a file, where they are not 0, 1, ...  Raises
    NeurouteError if they are no instances, or what they say would be lost.
    """
    if "coords" not in arrays:
        raise NeurouteError(f"{path}: no array 'coords' (count, n, 2); it holds {', '.join(arrays) or 'nothing'}")
    for key, values in arrays.items():
        if values.dtype.kind not in "fiub" and key not in ("variant", "solver"):
            raise NeurouteError(f"{path}: array '{key}' holds {values.dtype}, not numbers")
    coords = arrays["coords"].astype(np.float64)
    if coords.ndim != 3 or coords.shape[-1] != 2:
        raise NeurouteError(f"{path}: 'coords' has shape {coords.shape}; (count, n, 2) is expected")
    if not len(coords):
        raise NeurouteError(f"{path}: no instances in it: 'coords' has shape {coords.shape}; give at least one")
    bad = ~(np.abs(coords) <= FARTHEST).all((1, 2)) | (coords == coords[:, :1]).all((1, 2))
    worst = int(np.argmax(bad))  # the first bad one, or instance 0: its number of nodes is checked as well
    check_coordinates(coords[worst], f"{path}, instance {[*(numbers or range(len(coords)))][worst]}")
    is_vrp = any(key in arrays for key in KEYS) or ("demand" in arrays and bool((arrays["demand"] < 0).any()))
    has_vehicles = is_vrp or "demand" in arrays or "capacity" in arrays
    names = ("coords", "length", "solver", *(VEHICLES if has_vehicles else ("tour",)), *(KEYS if is_vrp else ()))
    if strange := [key for key in arrays if key not in names]:
        raise NeurouteError(
            f"{path}: array '{strange[0]}' is not supported{did_you_mean(near(strange[0], names))}; "
            f"remove it; supported are {', '.join(names)}"
        )
    if has_vehicles:
        for key in ("demand", "capacity"):
            if key not in arrays or not _all_whole(arrays[key]):
                raise NeurouteError(
                    f"{path}: no '{key}' in whole numbers, which instances with vehicles need (not shares)"
                )
        solutions = _routes(arrays, (len(coords), coords.shape[1] - 1), path)
        fields, own_lengths = (_vrp if is_vrp else _cvrp)(path, coords, arrays, solutions)
    else:
        fields, own_lengths = {}, None
        solutions = _shaped(arrays, "tour", coords.shape[:2], path)
        if solutions is not None:
            refuse(~is_permutation(solutions), path, "its tour does not visit every node once", numbers)
            own_lengths, solutions = tour_length(coords, solutions), solutions.astype(np.int64)
    file_lengths = _shaped(arrays, "length", coords.shape[:1], path)
    return {"points": coords, **fields, "best_known": agree(own_lengths, file_lengths, path), "solution": solutions}


def row(arrays: Mapping[str, Any], i: int) -> dict[str, Any]:
    """Return the attributes of one instance of those that `check_arrays` returns."""
    at = {key: values[i] if isinstance(values, np.ndarray) else values for key, values in arrays.items()}
    return {key: value.item() if isinstance(value, np.generic) else value for key, value in at.items()}


def agree(lengths: np.ndarray | None, file_lengths: Any, path: Path) -> np.ndarray | None:
    """Return the lengths (count,) of the solutions, else the stated ones.  Raises NeurouteError if the two differ."""
    if file_lengths is None:
        return lengths
    values = np.asarray(file_lengths, dtype=np.float64)
    refuse(~(np.isfinite(values) & (values > 0)), path, "its stated length is not a number above 0")
    if lengths is None:
        return values
    off = np.abs(values / lengths - 1)
    refuse(off > TOLERANCE, path, f"its stated length differs from its solution's by up to {100 * off.max():.3g} %")
    return lengths


def refuse(bad: np.ndarray, path: Path, why: str, numbers: Iterable[int] | None = None) -> None:
    """Raises NeurouteError for the first instance that is bad (count,)."""
    if bad.any():
        raise NeurouteError(f"{path}, instance {[*(numbers or range(len(bad)))][int(np.argmax(bad))]}: {why}")


def _cvrp(
    path: Path, coords: np.ndarray, arrays: Arrays, solutions: np.ndarray | None
) -> tuple[dict[str, Any], np.ndarray | None]:
    if (arrays["capacity"] <= 0).any():
        raise NeurouteError(f"{path}: 'capacity' is not above 0; give every instance a vehicle that carries something")
    loads = {key: _load(path, arrays[key], key) for key in ("demand", "capacity")}
    vrp = Vrp(coords, loads["demand"], loads["capacity"])
    check_cvrp(vrp, str(path))
    if solutions is not None:
        why = "its solution ('node', 'via_depot') does not serve every customer once, or overloads a route"
        refuse(~is_feasible(vrp, solutions), path, why)
    return loads, None if solutions is None else cost(vrp, solutions)


def _vrp(
    path: Path, coords: np.ndarray, arrays: Arrays, solutions: np.ndarray | None
) -> tuple[dict[str, Any], np.ndarray | None]:
    parts: dict[str, Any] = {key: arrays[key].astype(np.float64) for key in ("windows", "service") if key in arrays}
    if "limit" in arrays:
        limit = arrays["limit"].astype(np.float64)
        parts["limit"] = np.broadcast_to(limit, coords.shape[:1]) if limit.ndim == 0 else limit
    loads = {key: _load(path, arrays[key], key) for key in ("demand", "capacity")}
    vrp = Vrp(coords, **loads, open=_is_open(path, arrays), **parts)
    check_instances(vrp, str(path))
    if vrp.windows is not None and (bad := ~np.isfinite(vrp.windows).all(-1)).any():
        instance, node = np.argwhere(bad)[0].tolist()
        raise NeurouteError(
            f"{path}, instance {instance}: a window has no end, that of {_node_name(node)}; give first and last time"
        )
    _check_variant(path, vrp, arrays)
    scaled = in_unit_square(vrp, np.float32)
    # The tolerance is of the unit square: where a file's units are smaller it forgives too much, and float32 rounds
    # late times by more than it.  Solutions of an instance that cannot be completed would be built forever.
    check_instances(scaled, f"{path}, as networks take it (in the unit square, float32)")
    if solutions is not None:
        why = "its solution ('node', 'via_depot') does not serve every customer once, or breaks a constraint"
        refuse(~valid(scaled, solutions, "free start", LATE), path, why)
    fields = {"is_vrp": True, "open": vrp.open, **loads, **parts}
    return fields, None if solutions is None else lengths(vrp, solutions)


def _is_open(path: Path, arrays: Arrays) -> bool:
    """As 'open' says, else as the variant's name does."""
    is_open = arrays.get("open")
    if is_open is None:
        return "variant" in arrays and _switches(path, arrays).open
    if not np.isin(is_open, (0, 1)).all() or len(np.unique(is_open)) != 1:
        raise NeurouteError(f"{path}: 'open' is to be true or false, for all instances alike; split the file")
    return bool(is_open.flat[0])


def _switches(path: Path, arrays: Arrays) -> Switches:
    if arrays["variant"].shape != () or arrays["variant"].dtype.kind != "U":
        raise NeurouteError(f"{path}: 'variant' is to be one name for all instances, such as OVRPTW")
    try:
        return Variant(str(arrays["variant"][()])).switches
    except NeurouteError as error:
        raise NeurouteError(f"{path}: {error}") from None


def _check_variant(path: Path, vrp: Vrp, arrays: Arrays) -> None:
    """A name without what it promises, or the other way round.  Few customers may have no backhauls among them."""
    if "variant" not in arrays:
        return
    promised, actual = _switches(path, arrays), vrp.switches
    if actual != promised and actual != promised._replace(backhaul=False):
        names = {"open": "'open'", "backhaul": "demands below 0", "limit": "'limit'", "windows": "'windows'"}
        differ = [what for name, what in names.items() if getattr(promised, name) != getattr(actual, name)]
        raise NeurouteError(
            f"{path}: says {variant_of(promised)}, but its arrays are those of {variant_of(actual)}; see {differ[0]}"
        )


def _load(path: Path, values: np.ndarray, key: str) -> np.ndarray:
    """Whole numbers as int64.  Raises NeurouteError for those that are too large to add up without error."""
    bad = np.abs(values.astype(np.float64)) > LARGEST_LOAD
    if bad.any():
        instance, *node = np.argwhere(bad)[0].tolist() if bad.ndim else [0]
        whose = f" of {_node_name(node[0])}" if node else ""
        raise NeurouteError(
            f"{path}, instance {instance}: a {key}{whose} of {values[bad][0]:g}; give numbers up to {LARGEST_LOAD:,}"
        )
    return values.astype(np.int64)


def _node_name(node: int) -> str:
    return f"customer {node}" if node else "the depot"


def _routes(arrays: Arrays, shape: tuple[int, int], path: Path) -> np.ndarray | None:
    """Return solutions (count, 2, V) int64; shape: (count, V)."""
    order, via = _shaped(arrays, "node", shape, path), _shaped(arrays, "via_depot", shape, path)
    if order is None and via is None:
        return None
    if order is None or via is None:
        raise NeurouteError(f"{path}: 'node' and 'via_depot' make a solution together; give both or none")
    if not (_all_whole(order) and _all_whole(via)):
        raise NeurouteError(f"{path}: 'node' and 'via_depot' are whole numbers, customers from 1 on and 0 or 1")
    return np.stack([order.astype(np.int64), via.astype(np.int64)], axis=1)


def _shaped(arrays: Arrays, key: str, shape: tuple[int, ...], path: Path) -> np.ndarray | None:
    """Return an optional array.  Raises NeurouteError if its shape is not the one that the coordinates ask for."""
    if key in arrays and arrays[key].shape != shape:
        raise NeurouteError(f"{path}: '{key}' has shape {arrays[key].shape}; {shape} belongs to these coordinates")
    return arrays.get(key)


def _all_whole(values: np.ndarray) -> bool:
    return bool(np.isfinite(values).all() and (values % 1 == 0).all())


def check_distances(
    distances: np.ndarray, demand: np.ndarray | None, capacity: int | None, name: str
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return distances (n, n) and demands (n,) in int64, the depot first.

    Raises NeurouteError if they are no TSP or CVRP, with the first reason.
    """
    values = np.array(array_of(distances, name), dtype=np.float64)
    n = len(values) if values.ndim else 0
    if values.shape != (n, n) or n < FEWEST_NODES:
        raise NeurouteError(f"{name}: distances of shape {values.shape}; give (n, n), with n from {FEWEST_NODES} on")
    np.fill_diagonal(values, 0)  # what is there stands for "never"
    if (bad := _no_whole_numbers(values)).any():
        i, j = np.argwhere(bad)[0].tolist()
        raise NeurouteError(
            f"{name}: distance {values[i, j]:g} from node {i} to {j}; give whole numbers from 0 to {LARGEST:,}"
        )
    if not values.any():
        raise NeurouteError(f"{name}: all distances are 0; give at least one that is not")
    ways = values.astype(np.int64)
    if demand is None and capacity is None:
        return ways, None
    if demand is None or capacity is None:
        raise NeurouteError(f"{name}: demand and capacity make a CVRP together; give both or none")
    loads = np.array(array_of(demand, name), dtype=np.float64)
    if loads.shape != (n,) or _no_whole_numbers(loads).any() or loads[0]:
        raise NeurouteError(f"{name}: demand is ({n},) whole numbers from 0 on here, with 0 first, at the depot")
    if not 0 < capacity <= LARGEST or capacity % 1 or loads.max() > capacity:
        raise NeurouteError(
            f"{name}: a capacity of {capacity}; give a whole number that no demand is above ({loads.max():.0f})"
        )
    return ways, loads.astype(np.int64)


def check_windows(ways: np.ndarray, windows: np.ndarray, service: np.ndarray, name: str) -> None:
    """Raises NeurouteError, naming the node, if a vehicle of its own could not serve each node in its time window.

    ways (n, n), the depot first; windows (n, 2); service (n,).
    """
    opens, closes = windows.T
    begins = np.maximum(ways[0], opens)
    faults = {
        "its window closes before it opens; swap the two": closes < opens,
        "no vehicle gets there before its window closes; widen it": begins > closes,
        "no vehicle that serves it is back before the depot closes; widen the depot's window": (
            begins + service + ways[:, 0] > closes[0]
        ),
    }
    if opens[0] or service[0]:
        raise NeurouteError(f"{name}: the depot opens at {opens[0]:g}, with a service time of {service[0]:g}; give 0")
    for why, bad in faults.items():
        if bad.any():
            raise NeurouteError(f"{name}, {_node_name(int(np.argmax(bad)))}: {why}")


def _no_whole_numbers(values: np.ndarray) -> np.ndarray:
    """Whether each is no whole number from 0 to LARGEST."""
    inside = (values >= 0) & (values <= LARGEST)
    return np.asarray(~inside | (np.where(inside, values, 0) % 1 != 0))
