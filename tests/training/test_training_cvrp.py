"""Sub-paths that CVRP training learns from, by hand: stops, loads and targets."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from neuroute.problems.cvrp_sub_paths import Draw, by_load
from neuroute.problems.vrp import from_routes, to_routes
from neuroute.training.cvrp import cut, last_stops, loss

pytestmark = pytest.mark.usefixtures("one_thread")


def by_hand(length: int = 4, end: float = 0.99) -> tuple[torch.Tensor, ...]:
    """coords, demand, capacity, solution of routes 3-1, 2, 5-4-6, and a draw that leaves them as they are."""
    coords = torch.arange(14.0).view(1, 7, 2)
    demand, capacity = torch.tensor([[0, 1, 2, 3, 4, 5, 6]]), torch.tensor([16])
    solution = torch.from_numpy(from_routes([[3, 1], [2], [5, 4, 6]]))[None]
    draw = Draw(length, False, np.zeros((1, 6), bool), np.array([end]))
    return coords, demand, capacity, solution, draw  # type: ignore[return-value]


def test_a_sub_path_by_hand() -> None:
    path = cut(*by_hand())  # type: ignore[arg-type]
    assert path.coords[0, :, 0].tolist() == [0, 4, 10, 8, 12]  # the depot, then 2, 5, 4, 6
    assert (path.demand[0] * 16).tolist() == [0, 2, 5, 4, 6]
    assert path.via.tolist() == [[1, 1, 0, 0]]
    assert (path.left[0] * 16).tolist() == [14, 11, 7, 1]


def test_a_sub_path_that_begins_inside_a_route_knows_what_was_served_before() -> None:
    path = cut(*by_hand(length=5))  # type: ignore[arg-type]
    assert path.coords[0, :, 0].tolist() == [0, 2, 4, 10, 8, 12]  # 3 was served before 1
    assert path.via.tolist() == [[0, 1, 1, 0, 0]]
    assert (path.left[0] * 16).tolist() == [12, 14, 11, 7, 1]
    around = cut(*by_hand(length=4, end=0.0))  # type: ignore[arg-type]
    assert around.coords[0, :, 0].tolist() == [0, 8, 12, 6, 2]  # 4, 6 of a route that 5 began; then 3, 1
    assert (around.left[0] * 16).tolist() == [7, 1, 13, 12]


def test_the_target_is_the_next_stop_and_the_way_to_it() -> None:
    path = cut(*by_hand())  # type: ignore[arg-type]
    seen = []

    def decide(coords: torch.Tensor, demand: torch.Tensor, left: torch.Tensor, row: int) -> torch.Tensor:
        seen.append((row, float(left) * 16))
        torch.manual_seed(row)
        return torch.randn(1, path.shape[1] - 1 - row, 2)

    for row, way in enumerate((1, 0, 0)):
        logits = decide(path.coords, path.demand, path.left[:, row], row)
        expected = -F.log_softmax(logits.flatten(), 0)[way]  # candidate 0: straight is class 0, via the depot class 1
        torch.testing.assert_close(loss(decide, path, row), expected)
    assert seen[::2] == [(0, 14), (1, 11), (2, 7)]


def test_the_last_stops_by_hand() -> None:
    """Of routes 3-1, 2, 5-4-6, the fullest first: 5-4-6, 3-1, 2."""
    coords, demand, capacity, solution, _ = by_hand()
    fullest_first = by_load(demand, solution)
    assert to_routes(fullest_first[0].numpy()) == [[5, 4, 6], [3, 1], [2]]
    path = last_stops(coords, demand, capacity, fullest_first, 4)
    assert path.coords[0, :, 0].tolist() == [0, 12, 6, 2, 4]  # the depot, then 6, 3, 1, 2
    assert path.via.tolist() == [[0, 1, 0, 1]]
    assert (path.left[0] * 16).tolist() == [1, 13, 12, 14]
    whole = last_stops(coords, demand, capacity, fullest_first, 7)
    assert whole.coords[0, :, 0].tolist() == [0, 0, 10, 8, 12, 6, 2, 4]  # from the depot
    assert whole.via.tolist() == [[0, 0, 0, 0, 1, 0, 1]]  # whose first way is called straight
    assert (whole.left[0] * 16).tolist() == [16, 11, 7, 1, 13, 12, 14]
    assert (whole.demand[0] * 16).tolist() == [0, 0, 5, 4, 6, 3, 1, 2]
