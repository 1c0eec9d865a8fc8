"""VRP: instances are a `Vrp`, a solution is (2, n): the customers 1..n in visiting order, and flags as for CVRP.

A shard's file is one .npy of (rows, 2, n) in the smallest unsigned type that holds n.  Routes are stored in the order
of their first customers, and in the direction in which they are driven.
"""

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.datasets.kind import Kind, unsigned
from neuroute.datasets.vrp_stream import vrp_dataset
from neuroute.problems.cvrp import from_routes
from neuroute.problems.vrp import Vrp, canonical, lengths, valid
from neuroute.solvers.base import Solver

# Labels come from solvers on integer grids, which are a little late by real numbers, and which may let a vehicle leave
# with any load.  What a network has built obeys the "network" rule within EPS.
GRID_TOLERANCE = 1e-3


def _solve(solver: Solver, instance: Vrp, seed: int) -> np.ndarray:
    """Solvers of the CVRP are made for it as one of the variants.

    Raises NeurouteError for a solver that is not made for VRP.
    """
    if solver.solve_vrp is not None:
        return solver.solve_vrp(instance, seed)
    if solver.solve_cvrp is not None and not any(instance.switches):
        coords, demand, capacity = instance.coords[0], instance.demand[0], int(instance.capacity[0])
        return from_routes(solver.solve_cvrp(coords, demand, capacity, seed))
    raise NeurouteError(f"solver '{solver.name}' does not solve {instance.variant} instances; 'ortools' does")


def _arrays(instances: Vrp) -> tuple[np.ndarray, ...]:
    every = (instances.coords, instances.demand, instances.capacity, instances.limit, instances.windows)
    return tuple(a for a in (*every, instances.service) if a is not None)


def _valid(instances: Vrp, solutions: np.ndarray) -> np.ndarray:
    return valid(instances, solutions, "free start", GRID_TOLERANCE)


def _by_networks_rules(instances: Vrp, solutions: np.ndarray) -> np.ndarray:
    return valid(instances, solutions, "network", GRID_TOLERANCE)


def _starts(instances: Vrp) -> int:
    from neuroute.decoding.multi_start_vrp import number_of_starts  # loads torch, so only where it is needed

    return number_of_starts(instances)


def _nearest_neighbour(instances: Vrp) -> np.ndarray:
    from neuroute.solvers.nearest import vrp_solutions  # loads numba, so only where it is needed

    return lengths(instances, vrp_solutions(instances))


KIND = Kind(
    noun="feasible solution",
    meaning="serve every customer once within the capacity, the limit of a route and the time windows",
    shape=lambda n: (2, n),
    dtype=unsigned,
    instances=vrp_dataset,
    arrays=_arrays,
    valid=_valid,
    lengths=lengths,
    canonical=canonical,
    simple_lengths=_nearest_neighbour,
    solve=_solve,
    built=valid,
    by_networks_rules=_by_networks_rules,
    starts=_starts,
)
