"""Files of many instances: arrays (.npz), .csv, text of LEHD and its kin, pickles of Kool et al. and of MVMoE.

All become arrays by their names in an .npz, which `arrays` checks.
"""

import logging
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from neuroute.core.arrays import read_arrays, read_rows, real
from neuroute.core.errors import NeurouteError
from neuroute.problems.instances.arrays import Arrays, check_arrays
from neuroute.problems.instances.distances import HORIZON
from neuroute.problems.instances.instance import Instance, Instances
from neuroute.problems.instances.pickled import read_pickle
from neuroute.problems.tsp import FEWEST_NODES
from neuroute.problems.vrp import SWITCHES, Variant

log = logging.getLogger(__name__)
SHARE = 1e-3  # by which a demand times the capacity may miss a whole number: shares are of 32 bits
VARIANT = re.compile(rf"({'|'.join(sorted(SWITCHES, key=len, reverse=True))})\d+_", re.IGNORECASE)
LEHD_FIELDS = ("depot", "customer", "capacity", "demand", "cost", "node_flag")
POINTS = "a list of [x, y] is expected, or (depot, customers, demands, capacity)"


TABLE = ("x", "y", "demand", "capacity")  # columns of a .csv
LABELS = ("id", "name", "node", "city", "label")  # others, which say nothing of what is solved


def read_npz(path: Path) -> Instances:
    """Return the instances of an .npz.  Raises NeurouteError, naming the first that is none."""
    arrays = read_arrays(path)
    if "coords" not in arrays and "locs" in arrays:
        arrays = _of_rl4co(path, arrays)
    elif "coords" in arrays and arrays["coords"].ndim == 2:  # one instance
        of_all = ("variant", "solver", "open")
        arrays = {key: values if key in of_all else values[None] for key, values in arrays.items()}
    return Instances.of_arrays(path.stem, check_arrays(path, arrays))


def _of_rl4co(path: Path, arrays: Arrays) -> Arrays:
    """Return arrays by our names, of `locs` (count, n, 2); of the CVRP with `depot` (count, 2), `demand` (count, n).

    Demands may be shares of the capacity.  All may be of one instance, without the first axis.
    """
    parts = {("coords" if key == "locs" else key): values for key, values in arrays.items()}
    if parts["coords"].ndim == 2:
        parts = {key: values[None] for key, values in parts.items()}
    try:
        if "depot" in parts:
            parts["coords"] = np.concatenate([parts.pop("depot").reshape(-1, 1, 2), parts["coords"]], axis=1)
            parts["capacity"] = parts["capacity"].reshape(-1)
            demand = parts["demand"].astype(np.float64)
            if 0 < demand.max() <= 1 < parts["capacity"].min():
                shares, demand = demand, np.rint(demand * parts["capacity"][:, None])
                if np.abs(demand - shares * parts["capacity"][:, None]).max() > SHARE:
                    raise NeurouteError(f"{path}: shares in 'demand' that are no whole numbers times 'capacity'")
            parts["demand"] = np.pad(demand, ((0, 0), (1, 0)))
    except (KeyError, ValueError, TypeError):
        shapes = ", ".join(f"'{key}' {values.shape}" for key, values in arrays.items())
        raise NeurouteError(
            f"{path}: give 'locs' (count, n, 2), 'depot' (count, 2), 'demand' (count, n) and 'capacity' (count,), as "
            f"rl4co does; there are {shapes}"
        ) from None
    return parts


def read_csv(path: Path, text: str) -> Instances:
    """Return the instances of a table whose first line names its columns.

    x and y, with vehicles demand and capacity (the depot first), of several instances their number or name in instance.
    Raises NeurouteError, naming file, line and mend, for other columns, ragged rows and what is no number.
    """
    columns, rows = read_rows(text.lower(), str(path))
    strange = [name for name in columns if name not in (*TABLE, "instance", *LABELS)]
    if strange or not {"x", "y"} <= set(columns):
        what = f"column '{strange[0][:40]}' is not read" if strange else "no columns x and y"
        raise NeurouteError(f"{path}, line 1: {what}; give x, y and, optionally, demand, capacity, instance, name")
    if labels := [name for name in columns if name in LABELS]:
        log.warning("%s: %s is ignored; nodes are numbered as they come", path, " and ".join(labels))
    values, members = [name for name in TABLE if name in columns], dict[str, list[list[float]]]()
    for where, cells in rows:
        try:
            members.setdefault(cells.get("instance", ""), []).append([real(cells[name]) for name in values])
        except ValueError:
            raise NeurouteError(f"{where}: expected numbers as in 1.5 for {', '.join(values)}") from None
    arrays = [dict(zip(values, np.array(nodes).T, strict=True)) for nodes in members.values()]
    for key, one in zip(members, arrays, strict=True):
        one["coords"] = np.column_stack([one.pop("x"), one.pop("y")])
        if "capacity" in one and (one["capacity"] != one["capacity"][0]).any():
            raise NeurouteError(f"{path}, instance {key or 0}: several capacities; give all of its rows one")
        one |= {"capacity": one["capacity"][0]} if "capacity" in one else {}
    return _of_rows(path, arrays)


