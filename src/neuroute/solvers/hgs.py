"""Hybrid genetic search (Vidal, 2022) through the package hygese, for CVRP; a TSP is a CVRP with one vehicle.

The budget is a number of iterations without improvement, not seconds: labels must not depend on the machine's load.
`hgs-timed` alone, for references of thousands of customers, has seconds.
"""

import importlib
import itertools
import time
from dataclasses import replace
from typing import Any

import numpy as np

from neuroute.core import limited
from neuroute.core.errors import NeurouteError
from neuroute.solvers.base import Solver, at_size, installed_version

HOW_TO_GET = "run `pip install hygese`"
ITERATIONS = 2_000
MOST_ITERATIONS = 100_000
SPAN = 1_000.0  # HGS refuses distances of a very small scale
MOST_DEMAND = 100_000  # it refuses larger ones, and none at all
LEGS, LEAST_LEG = 4, 50  # of a time: the first leg is a quarter of it, and none is less than a fiftieth
# Seconds of an instance of so many customers (sit, Table 1); below 1,000 nothing is printed: a second for 100.
PRINTED_S = {100: 1.0, 1_000: 150.0, 5_000: 7_200.0, 10_000: 18_000.0, 50_000: 29_160.0, 100_000: 86_400.0}


def solve(coords: np.ndarray, seed: int, iterations: int = ITERATIONS, seconds: float | None = None) -> np.ndarray:
    """Return the best tour (n,) over coords (n, 2); with `seconds`, searches again and again until they are over."""
    return _tour(_scaled(coords), seed, iterations, seconds)


def tour_of_ways(ways: np.ndarray, seed: int, seconds: float | None = None, iterations: int = ITERATIONS) -> np.ndarray:
    """Return the best tour (n,) over symmetric distances (n, n)."""
    return _tour({"distance_matrix": _scaled_ways(ways)}, seed, iterations, seconds)


def _tour(data: dict[str, Any], seed: int, iterations: int, seconds: float | None) -> np.ndarray:
    (route,) = _search("solve_tsp", data, seed, iterations, seconds).routes
    return np.array([0, *route], dtype=np.int64)


def solve_cvrp(
    coords: np.ndarray,
    demand: np.ndarray,
    capacity: int,
    seed: int,
    iterations: int = ITERATIONS,
    seconds: float | None = None,
) -> list[list[int]]:
    """Return the routes of the best solution with HGS's default fleet: 1.3 times what the demands fill, and 3 more.

    A search that meets no feasible solution (about one in a thousand of the short ones) is repeated, twice as long.
    With `seconds`, it searches again and again until they are over.
    Raises NeurouteError if the demands seem not to fit at all.
    """
    return _routes(_scaled(coords), demand, capacity, seed, iterations, seconds)


def printed_s(customers: int) -> float:
    """Seconds of processor time that sit's HGS has for an instance."""
    return at_size(PRINTED_S, customers)


def solve_cvrp_as_printed(
    coords: np.ndarray, demand: np.ndarray, capacity: int, seed: int, seconds: float | None = None
) -> list[list[int]]:
    """Return what `solve_cvrp` does in the time that sit prints, or in another: what it finds hangs on the machine."""
    return solve_cvrp(coords, demand, capacity, seed, seconds=seconds or printed_s(len(coords) - 1))


def routes_of_ways(
    ways: np.ndarray,
    demand: np.ndarray,
    capacity: int,
    seed: int,
    seconds: float | None = None,
    iterations: int = ITERATIONS,
    coords: np.ndarray | None = None,
) -> list[list[int]]:
    """Return what `solve_cvrp` does, of symmetric distances (n, n).

    coords (n, 2) tell which routes are near each other, which saves time; None: all are taken to be.
    """
    data = {} if coords is None else _scaled(coords)
    return _routes(data | {"distance_matrix": _scaled_ways(ways)}, demand, capacity, seed, iterations, seconds)


