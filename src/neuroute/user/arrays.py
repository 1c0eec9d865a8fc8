"""Instances in arrays, as an .npz has them, checked."""

from pathlib import Path

import numpy as np

from neuroute.core.errors import NeurouteError, did_you_mean, near
from neuroute.problems.cvrp import check_instances as check_cvrp
from neuroute.problems.cvrp import cost, is_feasible
from neuroute.problems.vrp import Vrp
from neuroute.problems.vrp_servable import LARGEST_LOAD
from neuroute.user.instances import Group, Instances, agree, check_instances, check_tours, refuse
from neuroute.user.vrp_data import KEYS, all_whole, read_solutions, shaped, vrp_group

VEHICLES = ("demand", "capacity", "node", "via_depot")


def parse_arrays(path: Path, arrays: dict[str, np.ndarray]) -> Instances:
    """Return the instances that arrays make, as in an .npz; `path` names them.  Raises NeurouteError if they do not."""
    if "coords" not in arrays:
        raise NeurouteError(f"{path}: no array 'coords' (count, n, 2); it holds {', '.join(arrays) or 'nothing'}")
    for key, values in arrays.items():
        if values.dtype.kind not in "fiub" and key not in ("variant", "solver"):
            raise NeurouteError(f"{path}: array '{key}' holds {values.dtype}, not numbers")
    coords = arrays["coords"].astype(np.float64)
    check_instances(coords, path)
    vrp = any(key in arrays for key in KEYS) or ("demand" in arrays and bool((arrays["demand"] < 0).any()))
    vehicles = vrp or "demand" in arrays or "capacity" in arrays
    names = ("coords", "length", "solver", *(VEHICLES if vehicles else ("tour",)), *(KEYS if vrp else ()))
    if strange := [key for key in arrays if key not in names]:
        raise NeurouteError(
            f"{path}: array '{strange[0]}' is not read, and what it says would be lost"
            f"{did_you_mean(near(strange[0], names))}; there are {', '.join(names)}"
        )
    if vrp:
        _check_loads(path, arrays)
        return Instances("vrp", path.stem, (vrp_group(path, coords, arrays),))
    if vehicles:  # both are checked for
        return Instances("cvrp", path.stem, (cvrp_group(path, coords, arrays),))
    tours = shaped(arrays, "tour", coords.shape[:2], path)
    reference = None if tours is None else check_tours(coords, tours, path)
    file_lengths = shaped(arrays, "length", coords.shape[:1], path)
    solutions = None if tours is None else tours.astype(np.int64)
    return Instances(
        "tsp", path.stem, (Group(path.stem, coords, agree(reference, file_lengths, path), solutions=solutions),)
    )


def _check_loads(path: Path, arrays: dict[str, np.ndarray]) -> None:
    for key in ("demand", "capacity"):
        if key not in arrays or not all_whole(arrays[key]):
            raise NeurouteError(f"{path}: no '{key}' in whole numbers, which instances with vehicles need")


def cvrp_group(path: Path, coords: np.ndarray, arrays: dict[str, np.ndarray]) -> Group:
    """Return CVRP instances of one size, over checked coordinates.  Raises NeurouteError if the arrays make none."""
    _check_loads(path, arrays)
    if (arrays["capacity"] <= 0).any():
        raise NeurouteError(f"{path}: 'capacity' is not above 0; give every instance a vehicle that carries something")
    for key in ("demand", "capacity"):
        if (np.abs(arrays[key].astype(np.float64)) > LARGEST_LOAD).any():
            raise NeurouteError(f"{path}: '{key}' goes beyond {LARGEST_LOAD:,}; give it in larger units")
    instances = Vrp(coords, arrays["demand"].astype(np.int64), arrays["capacity"].astype(np.int64))
    check_cvrp(instances, str(path))
    solutions = read_solutions(path, arrays, (len(coords), coords.shape[1] - 1))
    reference = None
    if solutions is not None:
        why = "its solution ('node', 'via_depot') does not serve every customer once, or overloads a route"
        refuse(~is_feasible(instances, solutions), path, why)
        reference = cost(instances, solutions)
    reference = agree(reference, shaped(arrays, "length", (len(coords),), path), path)
    return Group(path.stem, coords, reference, instances.demand, instances.capacity, solutions=solutions)
