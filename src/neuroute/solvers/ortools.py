"""OR-Tools' routing library, the only reference solver of all 16 problems (MVMoE, section 5, baselines).

As published: parallel cheapest insertion, then guided local search; as many vehicles as customers, which cost nothing;
0.4 s per customer (20 s for 50 customers, 40 s for 100; "x10": 4 s).  The search draws nothing, so the seed is unused.
A number of solutions ends it at the same place everywhere; a time does not.

The published search lets a vehicle carry any load when it leaves the depot ("free start"), which the networks may not
(see `problems.vrp`).  Under the rule "network" a vehicle starts full, or is one of those that start empty and
only pick up.
"""

import importlib
import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from neuroute.core import limited
from neuroute.core.errors import NeurouteError
from neuroute.problems.vrp import Rule, Vrp, from_routes
from neuroute.solvers.base import GridVrp, Solver, installed_version, missing, on_vrp_grid, plane_grid

NAME = "ortools"
HOW_TO_GET = "run `pip install ortools`"
SECONDS_PER_CUSTOMER = 0.4  # as published
TOUR_SOLUTIONS = 200  # a single tour is searched briefly, and reproducibly


def solve_vrp(instance: Vrp, seed: int, **how: Any) -> np.ndarray:
    """Return the best solution (2, V) of a batch of one instance, as `routes` does; those that only pick up come last.

    Raises NeurouteError if OR-Tools is missing or finds no routes.
    """
    return from_routes(routes(on_vrp_grid(instance), seed, **how))


def solve(coords: np.ndarray, seed: int, seconds: float | None = None) -> np.ndarray:
    """Return the best tour (n,) with one vehicle: of so many seconds, else of TOUR_SOLUTIONS solutions."""
    return tour(plane_grid(coords), seed, seconds)


def tour(grid: GridVrp, seed: int, seconds: float | None = None) -> np.ndarray:
    (route,) = _search(grid, 1, seconds, TOUR_SOLUTIONS if seconds is None else None)
    return np.array([0, *route], dtype=np.int64)


def routes(
    grid: GridVrp,
    seed: int,
    seconds: float | None = None,
    solutions: int | None = None,
    per_customer: float = SECONDS_PER_CUSTOMER,
    rule: Rule = "free start",
) -> list[list[int]]:
    """Return the best routes of so many seconds, else of so many solutions, else of so many seconds per customer."""
    if seconds is None and solutions is None:
        return _search(grid, grid.customers, per_customer * grid.customers, None, rule)
    return _search(grid, grid.customers, seconds, solutions if seconds is None else None, rule)


