"""VRP: instances are a `Vrp`, a solution is (2, n): the customers 1..n in visiting order, and flags as for CVRP.

A shard's file is one .npy of (rows, 2, n) in the smallest unsigned type that holds n.  Routes are stored in the order
of their first customers, and in the direction in which they are driven.
"""

import numpy as np

from neuroute.datasets.kind import Kind, unsigned
from neuroute.datasets.vrp_stream import vrp_dataset
from neuroute.errors import NeurouteError
from neuroute.problems.vrp import Vrp, canonical, lengths, valid
from neuroute.solvers.base import Solver

# Labels come from solvers on integer grids, which are a little late by real numbers, and which may let a vehicle leave
# with any load.  What a network has built obeys the "network" rule within EPS.
GRID_TOLERANCE = 1e-3


def _solve(solver: Solver, instance: Vrp, seed: int) -> np.ndarray:
    """Raises NeurouteError for a solver that is not made for VRP."""
    if solver.solve_vrp is None:
        raise NeurouteError(f"solver '{solver.name}' does not solve VRP instances; 'ortools' does")
    return solver.solve_vrp(instance, seed)


def _arrays(instances: Vrp) -> tuple[np.ndarray, ...]:
    every = (instances.coords, instances.demand, instances.capacity, instances.limit, instances.windows)
    return tuple(a for a in (*every, instances.service) if a is not None)


def _valid(instances: Vrp, solutions: np.ndarray) -> np.ndarray:
    return valid(instances, solutions, "free start", GRID_TOLERANCE)


def _nearest_neighbour(instances: Vrp) -> np.ndarray:
    from neuroute.decoding.nearest_vrp import nearest_neighbour  # loads torch, so only where it is needed

    return lengths(instances, nearest_neighbour(instances))


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
)