def _routes(
    data: dict[str, Any], demand: np.ndarray, capacity: int, seed: int, iterations: int, seconds: float | None
) -> list[list[int]]:
    loads = np.asarray(demand, dtype=np.float64)
    if not loads.any():
        loads, capacity = np.minimum(np.arange(len(loads)), 1.0), len(loads)
    unit = max(1.0, loads.max() / MOST_DEMAND)
    data = data | {"demands": loads / unit, "vehicle_capacity": capacity / unit}
    while iterations <= MOST_ITERATIONS:
        if routes := _routes_of(_search("solve_cvrp", data, seed, iterations, seconds)):
            return routes
        iterations *= 2
    raise NeurouteError(f"hgs: no feasible routes in {MOST_ITERATIONS} iterations; check the demands")


def _search(how: str, data: dict[str, Any], seed: int, iterations: int, seconds: float | None) -> Any:
    """Return the best of a search; of a user's that ends by the clock, of legs, each of which is told of at once.

    HGS counts processor time: on a busy machine one leg would be late, and whatever it had found lost.  The first has a
    quarter of the time, the next all that is left at the share of a processor that the one before had.
    """
    hygese = importlib.import_module("hygese")

    def leg(number: int, seconds: float | None) -> Any:
        limits = hygese.AlgorithmParameters(nbIter=iterations, seed=(seed + number) % 2**31, timeLimit=seconds or 0.0)
        try:
            return getattr(hygese.Solver(limits, verbose=False), how)(data, rounding=False)
        except TypeError as error:  # it answers with nothing
            raise NeurouteError(f"hgs refused the instance ({error}); take another solver") from None

    if seconds is None or limited.folder() is None:
        return leg(0, seconds)
    ends, best, budget = time.perf_counter() + seconds, None, seconds / LEGS
    for number in itertools.count():
        began, used = time.perf_counter(), time.process_time()
        answer = leg(number, budget)
        if _routes_of(answer) and (best is None or answer.cost < best.cost):
            best = answer
            limited.say("found", _routes_of(answer))
        now = time.perf_counter()
        budget = (ends - now) * min(1.0, (time.process_time() - used) / (now - began))
        if budget < seconds / LEAST_LEG and (best is not None or number >= LEGS):
            return best or answer
        budget = max(budget, seconds / LEAST_LEG)


def _routes_of(answer: Any) -> list[list[int]]:
    """Return the routes of an answer of HGS; none if it is not feasible."""
    return [[int(customer) for customer in route] for route in answer.routes if len(route)]


def _scaled(coords: np.ndarray) -> dict[str, Any]:
    points = np.asarray(coords, dtype=np.float64)
    points = (points - points.min(axis=0)) * (SPAN / np.ptp(points, axis=0).max())
    return {"x_coordinates": points[:, 0], "y_coordinates": points[:, 1]}


def _scaled_ways(ways: np.ndarray) -> np.ndarray:
    scaled: np.ndarray = ways * (SPAN / ways.max())
    return scaled


def memory(nodes: int) -> float:
    """Bytes: distances of all pairs.  Measured: 108 MB at 2,000 nodes, 384 MB at 6,000."""
    return 8.6 * nodes**2


SOLVER = Solver(
    "hgs", False, HOW_TO_GET, installed_version("hygese", "hgs", HOW_TO_GET), solve, solve_cvrp, memory=memory
)
# For training labels: within about 1 % of the full budget on 100 customers.
SHORT = SOLVER.variant("hgs-short", "solve", "solve_cvrp", iterations=100)
# The budget of MVMoE's published references.
LONG = SOLVER.variant("hgs-long", "solve", "solve_cvrp", iterations=20_000)
# That of sit's references, which end however large they are.
TIMED = replace(SOLVER, name="hgs-timed", solve_cvrp=solve_cvrp_as_printed, limit=printed_s)