class _Model:
    """OR-Tools' model of an instance: its nodes, and for open routes a last one where they end."""

    def __init__(self, grid: GridVrp, vehicles: int, network: bool) -> None:
        try:
            self.library = importlib.import_module("ortools.constraint_solver.pywrapcp")
        except ImportError:
            raise missing(NAME, HOW_TO_GET) from None
        self.grid = grid
        backhauls = np.flatnonzero(grid.demand < 0)
        self.collectors = len(backhauls) if network else 0  # vehicles that start empty, after all others
        self.vehicles = vehicles + self.collectors
        ends = [grid.customers + 1 if grid.open else 0] * self.vehicles
        nodes = grid.customers + 1 + grid.open
        self.manager = self.library.RoutingIndexManager(nodes, self.vehicles, [0] * self.vehicles, ends)
        self.routing = self.library.RoutingModel(self.manager)
        self.ways = self._transit(grid.ways)
        self.routing.SetArcCostEvaluatorOfAllVehicles(self.ways)
        self._add_loads(free=len(backhauls) > 0 and not network)
        if grid.limit is not None:
            self.routing.AddDimension(self.ways, 0, grid.limit, True, "length")
        if grid.windows is not None:
            self._add_times(grid.windows)

    def _transit(self, ways: np.ndarray) -> int:
        callback: int = self.routing.RegisterTransitMatrix(self.grid.with_end(ways).tolist())
        return callback

    def _add_loads(self, free: bool) -> None:
        """Count what a vehicle lacks to be full, from 0 to the capacity."""
        grid = self.grid
        demand = self.routing.RegisterUnaryTransitVector([*grid.demand.tolist(), *[0] * grid.open])
        self.routing.AddDimension(demand, 0, grid.capacity, not (free or self.collectors), "load")
        if not self.collectors:
            return
        full = self.vehicles - self.collectors
        lack = self.routing.GetDimensionOrDie("load")
        for vehicle in range(self.vehicles):
            lack.CumulVar(self.routing.Start(vehicle)).SetValue(0 if vehicle < full else grid.capacity)
        for customer in np.flatnonzero(grid.demand > 0).tolist():
            # Not SetAllowedVehiclesForIndex: it takes no list in version 9.15.
            self.routing.VehicleVar(self.manager.NodeToIndex(customer)).SetMax(full - 1)

    def _add_times(self, windows: np.ndarray) -> None:
        """Count the time at which service begins, from 0 on; waiting is free, and a vehicle drives at speed 1."""
        grid = self.grid
        times = self._transit(grid.ways + grid.service[:, None])
        latest = grid.closing if grid.open else int(windows[0, 1])
        self.routing.AddDimension(times, latest, latest, True, "time")
        time = self.routing.GetDimensionOrDie("time")
        for customer, (opens, closes) in enumerate(windows[1:].tolist(), 1):
            if opens > min(closes, latest):
                raise _no_routes()
            time.CumulVar(self.manager.NodeToIndex(customer)).SetRange(opens, min(closes, latest))

    def tell_of_solutions(self, ends: float | None) -> None:
        """Say of each better solution, and search until the time is over, but not before the first."""
        least = math.inf

        def keep() -> None:
            nonlocal least
            if (cost := self.routing.CostVar().Max()) < least:
                least = cost
                limited.say("found", self.routes(lambda index: self.routing.NextVar(index).Value()))

        self.routing.AddAtSolutionCallback(keep)
        if ends is not None:
            limit = self.routing.solver().CustomLimit(lambda: time.perf_counter() >= ends and least < math.inf)
            self.routing.AddSearchMonitor(limit)

    def routes(self, next_of: Callable[[int], int]) -> list[list[int]]:
        """Return the routes that vehicles drive, those that only pick up last; next_of: of a stop's index."""
        routes: list[list[int]] = []
        for vehicle in range(self.vehicles):
            route, index = list[int](), next_of(self.routing.Start(vehicle))
            while not self.routing.IsEnd(index):
                route.append(self.manager.IndexToNode(index))
                index = next_of(index)
            routes += [route] if route else []
        return sorted(routes, key=lambda route: bool((self.grid.demand[route] < 0).all()))


def _search(
    grid: GridVrp, vehicles: int, seconds: float | None, solutions: int | None, rule: Rule = "free start"
) -> list[list[int]]:
    """Return the best routes.  Raises NeurouteError if OR-Tools is missing or finds none."""
    began = time.perf_counter()
    model = _Model(grid, vehicles, rule == "network")
    enums = importlib.import_module("ortools.constraint_solver.routing_enums_pb2")
    parameters = model.library.DefaultRoutingSearchParameters()
    parameters.first_solution_strategy = enums.FirstSolutionStrategy.PARALLEL_CHEAPEST_INSERTION
    parameters.local_search_metaheuristic = enums.LocalSearchMetaheuristic.GUIDED_LOCAL_SEARCH
    if solutions is not None:
        parameters.solution_limit = solutions
    if limited.folder() is not None:
        model.tell_of_solutions(None if seconds is None else began + seconds)
    elif seconds is not None:
        parameters.time_limit.FromMilliseconds(max(1, round(1000 * seconds)))
    solution = model.routing.SolveWithParameters(parameters)
    if solution is None:
        raise _no_routes()
    return model.routes(lambda index: solution.Value(model.routing.NextVar(index)))


def _no_routes() -> NeurouteError:
    return NeurouteError(f"{NAME}: no feasible routes found; check demands, windows and limit, or give more time")


def limit_s(customers: int) -> float:
    return SECONDS_PER_CUSTOMER * customers


SOLVER = Solver(
    NAME, False, HOW_TO_GET, installed_version("ortools", NAME, HOW_TO_GET), solve, solve_vrp=solve_vrp, limit=limit_s
)
# The papers' "OR-Tools (x10)": 4 s per customer.
X10 = SOLVER.variant("ortools-x10", "solve_vrp", per_customer=10 * SECONDS_PER_CUSTOMER)
X10 = replace(X10, limit=lambda customers: 10 * limit_s(customers))
# A number of solutions, not a time: labels repeat exactly.  For a few customers, or a reference in seconds.
SHORT = replace(SOLVER, limit=None).variant("ortools-short", "solve_vrp", solutions=100)
# The rule that the networks obey: with backhauls this is a fair reference for them.
NETWORK = SOLVER.variant("ortools-network", "solve_vrp", rule="network")
