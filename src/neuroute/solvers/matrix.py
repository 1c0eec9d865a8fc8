"""Solvers of instances in whole distances between their nodes, (n, n) int64, from the row's node to the column's.

The same codes as those that take coordinates.  `settings` are what a variant of a solver fixes, such as `iterations`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.solvers import concorde, hgs, lkh, lkh3, ortools, pyvrp
from neuroute.solvers.base import check_demands, matrix_text, ways_grid

Tour = Callable[..., np.ndarray]  # (ways, seed, seconds, **settings) -> (n,)
Routes = Callable[..., list[list[int]]]  # (ways, demand, capacity, seed, seconds, **settings); windows and service, too


@dataclass(frozen=True)
class MatrixSolver:
    """What a solver does with distances: None, where it cannot."""

    tour: Tour
    routes: Routes | None = None
    asymmetric: bool = False  # distances there and back may differ
    takes_coords: bool = False  # of routes, as a setting, to know which are near each other
    takes_windows: bool = False  # of routes, as settings `windows` (n, 2) and `service` (n,)


def _by_lkh(ways: np.ndarray, seed: int, seconds: float | None, runs: int = lkh.RUNS) -> np.ndarray:
    ways = lkh.countable(ways)
    return lkh.solve_text(matrix_text(ways), len(ways), seed, seconds, float(ways.max()), runs)


def _by_concorde(ways: np.ndarray, seed: int, seconds: float | None) -> np.ndarray:
    if len(ways) == 4:  # for which Concorde ends without a tour: there are three
        tours = np.array([[0, 1, 2, 3], [0, 1, 3, 2], [0, 2, 1, 3]])
        best: np.ndarray = tours[ways[tours, np.roll(tours, -1, axis=1)].sum(1).argmin()]
        return best
    tour = _nearest_tour(ways, seed, None)
    concorde.check_length(float(ways[tour, np.roll(tour, -1)].sum()))
    return concorde.solve_text(matrix_text(ways), len(ways), seed, seconds)


def _tour_of(of_grid: Callable[..., np.ndarray]) -> Tour:
    return lambda ways, *how, **settings: of_grid(ways_grid(ways), *how, **settings)


def _routes_of(of_grid: Callable[..., list[list[int]]]) -> Routes:
    def routes(
        ways: np.ndarray,
        demand: np.ndarray,
        capacity: int,
        *how: Any,
        windows: np.ndarray | None = None,
        service: np.ndarray | None = None,
        **settings: Any,
    ) -> list[list[int]]:
        grid = ways_grid(ways, demand, capacity)
        if windows is not None and service is not None:
            grid = replace(grid, windows=windows.astype(np.int64), service=service.astype(np.int64))
        return of_grid(grid, *how, **settings)

    return routes


def _nearest_tour(ways: np.ndarray, seed: int, seconds: float | None) -> np.ndarray:
    unvisited, tour = np.ones(len(ways), dtype=bool), [0]
    for _ in range(len(ways) - 1):
        unvisited[tour[-1]] = False
        tour.append(int(np.where(unvisited, ways[tour[-1]], np.iinfo(np.int64).max).argmin()))
    return np.array(tour)


def nearest_routes(
    ways: np.ndarray,
    demand: np.ndarray,
    capacity: int,
    seed: int,
    seconds: float | None,
    windows: np.ndarray | None = None,
    service: np.ndarray | None = None,
) -> list[list[int]]:
    """Return routes that always go on to the nearest customer that fits; each alone keeps to its window."""
    check_demands("nearest", demand, capacity)
    opens, closes = (0, np.iinfo(np.int64).max) if windows is None else windows.T
    takes = np.zeros(len(ways)) if service is None else service
    unserved, routes, load, here, clock = np.arange(len(ways)) > 0, list[list[int]](), 0, 0, 0.0
    while unserved.any():
        if not here:
            routes.append([])
            load, clock = 0, 0.0
        begins = np.maximum(clock + ways[here], opens)
        fits = unserved & (demand <= capacity - load)
        fits &= (begins <= closes) & (begins + takes + ways[:, 0] <= np.ravel(closes)[0])
        if not here and not fits.any():
            raise NeurouteError("nearest: no vehicle can serve what is left; correct its windows")
        here = int(np.where(fits, ways[here], np.iinfo(np.int64).max).argmin()) if fits.any() else 0
        if here:
            clock = float(begins[here] + takes[here])
            unserved[here] = False
            load += int(demand[here])
            routes[-1].append(here)
    return routes


def _inserted_tour(ways: np.ndarray, seed: int, seconds: float | None) -> np.ndarray:
    from neuroute.solvers.insertion import insertion_order  # which compiles when it is imported

    order = insertion_order(len(ways), seed)
    tour = order[:1]
    for node in order[1:]:
        after = np.roll(tour, -1)
        tour = np.insert(tour, 1 + (ways[tour, node] + ways[node, after] - ways[tour, after]).argmin(), node)
    return tour


SOLVERS: Mapping[str, MatrixSolver] = {
    "concorde": MatrixSolver(_by_concorde),
    "lkh": MatrixSolver(_by_lkh, asymmetric=True),
    "lkh3": MatrixSolver(lkh3.tour_of_ways, lkh3.routes_of_ways, asymmetric=True),
    "hgs": MatrixSolver(hgs.tour_of_ways, hgs.routes_of_ways, takes_coords=True),
    "insertion": MatrixSolver(_inserted_tour, asymmetric=True),
    "nearest": MatrixSolver(_nearest_tour, nearest_routes, asymmetric=True, takes_windows=True),
    "ortools": MatrixSolver(_tour_of(ortools.tour), _routes_of(ortools.routes), asymmetric=True, takes_windows=True),
    "pyvrp": MatrixSolver(_tour_of(pyvrp.tour), _routes_of(pyvrp.routes), asymmetric=True, takes_windows=True),
}
