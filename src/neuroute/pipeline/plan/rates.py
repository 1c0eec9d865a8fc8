"""How fast a machine is, where nothing was measured there: one rate for networks, and seconds of solvers."""

import math
from typing import Literal

from neuroute.pipeline.plan.config import Config
from neuroute.solvers.base import at_size
from neuroute.solvers.registry import get

Kind = Literal["cpu", "cuda"]
BySize = dict[int, float]

START_S = 12.0  # from the start of a process to its first batch: Python, torch, the plan, the data
# FLOP/s of one thread of a CPU (of small networks: wide ones reach three times as much) and of a GPU (an H200, networks
# 128 wide), and seconds of a decision of a training's batch, however few numbers it sees (of a GPU a guess).
FLOPS = {"cpu": 20e9, "cuda": 20e12}
DECISION_S = {"cpu": 2e-3, "cuda": 4e-3}

# Seconds of one 2.6 GHz EPYC core for one instance of n nodes, from 200 nodes on with only two or three instances.
SOLVERS: dict[str, BySize] = {
    "concorde": {20: 0.0076, 50: 0.04, 100: 0.18, 200: 0.38, 500: 15.0},
    "concorde-6h": {20: 0.0076, 50: 0.04, 100: 0.18, 200: 0.38, 500: 15.0},
    "lkh": {20: 0.0011, 50: 0.009, 100: 0.048, 200: 0.2, 500: 2.0},
    "lkh-long": {20: 0.005, 100: 0.41, 500: 14.7},
    "lkh3": {20: 0.057, 50: 0.17, 100: 0.44, 200: 0.97, 500: 5.2, 1000: 30.0},  # CVRP
    "lkh3-short": {10: 0.05, 20: 0.08, 50: 0.2},  # VRP: means over four variants
    "hgs": {20: 0.27, 50: 0.8, 100: 2.6},  # CVRP
    "hgs-long": {20: 3.1, 50: 8.9, 100: 25.0},  # CVRP, one instance each, on a busy core
    "hgs-short": {20: 0.018, 50: 0.08, 100: 0.2},  # CVRP
    "ortools-short": {10: 0.07, 20: 0.12, 50: 0.34},  # VRP: means over variants
    "pyvrp-short": {10: 0.014, 20: 0.03, 50: 0.14},
    "pyvrp": {10: 0.37, 20: 0.9, 50: 2.0},
    "pyvrp-long": {20: 10.4, 50: 26.8},
}


def solver_s(solver: str, n: int) -> float:
    """Seconds of one core for an instance of n nodes; not a number for a solver that nobody has measured.

    At most the solver's own limit, and all of that where nothing else is known.
    """
    typical, limit = SOLVERS.get(solver, {}), get(solver).limit
    most = limit(n) if limit else math.inf
    if not typical:
        return most if most < math.inf else math.nan
    return min(at_size(typical, n), most)


def flops_per_second(config: Config, kind: Kind) -> float:
    """Of one thread of a CPU, or of a GPU: as config.yaml says, else typical."""
    if kind == "cpu":
        return 1e9 * config.machine.cpu_gflops_per_thread if config.machine.cpu_gflops_per_thread else FLOPS[kind]
    return 1e12 * config.machine.gpu_tflops if config.machine.gpu_tflops else FLOPS[kind]
