"""Streams of the 16 vehicle routing problems (MVMoE; Zhou et al., 2024, Appendix A): a pure function of the number.

Philox's counters are used as in `datasets.streams`.  Coordinates and demands are those of CVRP's stream, whichever the
variant, so that variants are compared on the same ground.  Fields of their own:
        6 BACKHAULS, one draw per customer: floor(0.2 n) customers with the smallest ones have goods to be picked up;
        7 WINDOWS, two draws per customer: where the middle of the window lies, and half of its width.

The published code draws which customers have goods to be picked up once per batch, for all instances of it, and redraws
a whole batch of which one customer cannot be served in time.  An instance that depends on its number alone can
have neither: backhauls are drawn per instance, as the paper's text says, and only such an instance is drawn anew
(coordinates too), from fields that are REDRAW further on.
"""

from itertools import count

import numpy as np

from neuroute.datasets.streams import (
    CAPACITIES,
    Draw,
    check_customers,
    cvrp_capacity,
    draw_customers,
    drawer,
    drawers,
    read_vehicles,
    unit,
)
from neuroute.problems.vrp import Variant, Vrp, distances
from neuroute.problems.vrp_checker import EPS
from neuroute.specs.objects import SHARD, Dataset

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
        coords[row], demand[row], windows[row] = _redraw(alone, n, switches.backhaul)
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
    return coords, demand, _windows(coords, unit(attempt_draw(WINDOWS, 2 * n)).reshape(-1, n, 2))


def _redraw(draw: Draw, n: int, backhaul: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the first of an instance's further attempts of which every customer can be served in time."""
    attempts = (_draw(draw, n, attempt, backhaul) for attempt in count(1))
    coords, demand, windows = next(fields for fields in attempts if _in_time(fields[0], fields[2]).all())
    return coords[0], demand[0], windows[0]


def _windows(coords: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return earliest and latest beginning of service (count, 1 + V, 2), from numbers in [0, 1) (count, V, 2)."""
    out = distances(coords[:, 1:].astype(np.float64), coords[:, :1])
    middle = out + numbers[..., 0] * (HORIZON - out - SERVICE - out)
    half = HALF_WIDTH[0] + numbers[..., 1] * (HALF_WIDTH[1] - HALF_WIDTH[0])
    windows = np.empty((*coords.shape[:2], 2), dtype=np.float32)
    windows[:, 0] = 0, HORIZON
    windows[:, 1:] = np.stack([middle - half, middle + half], axis=-1).clip(0, HORIZON)
    return windows


def _in_time(coords: np.ndarray, windows: np.ndarray) -> np.ndarray:
    """Return whether a vehicle for each customer alone is back before the depot closes: bool (count,)."""
    out = distances(coords[:, 1:].astype(np.float64), coords[:, :1])
    return np.asarray((np.maximum(out, windows[:, 1:, 0]) + SERVICE + out <= HORIZON + EPS).all(1))
