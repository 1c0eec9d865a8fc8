"""Instance streams: coordinates as a pure function of (distribution, split, n, instance), never stored.

Instance i lies in shard i // SHARD.  Every number comes from numpy's counter-based Philox generator with the key
[(distribution id << 40) | (split id << 32) | n, (field id << 32) | shard]; the raw 64-bit draws of a shard's
instances follow each other, a fixed number per instance, so any range is reached without drawing what precedes it.

Fields: 0 POINTS, two draws per node, in node order (the coordinates of uniform instances);
        1 INSTANCE, a few draws per instance; 2 NODES, one draw per node.

| distribution | POINTS                   | INSTANCE                                    | NODES                     |
|--------------|--------------------------|---------------------------------------------|---------------------------|
| uniform      | coordinates              |                                             |                           |
| cluster      | offset from the centre   | x, y of each of the three centres           | which centre              |
| explosion    | points before            | x, y of the centre, radius                  | how far beyond the radius |
| implosion    | points before            | x, y of the centre, radius, normal variate  |                           |

CVRP instances (uniform; n is the number of customers) have fields of their own:
        3 CUSTOMERS, two draws per customer: x, y;  4 DEPOT, two draws per instance: x, y;
        5 DEMANDS, one draw per customer: a whole number from 1 to 9.
Their capacity is a rule (`cvrp_capacity`), not a draw.

The shapes follow Fang et al. (2024), which scaling, Section D.2, takes up: all but the uniform instances
are shifted and scaled at the end, alike on both axes, so that they span the unit square's longer side.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path
from types import MappingProxyType

import numpy as np
from scipy.special import log1p, ndtri

from neuroute.core.arrays import read_arrays
from neuroute.core.errors import NeurouteError
from neuroute.core.files import write_whole
from neuroute.problems.vrp import EPS, Variant, Vrp, distances
from neuroute.specs.objects import SHARD, Dataset

# -- Published test sets in the place of drawn ones: their instances, as `neuroute label` keeps them beside labels

FIELDS = ("coords", "demand", "capacity", "open", "limit", "windows", "service")  # of a `Vrp`; the TSP has the first


def write_instances(path: Path, instances: np.ndarray | Vrp) -> None:
    """Keep coordinates (count, n, 2), or instances with vehicles, where data sets with that `file` find them."""
    fields = {"coords": instances} if isinstance(instances, np.ndarray) else {k: getattr(instances, k) for k in FIELDS}
    arrays = {key: np.asarray(value) for key, value in fields.items() if value is not None}
    write_whole(path, lambda file: np.savez(file, **arrays))  # type: ignore[arg-type]


def read_vehicles(dataset: Dataset) -> Vrp:
    """Return instances with vehicles.  Raises NeurouteError if they are not there."""
    arrays = _rows(dataset)
    return Vrp(**{**arrays, "open": bool(arrays["open"])})  # type: ignore[arg-type]


def _rows(dataset: Dataset) -> dict[str, np.ndarray]:
    assert dataset.file is not None
    path, rows = Path(dataset.file), slice(dataset.first, dataset.first + dataset.count)
    try:
        arrays = {key: values if key == "open" else values[rows] for key, values in read_arrays(path).items()}
    except NeurouteError as error:
        raise NeurouteError(
            f"{error}: instances of {dataset.id} cannot be read; run `neuroute label` and the id of their label job"
        ) from None
    if len(arrays["coords"]) < dataset.count:
        raise NeurouteError(f"{path}: fewer instances than the {dataset.count:,} of {dataset.id}; give a larger file")
    return arrays


SPLITS = {"train": 1, "val": 2, "test": 3}
DISTRIBUTIONS = {"uniform": 0, "cluster": 1, "explosion": 2, "implosion": 3}
MIXTURES = {"centred": 4, "half-centred": 5}  # CVRP; see `mixture_points`
POINTS, INSTANCE, NODES = 0, 1, 2
CUSTOMERS, DEPOT, DEMANDS = 3, 4, 5

CENTRES, CENTRE_RANGE = 3, 10.0  # cluster
RANGE, DEVIATION = (0.2, 0.8), 0.07  # mixtures: of centres, and around them
RADIUS = (0.1, 0.5)  # explosion and implosion
BEYOND_RATE = 10.0  # explosion
LARGEST_DEMAND = 9
# Capacity from this many customers on: Kool et al. (2019) up to 100, LEHD (Luo et al., 2023) to 1000, sit above.
CAPACITIES = {1: 20, 20: 30, 50: 40, 100: 50, 200: 80, 500: 100, 1000: 250, 5000: 500, 10_000: 1000, 50_000: 2000}

Draw = Callable[[int, int], np.ndarray]  # (field, draws per instance) -> uint64 (count, draws)


def dataset_coordinates(dataset: Dataset) -> np.ndarray:
    """Return the coordinates of a TSP data set: float32 (count, n, 2).  Raises NeurouteError if they are not there."""
    if dataset.file is not None:
        return _rows(dataset)["coords"]
    return coordinates(dataset.distribution, dataset.split, dataset.n, dataset.first, dataset.count)


def coordinates(distribution: str, split: str, n: int, first: int, count: int) -> np.ndarray:
    """Return instances first..first+count-1 of a TSP stream: float32 (count, n, 2).

    Any two calls agree bit for bit on the instances they share.  Raises NeurouteError if the distribution or the split
    is unknown.
    """
    if distribution not in DISTRIBUTIONS or split not in SPLITS:
        raise NeurouteError(
            f"no instance stream '{distribution}', '{split}'; distributions: {', '.join(DISTRIBUTIONS)}; "
            f"splits: {', '.join(SPLITS)}"
        )
    make = {"uniform": _uniform, "cluster": _cluster, "explosion": _explosion, "implosion": _implosion}[distribution]
    word = DISTRIBUTIONS[distribution] << 40 | SPLITS[split] << 32 | n
    out = np.empty((count, n, 2), dtype=np.float32)
    for rows, draw in drawers(word, first, count):
        out[rows] = make(draw, n)
    return out


def cvrp_dataset(dataset: Dataset) -> Vrp:
    """Return CVRP instances of n customers; any two calls agree bit for bit on the instances they share.

    Depot and customers are uniform in the unit square, or around centres (`mixture_points`), in float32.  Raises
    NeurouteError for other distributions.
    """
    if dataset.file is not None:
        return read_vehicles(dataset)
    d, n, word = dataset, dataset.n, check_customers("CVRP", dataset, MIXTURES)
    coords = np.empty((d.count, n + 1, 2), dtype=np.float32)
    demand = np.empty((d.count, n + 1), dtype=np.int64)
    for rows, draw in drawers(word, d.first, d.count):
        coords[rows], demand[rows] = draw_customers(draw, n)
        if d.distribution in MIXTURES:
            coords[rows] = mixture_points(d.distribution, draw, n)
    return Vrp(coords, demand, np.full(d.count, d.capacity or cvrp_capacity(n), dtype=np.int64))


def check_customers(problem: str, dataset: Dataset, others: Mapping[str, int] = MappingProxyType({})) -> int:
    """Return the first word of the key of a stream of customers, uniform or one of the `others`.

    Raises NeurouteError if there is no such stream.
    """
    d, distributions = dataset, {"uniform": 0, **others}
    if d.distribution not in distributions:
        raise NeurouteError(f"no {problem} stream '{d.distribution}'; there is {', '.join(distributions)}")
    return distributions[d.distribution] << 40 | SPLITS[d.split] << 32 | d.n


def draw_customers(draw: Draw, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return coordinates (rows, n + 1, 2) float32 and demands (rows, n + 1) int64, depot first."""
    points = np.concatenate([unit(draw(DEPOT, 2)), unit(draw(CUSTOMERS, 2 * n))], axis=1)
    demand = 1 + (unit(draw(DEMANDS, n)) * LARGEST_DEMAND).astype(np.int64)
    return points.astype(np.float32).reshape(-1, n + 1, 2), np.pad(demand, ((0, 0), (1, 0)))


