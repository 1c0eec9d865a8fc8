"""Users' instances of the 16 vehicle routing problems (.npz, or Solomon's .txt), checked and scaled.

An npz is one of these, rather than CVRP, when it says which (`variant`, a name such as "OVRPTW"), or has `open`,
`limit`, `windows`, `service` or demands below 0: shapes as in `problems.vrp.Vrp`, `open` and `limit` also as one number
for all instances.  Vehicles drive at speed 1.  Solutions are as for CVRP, `node` and `via_depot`; vehicles may leave
the depot with any load in them.
"""

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.datasets.benchmarks import optimum_of
from neuroute.datasets.sections import read_text
from neuroute.datasets.solomon import HORIZON, SIZES, parse_solomon, stated_customers
from neuroute.datasets.vrplib import check_served, read_solution
from neuroute.problems.vrp import Vrp, from_routes, lengths
from neuroute.problems.vrp_checker import fault, valid
from neuroute.problems.vrp_servable import LARGEST_LOAD, check_instances
from neuroute.problems.vrp_variants import Switches, Variant, variant_of
from neuroute.user.instances import Group, agree, refuse

log = logging.getLogger(__name__)
KEYS = ("variant", "open", "limit", "windows", "service")
LATE = 1e-3  # by how much, of the unit square, solutions may be late: solvers compute on integer grids


def vrp_group(path: Path, coords: np.ndarray, arrays: dict[str, np.ndarray]) -> Group:
    """Return the instances of an npz, whose demands and capacities are whole numbers.

    Raises NeurouteError, naming the file and the instance, if one cannot be served or is not what the file says.
    """
    count = len(coords)
    vrp = Vrp(
        coords,
        _whole(path, arrays, "demand"),
        _whole(path, arrays, "capacity"),
        _is_open(path, arrays),
        _for_each(arrays.get("limit"), count),
        _floats(arrays.get("windows")),
        _floats(arrays.get("service")),
    )
    check_instances(vrp, str(path))
    _check_ends(path, vrp)
    _check_variant(path, vrp, arrays)
    scaled = scale_for_networks(vrp)
    # The tolerance is of the unit square: where a file's units are smaller it forgives too much, and float32 rounds
    # late times by more than it.  Solutions of an instance that cannot be completed would be built forever.
    check_instances(scaled, f"{path}, as networks take it (in the unit square, float32)")
    solutions = read_solutions(path, arrays, (len(vrp), vrp.customers))
    solution_lengths = None if solutions is None else _measure(path, vrp, scaled, solutions)
    reference = agree(solution_lengths, shaped(arrays, "length", (count,), path), path)
    return Group(path.stem, coords, reference, vrp.demand, vrp.capacity, vrp=vrp, seen=scaled, solutions=solutions)


def is_solomon(text: str) -> bool:
    """Whether a line is the heading of a section of Solomon's files."""
    return any(line.strip().upper() in ("VEHICLE", "CUSTOMER") for line in text.splitlines())


def solomon_group(path: Path) -> Group:
    """Return the instance of a file of Solomon's.

    Of a published one the reference is the best cost known, of others the length of the .sol file beside it.  Raises
    NeurouteError, naming file, line and mend, if file or solution is none.
    """
    text = read_text(path, "one of Solomon's .txt files")
    count = stated_customers(text)
    instance = parse_solomon(text, str(path), path.stem, SIZES if count is None else (count,))
    fleet = instance.vehicles
    if fleet is not None and fleet < len(instance.coords) - 1:
        log.warning("%s: its number of vehicles (%d) is ignored; routes are as many as they need be", path, fleet)
    best = optimum_of(instance, "solomon")
    vrp, scaled = instance.unscaled(), instance.scaled()
    if best is not None:
        reference = np.array([best], dtype=np.float64)
        return Group(path.stem, vrp.coords, reference, vrp.demand, vrp.capacity, vrp=vrp, seen=scaled, file=instance)
    beside = path.with_suffix(".sol")
    reference_lengths, solutions = None, None
    if beside.is_file():
        routes, file_cost = read_solution(beside)
        check_served(routes, vrp.customers, str(beside))
        solutions = from_routes(routes)[None]
        if why := fault(scaled, 0, solutions[0], "free start", LATE):
            raise NeurouteError(f"{beside}: {why}")
        reference_lengths = agree(lengths(vrp, solutions), None if file_cost is None else np.array([file_cost]), beside)
    return Group(
        instance.name,
        vrp.coords,
        reference_lengths,
        vrp.demand,
        vrp.capacity,
        vrp=vrp,
        seen=scaled,
        solutions=solutions,
    )


def scale_for_networks(vrp: Vrp) -> Vrp:
    """Return the instances for a network, float32, in the unit square."""
    return in_unit_square(vrp, np.float32)


def in_unit_square(vrp: Vrp, dtype: type[np.floating]) -> Vrp:
    """Return the instances with coordinates and times of a type.  One that lies in the unit square stays as it is;
    others are moved and scaled into it, times and limits too, by one scale that also brings the depot's closing to 3 or
    below."""
    low, high = (f(vrp.coords, axis=(1, 2)) for f in (np.min, np.max))
    stays = (low >= 0) & (high <= 1)
    size = high - low if vrp.windows is None else np.maximum(high - low, vrp.windows[:, 0, 1] / HORIZON)
    size, low = np.where(stays, 1.0, size), np.where(stays, 0.0, low)
    windows, service = vrp.windows, vrp.service
    return replace(
        vrp,
        coords=((vrp.coords - low[:, None, None]) / size[:, None, None]).astype(dtype),
        limit=None if vrp.limit is None else vrp.limit / size,
        windows=None if windows is None else (windows / size[:, None, None]).astype(dtype),
        service=None if service is None else (service / size[:, None]).astype(dtype),
    )


