"""Nearest neighbour for the CVRP: its routes are those of the rule, and as long as it says."""

import numpy as np
import pytest
from refusals import one_line

from neuroute.datasets.streams import cvrp_dataset
from neuroute.plan.objects import Dataset
from neuroute.problems.cvrp import cost, is_feasible
from neuroute.problems.vrp import Vrp, from_routes
from neuroute.solvers.nearest import cvrp_lengths
from neuroute.solvers.registry import get


def plain(coords: np.ndarray, demand: np.ndarray, capacity: int) -> list[list[int]]:
    """The rule, word by word."""
    waiting, routes = set(range(1, len(coords))), []
    while waiting:
        here, left, route = 0, capacity, []
        while fitting := sorted(c for c in waiting if demand[c] <= left):
            distances = [((coords[c] - coords[here]) ** 2).sum() for c in fitting]
            here = fitting[int(np.argmin(distances))]
            route.append(here)
            waiting.remove(here)
            left -= demand[here]
        routes.append(route)
    return routes


def on_a_lattice(seed: int) -> Vrp:
    """Ties abound, and customers share places with each other and with the depot."""
    draw = np.random.default_rng(seed)
    n = int(draw.integers(1, 30))
    demand = np.concatenate([[0], draw.integers(1, 5, n)])
    return Vrp(draw.integers(0, 4, (1, n + 1, 2)).astype(float), demand[None], draw.integers(4, 9, 1))


def test_routes_follow_the_rule_also_with_ties() -> None:
    uniform = [cvrp_dataset(Dataset(problem="cvrp", n=n, count=1)) for n in (1, 2, 7, 50, 200)]
    for instance in [*uniform, *map(on_a_lattice, range(200))]:
        capacity = int(instance.capacity[0])
        routes = get("nearest").solve_cvrp(instance.coords[0], instance.demand[0], capacity, 0)
        assert routes == plain(instance.coords[0].astype(float), instance.demand[0], capacity)
        solution = from_routes(routes)[None]
        assert is_feasible(instance, solution).all()
        np.testing.assert_allclose(cvrp_lengths(instance), cost(instance, solution), rtol=1e-12)


def test_lengths_of_the_yardstick_never_change() -> None:
    # Labels that are already made were held against these.
    instances = cvrp_dataset(Dataset(problem="cvrp", split="val", n=100, count=64))
    assert cvrp_lengths(instances).mean() == pytest.approx(20.310966575220476, rel=1e-12)


@pytest.mark.parametrize("name", ["nearest", "insertion", "insertion-angle", "insertion-published", "savings"])
def test_a_customer_above_the_capacity_is_one_line(name: str) -> None:
    solver = name.partition("-")[0]
    with one_line(f"{solver}.*: customer 2 demands more than the capacity 4; split it"):
        get(name).solve_cvrp(np.eye(4, 2), np.array([0, 4, 5, 2]), 4, 0)
