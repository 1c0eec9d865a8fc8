"""Random instances of the CVRP, and random feasible solutions of them."""

import numpy as np
import torch
from torch import Tensor

from neuroute.problems.vrp import Vrp, from_routes


def random_instances(batch: int, customers: int, seed: int, grid: bool = True) -> tuple[Vrp, Tensor]:
    """Instances of many tightnesses, half of them on a coarse grid (ties), and random feasible solutions."""
    rng = np.random.default_rng(seed)
    coords = rng.random((batch, customers + 1, 2))
    if grid:
        coords[::2] = np.round(coords[::2] * 3) / 3
    demand = rng.integers(1, 10, (batch, customers + 1))
    demand[:, 0] = 0
    instances = Vrp(coords, demand, rng.integers(9, 9 + 5 * customers, batch))
    return instances, torch.from_numpy(np.stack([random_solution(instances, i, rng) for i in range(batch)]))


def random_solution(instances: Vrp, i: int, rng: np.random.Generator) -> np.ndarray:
    routes: list[list[int]] = []
    load, capacity = 0, int(instances.capacity[i])
    for customer in (1 + rng.permutation(instances.customers)).tolist():
        need = int(instances.demand[i, customer])
        if not routes or load + need > capacity or rng.random() < 0.15:
            routes, load = [*routes, []], 0
        routes[-1].append(customer)
        load += need
    return from_routes(routes)


def drive(instances: Vrp, i: int, solution: list[list[int]]) -> float:
    """A vehicle's way, stop by stop, by Python's complex numbers: its length.

    Fails where it carries too much, or a customer is not served once.
    """
    order, via = solution
    assert sorted(order) == list(range(1, instances.customers + 1))
    assert set(via) <= {0, 1}
    assert via[0] == 1
    points = [complex(*p) for p in instances.coords[i].tolist()]
    here, left, length = points[0], 0, 0.0
    for customer, through in zip(order, via, strict=True):
        if through:
            length, here, left = length + abs(here - points[0]), points[0], int(instances.capacity[i])
        length, here, left = (
            length + abs(points[customer] - here),
            points[customer],
            left - instances.demand[i, customer],
        )
        assert left >= 0
    return length + abs(here - points[0])
