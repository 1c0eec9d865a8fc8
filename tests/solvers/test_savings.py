"""Savings: routes are those of the rule, in its best shape, and better than what simpler rules give."""

from itertools import chain

import numpy as np
import pytest

from neuroute.datasets.streams import cvrp_dataset, dataset_coordinates
from neuroute.plan.objects import Dataset
from neuroute.problems.cvrp import cost, is_feasible
from neuroute.problems.tsp import tour_length
from neuroute.problems.vrp import Vrp, from_routes
from neuroute.solvers import nearest, savings


def plain(coords: np.ndarray, demand: np.ndarray, capacity: int, shape: float) -> list[list[int]]:
    """The rule, word by word."""
    far = np.sqrt(((coords[:, None] - coords) ** 2).sum(-1))
    pairs = [(i, j) for i in range(1, len(coords)) for j in range(i + 1, len(coords))]
    routes = [[i] for i in range(1, len(coords))]
    for i, j in sorted(pairs, key=lambda p: shape * far[p] - far[0, p[0]] - far[0, p[1]]):
        one, other = (next(route for route in routes if c in route) for c in (i, j))
        at_ends = i in (one[0], one[-1]) and j in (other[0], other[-1])
        if one is not other and at_ends and demand[one + other].sum() <= capacity:
            routes.remove(one)
            routes.remove(other)
            routes.append((one if one[-1] == i else one[::-1]) + (other if other[0] == j else other[::-1]))
    return routes


def test_routes_are_the_best_of_the_rules_shapes() -> None:
    for seed in range(30):
        draw = np.random.default_rng(seed)
        n = int(draw.integers(1, 25))
        coords, demand = draw.random((n + 1, 2)), np.concatenate([[0], draw.integers(1, 10, n)])
        one = Vrp(coords[None], demand[None], draw.integers(9, 60, 1))
        capacity = int(one.capacity[0])
        found = from_routes(savings.solve_cvrp(coords, demand, capacity, 0))
        assert is_feasible(one, found[None]).all()
        costs = [
            cost(one, from_routes(plain(coords, demand, capacity, shape))[None]).item() for shape in savings.SHAPES
        ]
        assert cost(one, found[None]).item() == pytest.approx(min(costs))


def test_the_nearest_customers_are_enough_where_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    instances = cvrp_dataset(Dataset(problem="cvrp", n=400, count=3))
    arrays = list(zip(instances.coords, instances.demand, instances.capacity, strict=True))
    of_all = [from_routes(savings.solve_cvrp(x, d, int(c), 0)) for x, d, c in arrays]
    monkeypatch.setattr(savings, "ALL_PAIRS", 399)
    of_near = [from_routes(savings.solve_cvrp(x, d, int(c), 0)) for x, d, c in arrays]
    assert is_feasible(instances, np.stack(of_near)).all()
    assert cost(instances, np.stack(of_near)).sum() < 1.01 * cost(instances, np.stack(of_all)).sum()
    coords = np.repeat(instances.coords[0][:5], 100, axis=0)  # more of them coincide than are near
    demand = np.minimum(np.arange(500), 1)
    monkeypatch.setattr(savings, "ALL_PAIRS", 50)
    monkeypatch.setattr(savings, "NEAREST", 5)
    assert sorted(chain(*savings.solve_cvrp(coords, demand, 50, 0))) == list(range(1, 500))
    tour = savings.solve(dataset_coordinates(Dataset(n=500, count=1))[0], 0)  # all ends are joined in the end
    assert sorted(tour) == list(range(500))


def test_coinciding_customers_are_served() -> None:
    demand = np.array([0, 1, 1, 1, 1])
    assert savings.solve_cvrp(np.zeros((5, 2)), demand, 1, 0) == [[1], [2], [3], [4]]
    (route,) = savings.solve_cvrp(np.zeros((5, 2)), demand, 4, 0)
    assert sorted(route) == [1, 2, 3, 4]


def test_solutions_are_shorter_than_nearest_neighbour() -> None:
    instances = cvrp_dataset(Dataset(problem="cvrp", n=50, count=16))
    arrays = zip(instances.coords, instances.demand, instances.capacity, strict=True)
    routes = [from_routes(savings.solve_cvrp(x, d, int(c), 0)) for x, d, c in arrays]
    assert (cost(instances, np.stack(routes)) < nearest.cvrp_lengths(instances)).all()
    coords = dataset_coordinates(Dataset(n=50, count=16))
    tours = np.stack([savings.solve(x, 0) for x in coords])
    assert (np.sort(tours) == np.arange(50)).all()
    assert tour_length(coords, tours).mean() < nearest.tour_lengths(coords).mean()
