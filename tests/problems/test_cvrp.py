"""The CVRP: lengths, feasibility, forms, and the sub-paths that training and re-construction cut."""

import numpy as np
import pytest
import torch
from random_cvrp import random_solution

from neuroute.datasets.streams import cvrp_dataset
from neuroute.problems.cvrp import canonical, cost, is_feasible
from neuroute.problems.cvrp_sub_paths import Draw, arranged, draw, loads, path_lengths
from neuroute.problems.vrp import Vrp, from_routes, to_routes
from neuroute.specs.objects import Dataset

V = 12


def instances(count: int = 30, **more) -> Vrp:
    return cvrp_dataset(Dataset(problem="cvrp", n=V, count=count, **more))


def random_solutions(batch: Vrp) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.stack([random_solution(batch, i, rng) for i in range(len(batch))])


def test_every_way_to_be_infeasible_is_seen():
    batch = Vrp(np.random.default_rng(0).random((1, 5, 2)), np.array([[0, 3, 3, 3, 3]]), np.array([6]))
    good = from_routes([[1, 2], [3, 4]])[None]
    assert is_feasible(batch, good).all()
    for order, via in (
        ([1, 2, 3, 4], [1, 0, 0, 1]),  # a load of 9
        ([1, 2, 3, 3], [1, 0, 1, 0]),  # 4 is left out
        ([1, 2, 3, 5], [1, 0, 1, 0]),  # there is no 5
        ([0, 2, 3, 4], [1, 0, 1, 0]),  # the depot is no customer
        ([1, 2, 3, 4], [0, 0, 1, 0]),  # begins at no depot
        ([1, 2, 3, 4], [1, 0, 2, 0]),  # no flag
    ):
        assert not is_feasible(batch, np.array([[order, via]])).any(), (order, via)


def test_routes_there_and_back():
    routes = [[3, 1], [2], [5, 4, 6]]
    assert to_routes(from_routes(routes)) == routes
    assert to_routes(from_routes([[], *routes, []])) == routes
    np.testing.assert_array_equal(from_routes(routes), [[3, 1, 2, 5, 4, 6], [1, 0, 1, 1, 0, 0]])


def test_canonical_is_one_form_of_all_that_drive_alike():
    batch = instances()
    solutions = random_solutions(batch)
    expected = [sorted(min(r, r[::-1], key=lambda x: x[0]) for r in to_routes(s)) for s in solutions]
    assert [to_routes(s) for s in canonical(solutions)] == expected
    rng = np.random.default_rng(1)
    shuffled = []
    for s in solutions:
        routes = [r[:: rng.choice([-1, 1])] for r in to_routes(s)]
        shuffled.append(from_routes([routes[i] for i in rng.permutation(len(routes))]))
    np.testing.assert_array_equal(canonical(np.stack(shuffled)), canonical(solutions))
    np.testing.assert_array_equal(canonical(canonical(solutions)), canonical(solutions))


# -- sub-paths --------------------------------------------------------------------------------------------------


def drawn(length: int, backwards: bool, turned: bool, end: float, count: int = 1) -> Draw:
    return Draw(length, backwards, np.full((count, 6), turned), np.full(count, end))


def test_transformations_by_hand():
    solution = torch.from_numpy(from_routes([[3, 1], [2], [5, 4, 6]]))[None]

    def routes(*how) -> list[list[int]]:
        return to_routes(arranged(solution, drawn(4, *how))[0].numpy())

    assert routes(False, False, 0.99) == [[3, 1], [2], [5, 4, 6]]
    assert routes(False, False, 0.0) == [[2], [5, 4, 6], [3, 1]]
    assert routes(False, False, 0.5) == [[5, 4, 6], [3, 1], [2]]
    assert routes(False, True, 0.99) == [[1, 3], [2], [6, 4, 5]]
    assert routes(True, False, 0.99) == [[6, 4, 5], [2], [1, 3]]
    assert routes(True, True, 0.0) == [[2], [3, 1], [5, 4, 6]]


def test_transformations_keep_cost_and_feasibility():
    batch = instances()
    solutions = random_solutions(batch)
    for index in range(20):
        changed = arranged(torch.from_numpy(solutions), draw(0, index, V, 0, len(batch))).numpy()
        assert is_feasible(batch, changed).all()
        np.testing.assert_allclose(cost(batch, changed), cost(batch, solutions))
        np.testing.assert_array_equal(canonical(changed), canonical(solutions))


def test_loads_by_hand():
    solution = torch.from_numpy(from_routes([[3, 1], [2], [5, 4, 6]]))[None]
    demand = torch.tensor([[0, 1, 2, 3, 4, 5, 6]])
    assert loads(demand, solution).tolist() == [[3, 4, 2, 5, 9, 15]]


def test_the_length_of_a_whole_solution_is_its_cost_and_of_a_part_its_share():
    batch = instances()
    solutions = torch.from_numpy(random_solutions(batch))
    coords = torch.from_numpy(batch.coords).double()
    points = coords.gather(1, solutions[:, 0, :, None].expand(-1, -1, 2))
    whole = path_lengths(coords[:, 0], points, solutions[:, 1])
    np.testing.assert_allclose(whole.numpy(), cost(batch, solutions.numpy()), rtol=1e-12)
    square = torch.tensor([[[0.0, 1.0], [1.0, 1.0]]])
    depot = torch.zeros(1, 2)
    root = 2**0.5
    for via, expected in (([0, 0], 1 + root), ([1, 0], 2 + root), ([0, 1], 1 + 2 * root)):
        assert float(path_lengths(depot, square, torch.tensor([via]))) == pytest.approx(expected)


def test_copies_of_the_first_stop_before_a_piece_change_no_digit_of_its_length() -> None:
    """They fill up the shorter pieces of a batch, and which these are hangs on the memory."""
    rng = torch.Generator().manual_seed(0)
    for size in range(2, 40):
        depot, points = (torch.rand(50, count, 2, generator=rng, dtype=torch.float64) for count in (1, size))
        via = torch.randint(2, (50, size), generator=rng)
        via[:, 0] = 0
        alone = path_lengths(depot[:, 0], points, via)
        for copies in (1, 3, 8, 29):
            longer = torch.cat([points[:, :1].expand(-1, copies, -1), points], dim=1)
            flags = torch.nn.functional.pad(via, (copies, 0))
            assert torch.equal(path_lengths(depot[:, 0], longer, flags), alone)


def test_chance_is_an_instances_own_and_covers_everything():
    whole = draw(3, 7, V, 0, 20)
    part = draw(3, 7, V, 11, 4)
    np.testing.assert_array_equal(whole.turned[11:15], part.turned)
    np.testing.assert_array_equal(whole.end[11:15], part.end)
    assert (whole.length, whole.backwards) == (part.length, part.backwards)
    many = [draw(0, i, V, 0, 8) for i in range(400)]
    assert {d.length for d in many} == set(range(4, V + 1))
    assert 0.4 < np.mean([d.backwards for d in many]) < 0.6
    assert 0.47 < np.mean([d.turned for d in many]) < 0.53
    ends = np.concatenate([d.end for d in many])
    assert ends.min() >= 0
    assert ends.max() < 1
    np.testing.assert_allclose(np.histogram(ends, 4, (0, 1))[0] / len(ends), 0.25, atol=0.03)
    assert draw(0, 0, 3, 0, 1).length == 3