def read_lehd(path: Path, text: str) -> Instances:
    """Return the instances of a text, one a line, with their solutions if it has them.

    TSP: `x y x y ... output t1 ... tN t1`, nodes from 1.  CVRP, as LEHD's own reader takes it: `depot,x,y,customer,x,y,
    ...,capacity,c,demand,0,d1,...,cost,l,node_flag,...`, where the last are the customers in visiting order and then,
    for each, 1 if it is reached through the depot.

    Raises NeurouteError, naming file, line and mend, if a line is none.
    """
    first, second, *_ = (*(len(line.split()) for line in text.splitlines() if line.strip()), 0, 0)
    if (first, second) == (3, 9):
        raise NeurouteError(f"{path}: columns of Li and Lim, of pickup and delivery (PDPTW), are not read")
    read_line = _cvrp_line if text.lstrip().startswith("depot,") else _tsp_line
    lines = enumerate(text.splitlines(), 1)
    return _of_rows(path, [read_line(line, f"{path}, line {number}") for number, line in lines if line.strip()])


def _tsp_line(line: str, where: str) -> Arrays:
    head, output, right = line.partition("output")
    try:
        if "_" in line or not line.isascii():
            raise ValueError
        points, tour = np.array(head.split(), dtype=np.float64), np.array(right.split(), dtype=np.int64)
    except (ValueError, OverflowError):
        raise NeurouteError(f"{where}: expected numbers `x y x y ... output t1 ... tN t1`") from None
    if len(points) < 2 * FEWEST_NODES or len(points) % 2:
        raise NeurouteError(
            f"{where}: {len(points)} numbers before 'output'; give x and y of each node (LEHD), headings VEHICLE and "
            "CUSTOMER (Solomon), or a table of nodes as .csv"
        )
    coords = points.reshape(-1, 2)
    if not output:
        return {"coords": coords}
    if len(tour) != len(coords) + 1 or tour[0] != tour[-1]:
        raise NeurouteError(f"{where}: the tour after 'output' must name {len(coords)} nodes and the first one again")
    return {"coords": coords, "tour": tour[:-1] - 1}


def _cvrp_line(line: str, where: str) -> Arrays:
    fields: dict[str, list[str]] = {}
    words = fields.setdefault("depot", [])
    for word in line.strip().strip(",").split(","):
        if word in LEHD_FIELDS:
            words = fields.setdefault(word, [])
        else:
            words.append(word)
    try:
        if "_" in line.replace("node_flag", "") or not line.isascii():
            raise ValueError
        values = {name: np.array(words, dtype=np.float64) for name, words in fields.items()}
    except ValueError:
        raise NeurouteError(f"{where}: something in {', '.join(fields)} is not a number; correct the line") from None
    n = len(values.get("customer", ())) // 2
    expected = {"depot": (2,), "customer": (2 * n,), "capacity": (1,), "demand": (n, n + 1)}
    expected |= {"cost": (1,), "node_flag": (2 * n,)} if "node_flag" in values else {}
    for name, sizes in expected.items():
        if (size := len(values.get(name, ()))) not in sizes or not size:
            raise NeurouteError(f"{where}: '{name}' has {size} numbers; {sizes[-1] or 'x and y of each'} belong there")
    one = {
        "coords": np.append(values["depot"], values["customer"]).reshape(-1, 2),
        "demand": np.append(np.zeros(n + 1 - len(values["demand"])), values["demand"]),
        "capacity": values["capacity"][0],
    }
    if "node_flag" in values:
        node, flag = values["node_flag"].reshape(2, n)
        one |= {"node": node, "via_depot": flag, "length": values["cost"][0]}
    return one