def _is_open(path: Path, arrays: dict[str, np.ndarray]) -> bool:
    """As 'open' says, else as the variant's name does."""
    is_open = arrays.get("open")
    if is_open is None:
        return "variant" in arrays and _variant_switches(path, arrays).open
    if not np.isin(is_open, (0, 1)).all() or len(np.unique(is_open)) != 1:
        raise NeurouteError(f"{path}: 'open' is to be true or false, for all instances alike; split the file")
    return bool(is_open.flat[0])


def _variant_switches(path: Path, arrays: dict[str, np.ndarray]) -> Switches:
    if arrays["variant"].shape != () or arrays["variant"].dtype.kind != "U":
        raise NeurouteError(f"{path}: 'variant' is to be one name for all instances, such as OVRPTW")
    try:
        return Variant(str(arrays["variant"][()])).switches
    except NeurouteError as error:
        raise NeurouteError(f"{path}: {error}") from None


def _check_variant(path: Path, vrp: Vrp, arrays: dict[str, np.ndarray]) -> None:
    """A name without what it promises, or the other way round.  Few customers may have no backhauls among them."""
    if "variant" not in arrays:
        return
    promised, actual = _variant_switches(path, arrays), vrp.switches
    if actual != promised and actual != promised._replace(backhaul=False):
        names = {"open": "'open'", "backhaul": "demands below 0", "limit": "'limit'", "windows": "'windows'"}
        differ = [what for name, what in names.items() if getattr(promised, name) != getattr(actual, name)]
        raise NeurouteError(
            f"{path}: says {variant_of(promised)}, but its arrays are those of {variant_of(actual)}; see {differ[0]}"
        )


def _whole(path: Path, arrays: dict[str, np.ndarray], key: str) -> np.ndarray:
    """Whole numbers as int64.  Raises NeurouteError for those that are too large to add up without error."""
    values = arrays[key]
    bad = np.abs(values.astype(np.float64)) > LARGEST_LOAD
    if bad.any():
        instance, *node = np.argwhere(bad)[0].tolist() if bad.ndim else [0]
        whose = f" of {_node_name(node[0])}" if node else ""
        raise NeurouteError(
            f"{path}, instance {instance}: a {key}{whose} of {values[bad][0]:g}; give numbers up to {LARGEST_LOAD:,}"
        )
    return values.astype(np.int64)


def _check_ends(path: Path, vrp: Vrp) -> None:
    """Raises NeurouteError for a window that has none, which networks cannot read."""
    if vrp.windows is not None and (bad := ~np.isfinite(vrp.windows).all(-1)).any():
        instance, node = np.argwhere(bad)[0].tolist()
        raise NeurouteError(
            f"{path}, instance {instance}: a window has no end, that of {_node_name(node)}; give the first and the "
            "latest time that count"
        )


def _node_name(node: int) -> str:
    return f"customer {node}" if node else "the depot"


def _for_each(values: np.ndarray | None, count: int) -> np.ndarray | None:
    return (
        None
        if values is None
        else np.broadcast_to(values, (count,) if values.ndim == 0 else values.shape).astype(float)
    )


def _floats(values: np.ndarray | None) -> np.ndarray | None:
    return None if values is None else values.astype(np.float64)


def _measure(path: Path, vrp: Vrp, scaled: Vrp, solutions: np.ndarray) -> np.ndarray:
    """Return the lengths (count,) of the solutions in the file."""
    why = "its solution ('node', 'via_depot') does not serve every customer once, or breaks a constraint"
    refuse(~valid(scaled, solutions, "free start", LATE), path, why)
    return lengths(vrp, solutions)


def read_solutions(path: Path, arrays: dict[str, np.ndarray], shape: tuple[int, int]) -> np.ndarray | None:
    """Return solutions (count, 2, V) int64 of an npz, None if it has none; shape: (count, V).

    Raises NeurouteError if only one of the two arrays is there, is of another shape, or holds no whole numbers.
    """
    order, via = shaped(arrays, "node", shape, path), shaped(arrays, "via_depot", shape, path)
    if order is None and via is None:
        return None
    if order is None or via is None:
        raise NeurouteError(f"{path}: 'node' and 'via_depot' make a solution together; give both or none")
    if not (all_whole(order) and all_whole(via)):
        raise NeurouteError(f"{path}: 'node' and 'via_depot' are whole numbers, customers from 1 on and 0 or 1")
    return np.stack([order.astype(np.int64), via.astype(np.int64)], axis=1)


def shaped(arrays: dict[str, np.ndarray], key: str, shape: tuple[int, ...], path: Path) -> np.ndarray | None:
    """Return an optional array.  Raises NeurouteError if its shape is not the one that the coordinates ask for."""
    if key in arrays and arrays[key].shape != shape:
        raise NeurouteError(f"{path}: '{key}' has shape {arrays[key].shape}; {shape} belongs to these coordinates")
    return arrays.get(key)


def all_whole(values: np.ndarray) -> bool:
    """Whether all are whole numbers."""
    return bool(np.isfinite(values).all() and (values % 1 == 0).all())
