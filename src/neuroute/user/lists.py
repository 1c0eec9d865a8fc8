"""Instances in lists: text as LEHD and its kin have it, pickles as Kool et al. (2019) and MVMoE have them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.problems.vrp_variants import SWITCHES, Variant
from neuroute.user.arrays import cvrp_group, parse_arrays
from neuroute.user.instances import Group, Instances, check_instances, check_tours
from neuroute.user.pickled import read_pickle

VARIANT = re.compile(rf"({'|'.join(sorted(SWITCHES, key=len, reverse=True))})\d+_", re.IGNORECASE)
LEHD_FIELDS = ("depot", "customer", "capacity", "demand", "cost", "node_flag")


def read_lehd(path: Path, text: str) -> Instances:
    """Return the instances of a text, one a line, with their solutions if it has them.

    TSP: `x y x y ... output t1 ... tN t1`, nodes from 1.  CVRP, as LEHD's own reader takes it: `depot,x,y,customer,x,y,
    ...,capacity,c,demand,0,d1,...,cost,l,node_flag,...`, where the last are the customers in visiting order and then,
    for each, 1 if it is reached through the depot.

    Raises NeurouteError, naming file, line and mend, if a line is none.
    """
    return _lehd_cvrp(path, text) if text.lstrip().startswith("depot,") else _lehd_tsp(path, text)


def _lehd_tsp(path: Path, text: str) -> Instances:
    coords, tours = [], []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        head, output, right = line.partition("output")
        where = f"{path}, line {number}"
        try:
            if "_" in line or not line.isascii():
                raise ValueError
            points, tour = np.array(head.split(), dtype=np.float64), np.array(right.split(), dtype=np.int64)
        except (ValueError, OverflowError):
            raise NeurouteError(f"{where}: expected numbers `x y x y ... output t1 ... tN t1`") from None
        if not len(points) or len(points) % 2:
            raise NeurouteError(f"{where}: {len(points)} numbers before 'output'; x and y of each node are expected")
        coords.append(points.reshape(-1, 2))
        if output:
            n = len(coords[-1])
            if len(tour) != n + 1 or tour[0] != tour[-1]:
                raise NeurouteError(f"{where}: the tour after 'output' must name {n} nodes and the first one again")
            tours.append(tour[:-1] - 1)
    if tours and len(tours) < len(coords):
        raise NeurouteError(
            f"{path}: {len(tours)} of {len(coords)} instances have a tour; give all or none of them one"
        )
    return Instances("tsp", path.stem, _by_size(path, coords, tours))


def _lehd_cvrp(path: Path, text: str) -> Instances:
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        where, fields = f"{path}, line {number}", _fields(line)
        try:
            if "_" in line.replace("node_flag", "") or not line.isascii():
                raise ValueError
            values = {name: np.array(words, dtype=np.float64) for name, words in fields.items()}
        except ValueError:
            raise NeurouteError(
                f"{where}: something in {', '.join(fields)} is not a number; correct the line"
            ) from None
        n = len(values.get("customer", ())) // 2
        expected = {"depot": (2,), "customer": (2 * n,), "capacity": (1,), "demand": (n, n + 1)}
        expected |= {"cost": (1,), "node_flag": (2 * n,)} if "node_flag" in values else {}
        for name, sizes in expected.items():
            if (size := len(values.get(name, ()))) not in sizes or not size:
                raise NeurouteError(
                    f"{where}: '{name}' has {size} numbers; {sizes[-1] or 'x and y of each'} belong there"
                )
        one = {
            "coords": np.append(values["depot"], values["customer"]).reshape(-1, 2),
            "demand": np.append(np.zeros(n + 1 - len(values["demand"])), values["demand"]),
            "capacity": values["capacity"][0],
        }
        if "node_flag" in values:
            node, flag = values["node_flag"].reshape(2, n)
            one |= {"node": node, "via_depot": flag, "length": values["cost"][0]}
        rows.append(one)
    return _cvrps(path, rows)


def _fields(line: str) -> dict[str, list[str]]:
    """Words after each name, separated by commas."""
    fields: dict[str, list[str]] = {}
    words = fields.setdefault("depot", [])
    for word in line.strip().strip(",").split(","):
        if word in LEHD_FIELDS:
            words = fields.setdefault(word, [])
        else:
            words.append(word)
    return fields


def read_pickled(path: Path) -> Instances:
    """Return the instances of a pickle.  Raises NeurouteError, naming the first instance that is none."""
    data = read_pickle(path)
    if not isinstance(data, list | tuple | np.ndarray) or not len(data):
        raise NeurouteError(f"{path}: a list of instances is expected, each a list of [x, y]")
    if _is_mvmoe(data[0]):
        return _pickled_vrp(path, data)
    if _is_cvrp(data[0]):
        return _pickled_cvrp(path, data)
    coords = []
    for number, each in enumerate(data):
        points = _array(each)
        if points.ndim != 2 or points.shape[1] != 2:
            raise NeurouteError(
                f"{path}, instance {number}: a list of [x, y] is expected, or (depot, customers, demands, capacity)"
            )
        coords.append(points)
    return Instances("tsp", path.stem, _by_size(path, coords, []))


def _is_mvmoe(each: Any) -> bool:
    """Whether its depot is a list of one, as only MVMoE's instances have it."""
    return isinstance(each, list | tuple) and len(each) >= 4 and _array(each[0]).shape == (1, 2)


def _pickled_vrp(path: Path, data: Any) -> Instances:
    """MVMoE's instances: (depot, customers, demands, capacity), the longest route, service times, openings, closings.

    What of these is there follows from the variant, with which the file's name begins.
    """
    match = VARIANT.match(path.name)
    if match is None:
        raise NeurouteError(
            f"{path}: instances as MVMoE has them, whose variant the name says: call it ovrp50_uniform.pkl"
        )
    variant = match[1].upper()
    switches = Variant(variant).switches
    parts = 4 + switches.limit + 3 * switches.windows
    for number, record in enumerate(data):
        if not isinstance(record, list | tuple) or len(record) != parts:
            raise NeurouteError(
                f"{path}, instance {number}: {parts} parts are expected of {variant}, as MVMoE has them"
            )
    try:
        arrays = _arrays(list(zip(*data, strict=True)), switches.limit, switches.windows)
    except (TypeError, ValueError, OverflowError):
        raise NeurouteError(f"{path}: the instances are not all of one size, in numbers") from None
    extra = {"variant": np.array(variant)} if any(switches) else {}
    return parse_arrays(path, arrays | extra)


def _arrays(columns: list[Any], limit: bool, windows: bool) -> dict[str, np.ndarray]:
    """Arrays as an .npz holds them, the depot first."""
    depot, customers, demand, capacity = (np.asarray(column, dtype=np.float64) for column in columns[:4])
    arrays = {
        "coords": np.concatenate([depot.reshape(-1, 1, 2), customers], axis=1),
        "demand": np.pad(demand, ((0, 0), (1, 0))),
        "capacity": capacity.reshape(-1),
    }
    if limit:
        arrays["limit"] = np.asarray(columns[4], dtype=np.float64).reshape(-1)
    if windows:
        service, opens, closes = (np.asarray(column, dtype=np.float64) for column in columns[-3:])
        arrays["service"] = np.pad(service, ((0, 0), (1, 0)))
        from neuroute.datasets.vrp_stream import HORIZON  # which imports scipy: seen by who waits for a solver

        of_depot = np.broadcast_to([0.0, HORIZON], (len(opens), 1, 2))
        arrays["windows"] = np.concatenate([of_depot, np.stack([opens, closes], axis=-1)], axis=1)
    return arrays


def _is_cvrp(each: Any) -> bool:
    """Whether it is (depot, customers, demands, capacity), as Kool et al. (2019) have the CVRP."""
    return isinstance(each, list | tuple) and len(each) == 4 and _array(each[3]).ndim == 0 and _array(each[3]).size == 1


def _pickled_cvrp(path: Path, data: Any) -> Instances:
    rows = []
    for number, each in enumerate(data):
        depot, customers, demand = (_array(part) for part in each[:3]) if _is_cvrp(each) else [np.empty(0)] * 3
        if (
            depot.shape != (2,)
            or customers.ndim != 2
            or customers.shape[1:] != (2,)
            or demand.shape != customers.shape[:1]
        ):
            raise NeurouteError(f"{path}, instance {number}: (depot, customers, demands, capacity) is expected")
        one = {"coords": np.vstack([depot, customers]), "demand": np.append(0, demand), "capacity": _array(each[3])}
        rows.append(one)
    return _cvrps(path, rows)


def _cvrps(path: Path, rows: Sequence[Mapping[str, np.ndarray]]) -> Instances:
    """Return CVRP instances, each in arrays, in groups of one size; all or none have solutions."""
    if not rows:
        raise NeurouteError(f"{path}: no instances in it")
    if len({frozenset(row) for row in rows}) > 1:
        solved = sum("node" in row for row in rows)
        raise NeurouteError(f"{path}: {solved} of {len(rows)} instances have a solution; give all or none of them one")
    groups = []
    for n in sorted({len(row["coords"]) for row in rows}):
        parts = [row for row in rows if len(row["coords"]) == n]
        arrays = {key: np.stack([part[key] for part in parts]) for key in parts[0]}
        check_instances(arrays["coords"], path)
        group = cvrp_group(path, arrays["coords"], arrays)
        groups.append(group if len(parts) == len(rows) else replace(group, name=f"{path.stem}_n{n - 1}"))
    return Instances("cvrp", path.stem, tuple(groups))


def _array(values: Any) -> np.ndarray:
    """Return an array of numbers, empty where they make none."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return np.empty(0)


def _by_size(path: Path, coords: list[np.ndarray], tours: list[np.ndarray]) -> tuple[Group, ...]:
    """Groups of instances (n, 2), smallest first; `tours` is empty or has one for each."""
    if not coords:
        raise NeurouteError(f"{path}: no instances in it")
    members: dict[int, list[int]] = {}
    for number, points in enumerate(coords):
        members.setdefault(len(points), []).append(number)
    groups = []
    for n, numbers in sorted(members.items()):
        points = np.stack([coords[i] for i in numbers])
        check_instances(points, path, numbers)
        solutions = np.stack([tours[i] for i in numbers]) if tours else None
        reference = None if solutions is None else check_tours(points, solutions, path, numbers)
        name = path.stem if len(members) == 1 else f"{path.stem}_n{n}"
        groups.append(Group(name, points, reference, solutions=solutions))
    return tuple(groups)