def read_pickled(path: Path) -> Instances:
    """Return the instances of a pickle.  Raises NeurouteError, naming the first instance that is none."""
    data = read_pickle(path)
    if not isinstance(data, list | tuple | np.ndarray) or not len(data):
        raise NeurouteError(f"{path}: a list of instances is expected, each a list of [x, y]")
    first = data[0]
    if isinstance(first, list | tuple) and len(first) >= 4 and _array(first[0]).shape == (1, 2):  # only MVMoE's are so
        return _pickled_vrp(path, data)
    return _of_rows(path, [_pickled(each, f"{path}, instance {i}", _is_cvrp(first)) for i, each in enumerate(data)])


def _is_cvrp(each: Any) -> bool:
    """Whether it is (depot, customers, demands, capacity), as Kool et al. (2019) have the CVRP."""
    return isinstance(each, list | tuple) and len(each) == 4 and _array(each[3]).ndim == 0 and _array(each[3]).size == 1


def _pickled(each: Any, where: str, is_cvrp: bool) -> Arrays:
    if not is_cvrp:
        points = _array(each)
        if points.ndim != 2 or points.shape[1] != 2:
            raise NeurouteError(f"{where}: {POINTS}")
        return {"coords": points}
    depot, customers, demand = (_array(part) for part in each[:3]) if _is_cvrp(each) else [np.empty(0)] * 3
    if depot.shape != (2,) or customers.shape[1:] != (2,) or demand.shape != customers.shape[:1]:
        raise NeurouteError(f"{where}: (depot, customers, demands, capacity) is expected")
    return {"coords": np.vstack([depot, customers]), "demand": np.append(0, demand), "capacity": _array(each[3])}


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
        columns = [np.asarray(column, dtype=np.float64) for column in zip(*data, strict=True)]
        arrays = {
            "coords": np.concatenate([columns[0].reshape(-1, 1, 2), columns[1]], axis=1),
            "demand": np.pad(columns[2], ((0, 0), (1, 0))),
            "capacity": columns[3].reshape(-1),
        }
        if switches.limit:
            arrays["limit"] = columns[4].reshape(-1)
        if switches.windows:
            service, opens, closes = columns[-3:]
            arrays["service"] = np.pad(service, ((0, 0), (1, 0)))
            of_depot = np.broadcast_to([0.0, HORIZON], (len(opens), 1, 2))
            arrays["windows"] = np.concatenate([of_depot, np.stack([opens, closes], axis=-1)], axis=1)
    except (TypeError, ValueError, OverflowError):
        raise NeurouteError(f"{path}: not numbers, or not all of one size; write one file a size") from None
    extra = {"variant": np.array(variant)} if any(switches) else {}
    return Instances.of_arrays(path.stem, check_arrays(path, arrays | extra))


def _array(values: Any) -> np.ndarray:
    """Return an array of numbers, empty where they make none."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return np.empty(0)


def _of_rows(path: Path, rows: Sequence[Arrays]) -> Instances:
    """Return instances, each in arrays; all or none have solutions."""
    if not rows:
        raise NeurouteError(f"{path}: no instances in it; give at least one")
    if len({frozenset(row) for row in rows}) > 1:
        solved, is_tsp = sum(bool({"tour", "node"} & row.keys()) for row in rows), "demand" not in rows[0]
        raise NeurouteError(
            f"{path}: {solved} of {len(rows)} instances have a {'tour' if is_tsp else 'solution'}; give one to all "
            "or to none"
        )
    sizes: dict[int, list[int]] = {}
    for number, row in enumerate(rows):
        sizes.setdefault(len(row["coords"]), []).append(number)
    members: dict[int, Instance] = {}
    for numbers in sizes.values():
        arrays = {key: np.stack([rows[i][key] for i in numbers]) for key in rows[0]}
        parts = Instances.of_arrays(path.stem, check_arrays(path, arrays, numbers)).members
        members |= {i: replace(each, name=f"{path.stem}_{i}") for each, i in zip(parts, numbers, strict=True)}
    in_order = [members[i] for i in range(len(rows))] if len(rows) > 1 else [replace(members[0], name=path.stem)]
    return Instances(path.stem, tuple(in_order))
