"""OR-Tools with ten times the time, the papers' "OR-Tools (x10)": 4 s per customer."""

from neuroute.solvers.ortools_vrp import SECONDS_PER_CUSTOMER, Budget, solver

SOLVER = solver("ortools-x10", Budget(10 * SECONDS_PER_CUSTOMER))
