"""A network's solution without search, by its default decoding, and its FLOPs."""

import numpy as np

from neuroute.accounting.cost import per_solution
from neuroute.core.errors import NeurouteError
from neuroute.decoding.environment import ENVIRONMENT
from neuroute.instances.instance import Instance
from neuroute.plan.objects import Network
from neuroute.user.by_network import solve_by_network
from neuroute.user.model import Model, default_decoding


def build(instance: Instance, model: Model, seed: int, memory_gb: float | None) -> np.ndarray:
    """Return the stops of a solution without search."""
    how = default_decoding(model.net).model_copy(update={"draw": seed})
    return solve_by_network(instance, model, how, seed=seed, memory_gb=memory_gb).stops


def gflops(instance: Instance, model: Model) -> float | None:
    """Return what this solution of an instance takes, all its starts together; None where nothing counts it."""
    how, network = default_decoding(model.net), Network.model_validate(model.about["network"])
    if how.method != "greedy":
        return None
    nodes = instance.nodes
    try:
        if not model.net.multi_start:
            return per_solution(network, nodes)["gflops_shrinking"]
        places = ENVIRONMENT.of(model.problem).count_starts(instance.inputs(model.problem), None)
        starts = places if how.starts == "all" else min(how.starts, places)
        return per_solution(network, nodes, starts, shrinks=False)["gflops_shrinking"]
    except NeurouteError:  # a network of another module that cannot be counted
        return None
