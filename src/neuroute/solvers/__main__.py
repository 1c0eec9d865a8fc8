"""Compile constructions and searches, which otherwise happens at their first call: `python -m neuroute.solvers`."""

import numpy as np

from neuroute.solvers import insertion, nearest, savings

if __name__ == "__main__":
    coords, demand = np.random.default_rng(0).random((4, 2)), np.array([0, 1, 1, 1])
    nearest.tour_lengths(coords[None])
    for solver in (nearest, insertion, savings):
        solver.solve(coords, 0)
        solver.solve_cvrp(coords, demand, 2, 0)
