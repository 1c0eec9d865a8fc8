"""TSP: instances are coordinates (count, n, 2), a solution is a tour (n,) of node numbers."""

import numpy as np

from neuroute.datasets.kind import Kind, unsigned
from neuroute.datasets.streams import dataset_coordinates
from neuroute.problems.tsp import canonical, is_permutation, tour_length
from neuroute.solvers.base import Solver


def _solve(solver: Solver, coords: np.ndarray, seed: int) -> np.ndarray:
    return solver.solve(coords[0], seed)


def _nearest_neighbour(coords: np.ndarray) -> np.ndarray:
    from neuroute.solvers.nearest import tour_lengths  # compiles, so only where it is needed

    return tour_lengths(coords)


KIND = Kind(
    noun="tour",
    meaning="visit every node once",
    shape=lambda n: (n,),
    dtype=lambda n: unsigned(n - 1),
    instances=dataset_coordinates,
    arrays=lambda coords: (coords,),
    valid=lambda coords, tours: is_permutation(tours),
    lengths=tour_length,
    canonical=canonical,
    simple_lengths=_nearest_neighbour,
    solve=_solve,
)
