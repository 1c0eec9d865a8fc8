"""Do once what the first jobs would do: `python -m neuroute.pipeline.plan`, in `make env`.

It compiles kernels, constructions and searches, and counts the networks of ./config.yaml.
"""

import numpy as np

from neuroute.evaluation.flops import counts
from neuroute.networks.kernels.library import library
from neuroute.pipeline.plan.build import build_plan
from neuroute.pipeline.plan.config import load_config
from neuroute.solvers import insertion, nearest, savings

if __name__ == "__main__":
    library()
    coords, demand = np.random.default_rng(0).random((4, 2)), np.array([0, 1, 1, 1])
    nearest.tour_lengths(coords[None])
    for solver in (nearest, insertion, savings):
        solver.solve(coords, 0)
        solver.solve_cvrp(coords, demand, 2, 0)
    for run in build_plan(load_config(None)).runs.values():
        counts(run.network)
