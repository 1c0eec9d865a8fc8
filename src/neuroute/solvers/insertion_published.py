"""Random insertion as the code of sit does it: the TSP as `insertion`, the CVRP by angle, with its slip."""

from functools import partial

from neuroute.solvers.base import Solver
from neuroute.solvers.insertion import HOW_TO_GET, solve, version
from neuroute.solvers.insertion_cvrp import solve_cvrp

SOLVER = Solver("insertion-published", False, HOW_TO_GET, version, solve, partial(solve_cvrp, depot_slip=True))
