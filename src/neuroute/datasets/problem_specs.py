"""The specs of the TSP, the CVRP and the 16 vehicle routing problems.

TSP: instances are coordinates (count, n, 2), a solution is a tour (n,) of node numbers.  The others: instances are a
`Vrp`, a solution is (2, n): the customers 1..n in visiting order, and LEHD's flags.  A shard's file is one .npy of
solutions in the smallest unsigned type that holds n.
"""

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.datasets.problem_spec import ProblemSpec
from neuroute.datasets.streams import cvrp_dataset, dataset_coordinates, vrp_dataset
from neuroute.problems import cvrp, tsp, vrp
from neuroute.problems.vrp import Vrp, from_routes, number_of_starts, valid
from neuroute.solvers.base import Solver

# Labels come from solvers on integer grids, which are a little late by real numbers, and which may let a vehicle leave
# with any load.  What a network has built obeys the "network" rule within EPS.
GRID_TOLERANCE = 1e-3


# Nearest-neighbour rules compile when they are imported, so each is imported where it is needed.


def _nearest_tours(coords: np.ndarray) -> np.ndarray:
    from neuroute.solvers.nearest import tour_lengths

    return tour_lengths(coords)


def _nearest_cvrp(instances: Vrp) -> np.ndarray:
    from neuroute.solvers.nearest import cvrp_lengths

    return cvrp_lengths(instances)


def _nearest_vrp(instances: Vrp) -> np.ndarray:
    from neuroute.solvers.nearest import vrp_solutions

    return vrp.lengths(instances, vrp_solutions(instances))


def _solve_cvrp(solver: Solver, instance: Vrp, seed: int) -> np.ndarray:
    """Solve with a solver of the CVRP, or of the VRP.  Raises NeurouteError if a solver is made for neither."""
    if solver.solve_cvrp is not None:
        return from_routes(solver.solve_cvrp(instance.coords[0], instance.demand[0], int(instance.capacity[0]), seed))
    if solver.solve_vrp is not None:
        return solver.solve_vrp(instance, seed)
    raise NeurouteError(f"solver '{solver.name}' does not solve CVRP instances; 'hgs' does")


def _solve_vrp(solver: Solver, instance: Vrp, seed: int) -> np.ndarray:
    """Solve with a solver of the VRP, or the variant CVRP with one of the CVRP.

    Raises NeurouteError if a solver is made for neither.
    """
    if solver.solve_vrp is not None:
        return solver.solve_vrp(instance, seed)
    if solver.solve_cvrp is not None and not any(instance.switches):
        return _solve_cvrp(solver, instance, seed)
    raise NeurouteError(f"solver '{solver.name}' does not solve {instance.variant} instances; 'ortools' does")


def _arrays(instances: Vrp) -> tuple[np.ndarray, ...]:
    every = (instances.coords, instances.demand, instances.capacity, instances.limit, instances.windows)
    return tuple(a for a in (*every, instances.service) if a is not None)


TSP = ProblemSpec(
    noun="tour",
    meaning="visit every node once",
    shape=lambda n: (n,),
    dtype=lambda n: np.min_scalar_type(n - 1),
    instances=dataset_coordinates,
    arrays=lambda coords: (coords,),
    from_arrays=lambda arrays: arrays[0],
    valid=lambda coords, tours: tsp.is_permutation(tours),
    lengths=tsp.tour_length,
    canonical=tsp.canonical,
    simple_lengths=_nearest_tours,
    solve=lambda solver, coords, seed: solver.solve(coords[0], seed),
)
# Each route is stored from the smaller of its two ends on, and the routes in the order of these ends.
CVRP = ProblemSpec(
    noun="feasible solution",
    meaning="serve every customer once within the capacity",
    shape=lambda n: (2, n),
    dtype=np.min_scalar_type,
    instances=cvrp_dataset,
    arrays=_arrays,
    from_arrays=lambda arrays: Vrp(arrays[0], arrays[1], arrays[2]),
    valid=cvrp.is_feasible,
    lengths=cvrp.cost,
    canonical=cvrp.canonical,
    simple_lengths=_nearest_cvrp,
    solve=_solve_cvrp,
)
# Routes are stored in the order of their first customers, and in the direction in which they are driven.
VRP = ProblemSpec(
    noun="feasible solution",
    meaning="serve every customer once within the capacity, the limit of a route and the time windows",
    shape=lambda n: (2, n),
    dtype=np.min_scalar_type,
    instances=vrp_dataset,
    arrays=_arrays,
    valid=lambda instances, solutions: valid(instances, solutions, "free start", GRID_TOLERANCE),
    lengths=vrp.lengths,
    canonical=vrp.canonical,
    simple_lengths=_nearest_vrp,
    solve=_solve_vrp,
    built=valid,
    by_networks_rules=lambda instances, solutions: valid(instances, solutions, "network", GRID_TOLERANCE),
    starts=number_of_starts,
)
