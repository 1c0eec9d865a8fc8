"""Sampling solutions of the CVRP without replacement: each comes once, and feasible."""

from itertools import permutations, product

import numpy as np
import pytest
import torch
from random_cvrp import random_instances
from torch import Tensor

from neuroute.decoding.cvrp import CvrpBatch
from neuroute.decoding.prefixes import ANY, RoutePrefixes
from neuroute.decoding.sampling import Begin, Lengths, sample_distinct, sample_shortest
from neuroute.problems.cvrp import cost, is_feasible
from neuroute.problems.vrp import Vrp
from test_sampling import generator

pytestmark = pytest.mark.usefixtures("one_thread")

CPU = torch.device("cpu")


def attract(rows: Tensor, left: Tensor) -> Tensor:
    """A policy that depends on where one stands, what is left in the vehicle and what waits; far from uniform."""
    current, waiting, depot = rows[:, :1], rows[:, 1:-1], rows[:, -1:]
    straight = -3 * (waiting - current).norm(dim=-1)
    through = -2 * (waiting - depot).norm(dim=-1) - 2 * left[:, None]
    return torch.stack([straight, through], dim=-1)


def sampling_of(some: Vrp, tokens: int = ANY) -> tuple[Begin, Lengths]:
    batch = CvrpBatch.of(some, CPU)
    return lambda: RoutePrefixes(attract, batch.coords, batch.demand, batch.capacity, tokens), batch.lengths


def instances(count: int, customers: int, seed: int = 0) -> Vrp:
    return random_instances(count, customers, seed, grid=False)[0]


def every_solution(some: Vrp) -> dict[bytes, np.ndarray]:
    """All feasible ways (2, V) to serve the customers of one instance."""
    ways = [(1, *rest) for rest in product((0, 1), repeat=some.customers - 1)]
    every = np.array([(order, way) for order in permutations(range(1, some.customers + 1)) for way in ways])
    same = Vrp(*(np.repeat(a, len(every), axis=0) for a in (some.coords, some.demand, some.capacity)))
    return {solution.tobytes(): solution for solution in every[is_feasible(same, every)]}


def found_in(moves: Tensor) -> list[bytes]:
    return [solution.tobytes() for solution in RoutePrefixes.solutions_of(moves).numpy()]


@pytest.mark.parametrize("sigma", [0.0, 2.0])
@pytest.mark.parametrize(("beam", "rounds"), [(1, 49), (5, 12), (60, 2)])
def test_rounds_enumerate_every_solution_exactly_once(sigma: float, beam: int, rounds: int) -> None:
    some = instances(4, 3, 1)
    sampled = sample_distinct(*sampling_of(some), beam, rounds, sigma, generator())
    for i in range(len(some)):
        found = found_in(sampled.moves[i][sampled.valid[i]])
        assert len(found) == len(set(found))
        assert set(found) == set(every_solution(some[i : i + 1]))


def test_solutions_are_distinct_feasible_and_as_long_as_the_checker_says() -> None:
    some = instances(5, 15)
    sampled = sample_distinct(*sampling_of(some), 6, 3, 0.5, generator())
    assert bool(sampled.valid.all())
    for k in range(18):
        solutions = RoutePrefixes.solutions_of(sampled.moves[:, k]).numpy()
        assert is_feasible(some, solutions).all()
        np.testing.assert_allclose(sampled.lengths[:, k], cost(some, solutions))
    assert all(len(set(found_in(moves))) == 18 for moves in sampled.moves)


def test_the_shortest_is_returned_and_parts_change_nothing() -> None:
    some = instances(5, 12)
    sampled = sample_distinct(*sampling_of(some), 6, 2, 0.3, generator())
    best = sample_shortest(*sampling_of(some), 6, 2, 0.3, generator())
    np.testing.assert_allclose(cost(some, best.numpy()), sampled.lengths.amin(dim=1))
    assert torch.equal(best, sample_shortest(*sampling_of(some, tokens=40), 6, 2, 0.3, generator()))
