"""CVRP: instances are a `Cvrp`, a solution is (2, n): the customers 1..n in visiting order, and LEHD's flags.

A shard's file is one .npy of (rows, 2, n) in the smallest unsigned type that holds n.  Each route is stored from the
smaller of its two ends on, and the routes in the order of these ends.
"""

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.datasets.kind import Kind, unsigned
from neuroute.datasets.streams import cvrp_dataset
from neuroute.problems.cvrp import Cvrp, canonical, cost, from_routes, is_feasible
from neuroute.solvers.base import Solver


def _solve(solver: Solver, instance: Cvrp, seed: int) -> np.ndarray:
    """Raises NeurouteError for a solver that is not made for CVRP."""
    if solver.solve_cvrp is None:
        raise NeurouteError(f"solver '{solver.name}' does not solve CVRP instances; 'hgs' does")
    return from_routes(solver.solve_cvrp(instance.coords[0], instance.demand[0], int(instance.capacity[0]), seed))


def _nearest_neighbour(instances: Cvrp) -> np.ndarray:
    from neuroute.solvers.nearest import cvrp_lengths  # compiles, so only where it is needed

    return cvrp_lengths(instances)


KIND = Kind(
    noun="feasible solution",
    meaning="serve every customer once within the capacity",
    shape=lambda n: (2, n),
    dtype=unsigned,
    instances=cvrp_dataset,
    arrays=lambda instances: (instances.coords, instances.demand, instances.capacity),
    valid=is_feasible,
    lengths=cost,
    canonical=canonical,
    simple_lengths=_nearest_neighbour,
    solve=_solve,
)
