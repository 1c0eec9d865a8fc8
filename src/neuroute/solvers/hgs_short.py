"""Hybrid genetic search on a short budget, for training labels: within about 1 % of the full one on 100 customers."""

from functools import partial

from neuroute.solvers.base import Solver
from neuroute.solvers.hgs import HOW_TO_GET, solve, solve_cvrp, version

ITERATIONS = 100

SOLVER = Solver(
    "hgs-short",
    False,
    HOW_TO_GET,
    version,
    partial(solve, iterations=ITERATIONS),
    partial(solve_cvrp, iterations=ITERATIONS),
)
