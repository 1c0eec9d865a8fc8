"""Groups of routes rebuilt by a network of many starts: feasible, never longer, at most so many customers at a time."""

import numpy as np
import pytest
import torch

from neuroute.datasets.streams import cvrp_dataset
from neuroute.decoding.cvrp import CvrpBatch
from neuroute.decoding.search import SEARCH
from neuroute.networks.pomo import PomoCvrp
from neuroute.plan.objects import Dataset, Decoding
from neuroute.problems.cvrp import cost, is_feasible
from neuroute.problems.vrp import Vrp, from_routes, to_routes

pytestmark = pytest.mark.usefixtures("one_thread")

COUNT, CUSTOMERS, ITERATIONS = 3, 14, 6
PRC = Decoding(method="prc", iterations=ITERATIONS, longest=5)


@pytest.fixture
def net() -> PomoCvrp:
    torch.manual_seed(2)
    return PomoCvrp(depth=1, width=16, heads=4, feed_forward=24, train_nodes=10).eval()


def made(count: int = COUNT) -> Vrp:
    return cvrp_dataset(Dataset(problem="cvrp", split="test", n=CUSTOMERS, count=count))


def alone(count: int = COUNT) -> torch.Tensor:
    """A route for each customer."""
    return torch.from_numpy(np.stack([from_routes([[c] for c in range(1, CUSTOMERS + 1)])] * count))


def rebuilt(net: PomoCvrp, instances: Vrp, start: torch.Tensor, how: Decoding = PRC, **more: int) -> list[np.ndarray]:
    batch = CvrpBatch.of(instances, torch.device("cpu"))
    return [each.numpy() for each in SEARCH.of("cvrp").reconstruct(net, batch, start, how, 4.0, **more)]


def test_solutions_stay_feasible_and_get_no_longer(net: PomoCvrp) -> None:
    instances = made()
    steps = [alone().numpy(), *rebuilt(net, instances, alone())]
    assert len(steps) == 1 + ITERATIONS
    assert all(is_feasible(instances, each).all() for each in steps)
    costs = np.stack([cost(instances, each) for each in steps])
    assert (np.diff(costs, axis=0) <= 0).all()
    assert (costs[-1] < costs[0]).all()  # any two customers that fit share a vehicle for less


def test_an_iteration_rebuilds_no_more_than_it_may(net: PomoCvrp) -> None:
    before = alone()
    for after in rebuilt(net, made(), before):
        for old, new in zip(before.numpy(), after, strict=True):
            gone = {tuple(route) for route in to_routes(old)} - {tuple(route) for route in to_routes(new)}
            assert len(gone) <= 2 or sum(map(len, gone)) <= PRC.longest
        before = torch.from_numpy(after)


def test_iterations_go_on_where_others_ended(net: PomoCvrp) -> None:
    instances, half = made(), PRC.model_copy(update={"iterations": ITERATIONS // 2})
    whole = rebuilt(net, instances, alone(), seed=3)
    first = rebuilt(net, instances, alone(), half, seed=3)
    second = rebuilt(net, instances, torch.from_numpy(first[-1]), half, seed=3, iterations_before=len(first))
    np.testing.assert_array_equal(np.stack(whole), np.stack([*first, *second]))


def test_customers_at_the_depot_are_rebuilt(net: PomoCvrp) -> None:
    instances = made(1)
    there = Vrp(np.full_like(instances.coords, 0.5), instances.demand, instances.capacity)
    assert all(is_feasible(there, each).all() for each in rebuilt(net, there, alone(1)))


def test_a_batch_is_its_instances_alone(net: PomoCvrp) -> None:
    instances, together = made(), rebuilt(net, made(), alone(), seed=3)
    for i in range(COUNT):
        single = rebuilt(net, instances[i : i + 1], alone(1), seed=3, first=i)
        np.testing.assert_array_equal(np.concatenate(single), np.stack(together)[:, i])