def cvrp_capacity(n: int, capacities: Mapping[int, int] = MappingProxyType(CAPACITIES)) -> int:
    """Return the capacity for n customers: that of the largest size that is not above n."""
    return capacities[max(size for size in capacities if size <= n)]


def drawers(word: int, first: int, count: int) -> Iterator[tuple[slice, Draw]]:
    """Yield, of instances first..first+count-1, the rows that lie in a shard, and their draws."""
    row = 0
    while row < count:
        shard, place = divmod(first + row, SHARD)
        rows = slice(row, min(row + SHARD - place, count))
        yield rows, drawer(word, shard, place, rows.stop - row)
        row = rows.stop


def drawer(word: int, shard: int, row: int, rows: int) -> Draw:
    """Return the draws of rows row..row+rows-1 of a shard; `word` is the first one of the key."""

    def draw(field: int, width: int) -> np.ndarray:
        stream = np.random.Philox(key=np.array([word, field << 32 | shard], dtype=np.uint64))
        counter, skip = divmod(row * width, 4)  # one step of the counter gives four draws
        stream.advance(counter)
        return stream.random_raw(skip + rows * width)[skip:].reshape(rows, width)

    return draw


def mixture_points(kind: str, draw: Draw, n: int) -> np.ndarray:
    """Return depot and n customers: float32 (rows, n + 1, 2), the depot first."""
    every = _open_unit(np.concatenate([draw(DEPOT, 2), draw(CUSTOMERS, 2 * n)], axis=1)).reshape(-1, n + 1, 2)
    numbers = _open_unit(draw(INSTANCE, 2 * CENTRES + 1))
    low, high = RANGE
    centres = low + (high - low) * numbers[:, :-1].reshape(-1, CENTRES, 2)
    if kind == "centred":
        part = np.minimum(np.arange(n + 1) // max(1, (n + 1) // CENTRES), CENTRES - 1)
        placed = _around(centres[:, part], every)
        depot = (numbers[:, -1] * (n + 1)).astype(np.int64)
        order = np.arange(n + 1) + np.zeros_like(depot)[:, None]
        rows = np.arange(len(depot))
        order[:, 0], order[rows, depot] = depot, 0
        placed = np.take_along_axis(placed, order[..., None], axis=1)
    else:
        ranks = _open_unit(draw(NODES, n)).argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
        moved = np.pad(ranks < n // 2, ((0, 0), (1, 0)))[..., None]
        placed = np.where(moved, _around(centres[:, :1], every), every)
    return placed.astype(np.float32)


def _around(centres: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    return np.clip(centres + DEVIATION * ndtri(numbers), 0.0, 1.0)


def _uniform(draw: Draw, n: int) -> np.ndarray:
    return unit(draw(POINTS, 2 * n)).reshape(-1, n, 2)


def _cluster(draw: Draw, n: int) -> np.ndarray:
    centres = unit(draw(INSTANCE, 2 * CENTRES)).reshape(-1, CENTRES, 2) * CENTRE_RANGE
    choice = (unit(draw(NODES, n)) * CENTRES).astype(np.int64)
    offsets = ndtri(_open_unit(draw(POINTS, 2 * n))).reshape(-1, n, 2)
    return _normalise(np.take_along_axis(centres, choice[..., None], axis=1) + offsets)


def _explosion(draw: Draw, n: int) -> np.ndarray:
    points, numbers = _uniform(draw, n), draw(INSTANCE, 3)
    centre, radius = unit(numbers[:, None, :2]), _radius(numbers[:, 2:3])
    from_centre, distance = points - centre, distances(points, centre)
    beyond = -log1p(-_open_unit(draw(NODES, n))) / BEYOND_RATE
    # A point that lies on the centre itself (about one in 2**48) has no direction and goes along the x axis.
    on_centre = distance == 0
    from_centre[on_centre], distance[on_centre] = (1.0, 0.0), 1.0
    moved = centre + from_centre * ((radius + beyond) / distance)[..., None]
    inside = (distance < radius) | on_centre
    return _normalise(np.where(inside[..., None], moved, points))


def _implosion(draw: Draw, n: int) -> np.ndarray:
    points, numbers = _uniform(draw, n), draw(INSTANCE, 4)
    centre, radius = unit(numbers[:, None, :2]), _radius(numbers[:, 2:3])
    factor = np.minimum(radius, ndtri(_open_unit(numbers[:, 3:4])))  # below zero, points flip through the centre
    moved = centre + factor[..., None] * (points - centre)
    return _normalise(np.where((distances(points, centre) < radius)[..., None], moved, points))


def unit(raw: np.ndarray) -> np.ndarray:
    """Return the upper 24 bits as numbers in [0, 1) that float32 holds exactly."""
    return (raw >> np.uint64(40)) * 2.0**-24


def _open_unit(raw: np.ndarray) -> np.ndarray:
    """Return the upper 52 bits as numbers strictly inside (0, 1), for inverse distribution functions."""
    return ((raw >> np.uint64(12)) + 0.5) * 2.0**-52


def _radius(raw: np.ndarray) -> np.ndarray:
    return RADIUS[0] + (RADIUS[1] - RADIUS[0]) * unit(raw)


def _normalise(points: np.ndarray) -> np.ndarray:
    points = points - points.min(axis=1, keepdims=True)
    return np.asarray(points / points.max(axis=(1, 2), keepdims=True))


BACKHAULS, WINDOWS = 6, 7
REDRAW = 256

VRP_CAPACITIES = CAPACITIES | {200: 70}  # from this many customers on; the published code goes to 200
BACKHAULS_ONE_IN = 5  # customers
LIMIT = 3.0  # of the length of a route
HORIZON = 3.0  # the depot is open from 0 on
SERVICE = 0.2
HALF_WIDTH = (SERVICE / 2, HORIZON / 3)


def vrp_dataset(dataset: Dataset) -> Vrp:
    """Return instances of n customers; any two calls agree bit for bit on the instances they share.

    Depot and customers are uniform in the unit square, in float32.  Raises NeurouteError for other distributions and
    unknown variants.
    """
    if dataset.file is not None:
        return read_vehicles(dataset)
    d, n, word = dataset, dataset.n, check_customers("VRP", dataset)
    switches = Variant(d.variant or "").switches
    coords = np.empty((d.count, n + 1, 2), dtype=np.float32)
    demand = np.zeros((d.count, n + 1), dtype=np.int64)
    windows = np.zeros((d.count, n + 1, 2), dtype=np.float32)
    service = np.full((d.count, n + 1), SERVICE, dtype=np.float32)
    service[:, 0] = 0
    for rows, draw in drawers(word, d.first, d.count):
        coords[rows], demand[rows], windows[rows] = _draw(draw, n, 0, switches.backhaul)
    for row in np.flatnonzero(~_in_time(coords, windows)).tolist() if switches.windows else ():
        alone = drawer(word, *divmod(d.first + row, SHARD), 1)
        # The first of the instance's further attempts of which every customer can be served in time
        attempts = (_draw(alone, n, attempt, switches.backhaul) for attempt in count(1))
        fields = next(fields for fields in attempts if _in_time(fields[0], fields[2]).all())
        (coords[row],), (demand[row],), (windows[row],) = fields
    return Vrp(
        coords,
        demand,
        np.full(d.count, d.capacity or cvrp_capacity(n, VRP_CAPACITIES), dtype=np.int64),
        switches.open,
        np.full(d.count, LIMIT) if switches.limit else None,
        windows if switches.windows else None,
        service if switches.windows else None,
    )


def _draw(draw: Draw, n: int, attempt: int, backhaul: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return coordinates, demands and windows of a drawer's instances."""

    def attempt_draw(field: int, width: int) -> np.ndarray:
        return draw(field + REDRAW * attempt, width)

    coords, demand = draw_customers(attempt_draw, n)
    if backhaul:
        backhauls = np.argsort(unit(attempt_draw(BACKHAULS, n)), axis=1, kind="stable")[:, : n // BACKHAULS_ONE_IN] + 1
        np.put_along_axis(demand, backhauls, -np.take_along_axis(demand, backhauls, axis=1), axis=1)
    numbers = unit(attempt_draw(WINDOWS, 2 * n)).reshape(-1, n, 2)
    out = distances(coords[:, 1:].astype(np.float64), coords[:, :1])
    middle = out + numbers[..., 0] * (HORIZON - out - SERVICE - out)
    half = HALF_WIDTH[0] + numbers[..., 1] * (HALF_WIDTH[1] - HALF_WIDTH[0])
    windows = np.empty((*coords.shape[:2], 2), dtype=np.float32)
    windows[:, 0] = 0, HORIZON
    windows[:, 1:] = np.stack([middle - half, middle + half], axis=-1).clip(0, HORIZON)
    return coords, demand, windows


def _in_time(coords: np.ndarray, windows: np.ndarray) -> np.ndarray:
    """Return whether a vehicle for each customer alone is back before the depot closes: bool (count,)."""
    out = distances(coords[:, 1:].astype(np.float64), coords[:, :1])
    return np.asarray((np.maximum(out, windows[:, 1:, 0]) + SERVICE + out <= HORIZON + EPS).all(1))
