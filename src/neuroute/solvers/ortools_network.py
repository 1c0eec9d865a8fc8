"""OR-Tools under the rule that the networks obey: with backhauls, what it finds is a fair reference for them."""

from neuroute.solvers.ortools_vrp import Budget, solver

SOLVER = solver("ortools-network", Budget(), rule="network")
