"""Hybrid genetic search on the budget of MVMoE's published references."""

from functools import partial

from neuroute.solvers.base import Solver
from neuroute.solvers.hgs import HOW_TO_GET, solve, solve_cvrp, version

ITERATIONS = 20_000

SOLVER = Solver(
    "hgs-long",
    False,
    HOW_TO_GET,
    version,
    partial(solve, iterations=ITERATIONS),
    partial(solve_cvrp, iterations=ITERATIONS),
)
