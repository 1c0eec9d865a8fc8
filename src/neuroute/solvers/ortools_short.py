"""OR-Tools until it has met a number of solutions, not for a time: labels repeat exactly, on any machine.

For instances of a few customers, and where a reference must be there in seconds.
"""

from neuroute.solvers.ortools_vrp import Budget, solver

SOLUTIONS = 100

SOLVER = solver("ortools-short", Budget(None, SOLUTIONS))
