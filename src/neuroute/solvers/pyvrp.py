"""PyVRP, for the eight problems without backhauls.

It brings what is picked up to the depot, never to a customer of the same route: with backhauls it would solve another
problem than this one.  PyVRP, which the published references used as a hybrid genetic search, is an iterated
local search now (0.14), so its name is not HGS here.  The budget is a number of iterations: labels must not depend on
the machine's load.
"""

import importlib
import time
import warnings
from typing import Any

import numpy as np

from neuroute.core import limited
from neuroute.core.errors import NeurouteError
from neuroute.problems.vrp import Vrp, from_routes
from neuroute.solvers.base import GridVrp, Solver, installed_version, missing, on_vrp_grid, plane_grid

NAME = "pyvrp"
HOW_TO_GET = "run `pip install pyvrp`"
ITERATIONS = 5_000  # seconds for 50 customers; the 20,000 of the published references were of the genetic search
TOUR_ITERATIONS = 1_000
SAVED_WAYS = 4  # of the longest ones, that an overload of one may never be worth
MOST_PENALTY = 100_000
INFEASIBLE = 2**62  # a cost from here on is that of a solution that breaks constraints


def solve_vrp(instance: Vrp, seed: int, iterations: int = ITERATIONS, seconds: float | None = None) -> np.ndarray:
    """Return the best solution (2, V) of a batch of one instance, with at most V vehicles.

    It ends after so many seconds, else after so many iterations.

    Raises NeurouteError if there are backhauls, PyVRP is missing, or it finds no routes.
    """
    if instance.switches.backhaul:
        raise NeurouteError(f"{NAME} does not solve {instance.variant} as it is meant here; 'ortools' does")
    return from_routes(routes(on_vrp_grid(instance), seed, seconds, iterations))


def solve(coords: np.ndarray, seed: int, iterations: int = TOUR_ITERATIONS, seconds: float | None = None) -> np.ndarray:
    """Return the best tour (n,), with one vehicle."""
    return tour(plane_grid(coords), seed, seconds, iterations)


def tour(grid: GridVrp, seed: int, seconds: float | None = None, iterations: int = TOUR_ITERATIONS) -> np.ndarray:
    (route,) = search(grid, 1, seed, iterations, seconds)
    return np.array([0, *route], dtype=np.int64)


def routes(grid: GridVrp, seed: int, seconds: float | None = None, iterations: int = ITERATIONS) -> list[list[int]]:
    return search(grid, grid.customers, seed, iterations, seconds)


def search(grid: GridVrp, vehicles: int, seed: int, iterations: int, seconds: float | None = None) -> list[list[int]]:
    """Return the best routes.  Raises NeurouteError if PyVRP is missing, or it finds none."""
    pyvrp = _load()
    ends = None if seconds is None else time.perf_counter() + seconds  # what comes before the search counts
    enough = importlib.import_module("pyvrp.stop").MaxIterations(iterations)
    is_users = limited.folder() is not None  # who waits for a first solution

    def stop(cost: int) -> bool:
        if ends is None:
            return bool(enough(cost))
        return time.perf_counter() >= ends and (cost < INFEASIBLE or not is_users)

    class Follower(pyvrp.IteratedLocalSearchCallbacks):  # type: ignore[misc, name-defined]
        def on_best(self, best: Any) -> None:
            if best.is_feasible():
                limited.say("found", _routes(best))

    follower = Follower()
    params = pyvrp.SolveParams(ils=pyvrp.IteratedLocalSearchParams(callbacks=follower))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of penalties that grow large: what counts is whether it found routes
        best = pyvrp.solve(
            _problem(pyvrp, grid, vehicles),
            stop,
            seed,
            collect_stats=False,
            display=False,
            params=params,
        ).best
    if not best.is_feasible():
        raise NeurouteError(
            f"{NAME}: no feasible routes found; check demands, windows and limit, or give more iterations"
        )
    return _routes(best)


def descend(grid: GridVrp, routes: list[list[int]], seed: int) -> list[list[int]]:
    """Return routes after one local search by PyVRP's moves: none of these shortens them any more.

    Raises NeurouteError if PyVRP is missing.
    """
    pyvrp = _load()
    data, params = _problem(pyvrp, grid, grid.customers), pyvrp.SolveParams()
    moves = pyvrp.search.LocalSearch(
        data,
        pyvrp.RandomNumberGenerator(seed=seed),
        pyvrp.search.compute_neighbours(data, params.neighbourhood),
        pyvrp.search.PerturbationManager(params.perturbation),
    )
    for operator in params.operators:
        if operator.supports(data):
            moves.add_operator(operator(data))
    penalties = pyvrp.PenaltyManager(params.penalty.midpoint_penalties(data), params.penalty)
    first = pyvrp.Solution(data, [[customer - 1 for customer in route] for route in routes])
    best = moves(first, penalties.max_cost_evaluator(), exhaustive=True)
    return _routes(best) if best.is_feasible() else routes


def _load() -> Any:
    try:
        return importlib.import_module("pyvrp")
    except ImportError:
        raise missing(NAME, HOW_TO_GET) from None


def _problem(pyvrp: Any, grid: GridVrp, vehicles: int) -> Any:
    """Return PyVRP's data of a problem: clients count from 0, and open routes end in a second depot."""
    ways = grid.with_end(grid.ways)
    windows = [] if grid.windows is None else grid.windows.tolist()
    times = [{"tw_early": opens, "tw_late": closes} for opens, closes in windows] or [{}] * (grid.customers + 1)
    # PyVRP lets no unit of overload cost more than 1e5, for which a vehicle would save ways: its units are finer.
    unit = -(-SAVED_WAYS * int(grid.ways.max()) // MOST_PENALTY) or 1
    clients = [
        pyvrp.Client(
            node, delivery=[unit * int(grid.demand[node])], service_duration=int(grid.service[node]), **times[node]
        )
        for node in range(1, grid.customers + 1)
    ]
    home = pyvrp.Depot(0, **({} if grid.open else times[0]))
    depots = [home, pyvrp.Depot(grid.customers + 1)] if grid.open else [home]
    distance = {} if grid.limit is None else {"max_distance": grid.limit}
    fleet = pyvrp.VehicleType(vehicles, capacity=[unit * grid.capacity], end_depot=int(grid.open), **distance)
    return pyvrp.ProblemData([pyvrp.Location(0, 0)] * len(ways), clients, depots, [fleet], [ways], [ways])


def _routes(solution: Any) -> list[list[int]]:
    return [[visit.idx + 1 for visit in route if visit.is_client()] for route in solution.routes()]


SOLVER = Solver(NAME, False, HOW_TO_GET, installed_version("pyvrp", NAME, HOW_TO_GET), solve, solve_vrp=solve_vrp)
# On 20 customers as good as the full budget, on 50 within about 1.5 % of it.
SHORT = SOLVER.variant("pyvrp-short", "solve", "solve_vrp", iterations=200)
# For references: 5,000 iterations are 0.28 % above it on the VRPTW of 50 customers.
LONG = SOLVER.variant("pyvrp-long", "solve_vrp", iterations=60_000)
