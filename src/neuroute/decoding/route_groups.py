"""Re-construction of routes that lie together, as a smaller CVRP, by networks of many starts.

A group is whole routes, so whatever takes its place, the solution stays feasible.
"""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from neuroute.decoding.cvrp import CVRP, CvrpBatch
from neuroute.decoding.multi_start import multi_start
from neuroute.networks.base import MultiStartNetwork
from neuroute.problems.vrp import Vrp, from_routes, lengths, to_routes

FEWEST = 2  # routes of a group
IMAGES = 8


def rebuild(
    net: MultiStartNetwork,
    batch: CvrpBatch,
    solutions: Tensor,
    customers: int,
    seed: int,
    first: int,
    iterations: range,
    memory_gb: float,
) -> Iterator[Tensor]:
    """Yield the solutions (batch, 2, V) after each iteration, nowhere longer than before it.

    What an instance draws depends on the seed, its number (first, first + 1, ...) and the iteration's.

    An iteration rebuilds one group of each solution's routes: those that pass nearest to a random customer, of up to
    so many customers, but two routes at least.  The network sees the group in the unit square, in eight random images,
    and starts at each customer of each.
    """
    instances, rows = batch.instances(), solutions.cpu().numpy()
    for number in iterations:
        rebuilt = []
        for row, solution in enumerate(rows):
            rng = np.random.default_rng((seed, first + row, number))
            instance = instances[row : row + 1]
            points, routes = instance.coords[0].astype(np.float64), to_routes(solution)
            away = np.linalg.norm(points - points[rng.integers(1, len(points))], axis=1)
            order = np.argsort([away[route].min() for route in routes], kind="stable")
            served = np.cumsum([len(routes[route]) for route in order])
            size = max(FEWEST, int(np.searchsorted(served, customers, side="right")))
            group, others = ([routes[route] for route in part] for part in (order[:size], order[size:]))
            nodes = np.array([0, *(customer for route in group for customer in route)])
            low, high = points[nodes].min(axis=0), points[nodes].max(axis=0)
            square = ((points[nodes] - low) / ((high - low).max() or 1.0)).astype(np.float32)
            smaller = Vrp(square[None], instance.demand[:, nodes], instance.capacity)
            draw = int(rng.integers(2**32))
            shortest = multi_start(CVRP, net, smaller, images=IMAGES, draw=draw, memory_gb=memory_gb)[0].numpy()
            changed = from_routes([*others, *(nodes[route].tolist() for route in to_routes(shortest))])
            before, after = lengths(instance[np.zeros(2, dtype=np.int64)], np.stack([solution, changed]))
            rebuilt.append(changed if after < before else solution)
        rows = np.stack(rebuilt)
        yield torch.from_numpy(rows).to(solutions.device)
