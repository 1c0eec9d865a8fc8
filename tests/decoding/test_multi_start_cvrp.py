"""Many starts of the CVRP: feasible, as long as an independent checker says, the best of a plain loop, in chunks."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.datasets.streams import cvrp_dataset
from neuroute.decoding.cvrp import CVRP, CvrpBatch, route_lengths
from neuroute.decoding.environment import BYTES
from neuroute.decoding.multi_start import augment8, multi_start, roll_out
from neuroute.decoding.recompute import RecordedChoices, recompute
from neuroute.networks.icam import IcamCvrp
from neuroute.networks.pomo import PomoCvrp
from neuroute.plan.objects import Dataset
from neuroute.problems.cvrp import canonical, cost, is_feasible
from neuroute.problems.vrp import Vrp, from_routes

pytestmark = pytest.mark.usefixtures("one_thread")

V = 11
CPU = torch.device("cpu")


@pytest.fixture(params=[PomoCvrp, IcamCvrp])
def net(request: pytest.FixtureRequest) -> Any:
    torch.manual_seed(0)
    shape = {"heads": 3} if request.param is PomoCvrp else {}
    return request.param(depth=2, width=24, feed_forward=40, **shape).double().eval()


def instances(count: int = 4, customers: int = V, capacity: int | None = 20) -> Vrp:
    found = cvrp_dataset(Dataset(problem="cvrp", n=customers, count=count, capacity=capacity))
    return Vrp(found.coords.astype(np.float64), found.demand, found.capacity)


class AnyLogits:
    """A network without an opinion: `choose` sees only what is closed."""

    def decide(self, prepared: Any, known: Tensor, current: Tensor, closed: Tensor) -> Tensor:
        assert (known >= 0).all()
        assert (known <= 1).all()
        return torch.randn_like(closed) + closed


class Nodes:
    def __init__(self, customers: int) -> None:
        self.nodes = torch.zeros(1, customers + 1, 1)


def checked(instance: Vrp, row: int, order: list[int], via: list[int]) -> float:
    """A vehicle drives, stop by stop: its length; fails where it carries too much or misses somebody."""
    place, left, length, served = instance.coords[row, 0], 0, 0.0, set()
    for customer, through in zip(order, via, strict=True):
        if through:
            length += float(np.linalg.norm(place - instance.coords[row, 0]))
            place, left = instance.coords[row, 0], int(instance.capacity[row])
        left -= int(instance.demand[row, customer])
        assert left >= 0
        served.add(customer)
        length += float(np.linalg.norm(place - instance.coords[row, customer]))
        place = instance.coords[row, customer]
    assert served == set(range(1, instance.customers + 1))
    assert len(order) == instance.customers
    return length + float(np.linalg.norm(place - instance.coords[row, 0]))


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 25), st.integers(1, 5), st.integers(1, 6), st.integers(0, 2**31), st.booleans())
def test_random_policies_are_feasible_and_lengths_right(
    customers: int, batch: int, tours: int, seed: int, tight: bool
) -> None:
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    demand = np.zeros((batch, customers + 1), np.int64)
    demand[:, 1:] = rng.integers(1, 10, (batch, customers))
    capacity = demand.max(1) + (0 if tight else rng.integers(0, 40, batch))
    case = Vrp(rng.random((batch, customers + 1, 2)), demand, capacity)
    starts = torch.from_numpy(rng.integers(0, customers + 1, (batch, tours)))
    found = roll_out(AnyLogits(), Nodes(customers), CvrpBatch.of(case, CPU), starts)
    lengths = route_lengths(torch.from_numpy(case.coords), found)
    assert found.shape == (batch, tours, 2, customers)
    for tour in range(tours):
        assert is_feasible(case, found[:, tour].numpy()).all()
        np.testing.assert_allclose(lengths[:, tour].numpy(), cost(case, found[:, tour].numpy()), rtol=1e-12)
        for row in range(batch):
            by_hand = checked(case, row, *found[row, tour].tolist())
            assert float(lengths[row, tour]) == pytest.approx(by_hand, rel=1e-12)
            assert starts[row, tour] in (0, found[row, tour, 0, 0])


def test_a_thousand_instances_at_once() -> None:
    case = instances(1000, 30, 25)
    torch.manual_seed(0)
    starts = torch.arange(1, 31).expand(1000, -1)[:, ::5]
    found = roll_out(AnyLogits(), Nodes(30), CvrpBatch.of(case, CPU), starts)
    lengths = route_lengths(torch.from_numpy(case.coords), found)
    for tour in range(starts.shape[1]):
        assert is_feasible(case, found[:, tour].numpy()).all()
        np.testing.assert_allclose(lengths[:, tour].numpy(), cost(case, found[:, tour].numpy()), rtol=1e-12)
    assert torch.equal(found[:, :, 0, 0], starts)


def same_routes(one: Tensor, other: np.ndarray) -> bool:
    """In whichever order and direction: they are equally long, but for rounding, which decides."""
    return np.array_equal(canonical(one.numpy()), canonical(other))


@torch.no_grad()
def one_solution(net: Any, case: Vrp, row: int, start: int) -> np.ndarray:
    """A greedy solution of one instance by a plain loop, as published: forced to the depot, then to the start."""
    one = CvrpBatch.of(case[row : row + 1], CPU)
    prepared = net.prepare(net.encode(one.coords, one.share))
    capacity, demand = int(case.capacity[row]), case.demand[row].tolist()
    stops, left, waiting = [0], capacity, set(range(1, V + 1))
    if start:
        stops, left, waiting = [0, start], capacity - demand[start], waiting - {start}
    while waiting or stops[-1]:
        closed = torch.full((1, 1, V + 1), -torch.inf, dtype=torch.float64)
        for customer in waiting:
            if demand[customer] <= left:
                closed[..., customer] = 0
        if stops[-1]:
            closed[..., 0] = 0
        known = torch.tensor([[left / capacity]], dtype=torch.float64)
        chosen = int(net.decide(prepared, known, torch.tensor([[stops[-1]]]), closed)[0, 0].argmax())
        left = capacity if chosen == 0 else left - demand[chosen]
        stops, waiting = [*stops, chosen], waiting - {chosen}
    text = ",".join(map(str, stops[1:-1]))
    return from_routes([[int(c) for c in route.split(",") if c] for route in text.split(",0,")])


def test_equals_a_plain_loop(net: Any) -> None:
    case = instances()
    by_hand = np.stack([[one_solution(net, case, row, start) for start in range(V + 1)] for row in range(4)])
    batch = CvrpBatch.of(case, CPU)
    with torch.inference_mode():
        prepared = net.prepare(net.encode(batch.coords, batch.share))
        found = roll_out(net, prepared, batch, torch.arange(V + 1).expand(4, -1))
    np.testing.assert_array_equal(found.numpy(), by_hand)
    lengths = route_lengths(batch.coords, torch.from_numpy(by_hand)).numpy()
    every = np.arange(4)
    assert same_routes(multi_start(CVRP, net, case), by_hand[every, 1 + lengths[:, 1:].argmin(1)])
    assert same_routes(multi_start(CVRP, net, case, 3), by_hand[every, 1 + lengths[:, 1:4].argmin(1)])
    own_choice = multi_start(CVRP, net, case, 1)  # of the first customer
    np.testing.assert_array_equal(own_choice, by_hand[:, 0])


@pytest.mark.parametrize("augment", [False, True])
@pytest.mark.parametrize("tours", [1, 7, 40, 100])
def test_how_many_at_a_time_changes_nothing(
    net: Any, tours: int, augment: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neuroute.decoding.environment.batch_size_for", lambda *_: 10)
    case = instances(5)
    all_at_once = multi_start(CVRP, net, case, augment=augment)
    memory_gb = tours * BYTES * (V + 1) / 1e9
    assert same_routes(multi_start(CVRP, net, case, augment=augment, memory_gb=memory_gb), all_at_once.numpy())


def test_with_images_the_best_is_the_same_of_every_image_and_never_longer(net: Any) -> None:
    case = instances()

    def length(coords: np.ndarray, augment: bool) -> np.ndarray:
        moved = Vrp(coords, case.demand, case.capacity)
        return cost(moved, multi_start(CVRP, net, moved, augment=augment).numpy())

    with_images = length(case.coords, True)
    assert (with_images <= length(case.coords, False) + 1e-12).all()
    assert (with_images < length(case.coords, False) - 1e-6).any()
    for image in augment8(torch.from_numpy(case.coords)):
        np.testing.assert_allclose(length(image.numpy(), True), with_images, rtol=1e-9)


@pytest.mark.parametrize("customers", [1, 2, 3])
def test_few_customers(net: Any, customers: int) -> None:
    case = instances(3, customers)
    for starts in {None, 1, customers}:
        assert is_feasible(case, multi_start(CVRP, net, case, starts, augment=True).numpy()).all()


def test_capacities_may_differ_and_one_vehicle_may_do(net: Any) -> None:
    case = instances()
    case = Vrp(case.coords, case.demand, np.array([9, 20, 35, 1000]))
    found = multi_start(CVRP, net, case).numpy()
    assert is_feasible(case, found).all()
    assert multi_start(CVRP, net, instances(0)).shape == (0, 2, V)


def test_what_is_left_is_known_and_what_is_finished_stays() -> None:
    """Loads 3, 2 and 2 in a vehicle of 4: two at once is too much, the depot waits between them."""
    batch = CvrpBatch(torch.zeros(1, 4, 2), torch.tensor([[0, 3, 2, 2]]), torch.tensor([4]))
    routes = batch.rollout(torch.tensor([[1, 2, 0]]), torch.float32)
    assert routes.context.tolist() == [[0.25, 0.5, 1.0]]
    assert (routes.mask == 0).tolist() == [[[1, 0, 0, 0], [1, 0, 0, 1], [0, 1, 1, 1]]]
    for stops in ([0, 3, 2], [2, 0, 3], [3, 1, 0], [0, 0, 1]):
        assert not routes.is_complete()
        routes.go(torch.tensor([stops]))
    assert routes.is_complete()
    assert (routes.mask[0, 1] == 0).tolist() == [1, 0, 0, 0]  # complete, and at the depot
    orders = [[[1, 2, 3], [1, 1, 0]], [[2, 3, 1], [1, 0, 1]], [[2, 3, 1], [1, 0, 1]]]
    assert routes.solutions().tolist() == [orders]


def test_a_decision_of_a_finished_solution_is_certain(net: Any) -> None:
    """For training: its probability is 1, so that it adds nothing."""
    case, certain = CvrpBatch.of(instances(3), CPU), []

    def sample(logits: Tensor) -> Tensor:
        chosen = torch.distributions.Categorical(logits=logits).sample()
        only = (logits > -torch.inf).sum(-1) == 1
        certain.append(logits.log_softmax(-1).gather(2, chosen[..., None])[..., 0][only])
        return chosen

    torch.manual_seed(0)
    roll_out(net, net.prepare(net.encode(case.coords, case.share)), case, torch.arange(1, V + 1).expand(3, -1), sample)
    found = torch.cat(certain)
    assert len(found) > 20
    assert torch.equal(found, torch.zeros_like(found))


@pytest.mark.parametrize("moves", [1, 3, 100])
def test_a_replay_has_the_gradients_of_the_roll_out(net: Any, moves: int) -> None:
    case = CvrpBatch.of(instances(2), CPU)
    starts, weight = torch.arange(1, V + 1).expand(2, -1), torch.randn(2, V, dtype=torch.float64)

    def log_p(logits: Tensor, chosen: Tensor) -> Tensor:
        return logits.log_softmax(-1).gather(2, chosen[..., None])[..., 0]

    in_one: list[Tensor] = []

    def sample(logits: Tensor) -> Tensor:
        chosen = torch.distributions.Categorical(logits=logits).sample()
        in_one.append(log_p(logits, chosen))
        return chosen

    torch.manual_seed(3)
    record = RecordedChoices(sample)
    prepared = net.prepare(net.encode(case.coords, case.share))
    solutions = roll_out(net, prepared, case, starts, record)
    (torch.stack(in_one).sum(0) * weight).sum().backward()
    expected = {name: p.grad.clone() for name, p in net.named_parameters()}
    net.zero_grad()
    prepared = net.prepare(net.encode(case.coords, case.share))
    with torch.no_grad():
        routes = case.rollout(starts, torch.float64)
    for part in recompute(routes, record.stops, moves):
        found = log_p(net.decide(prepared, part.context, part.current, part.mask), part.chosen)
        (found.view(2, -1, V).sum(1) * weight).sum().backward(retain_graph=True)
    assert torch.equal(routes.solutions(), solutions)
    for name, p in net.named_parameters():
        torch.testing.assert_close(p.grad, expected[name], rtol=1e-9, atol=1e-9)


def test_bad_starts(net: Any) -> None:
    for starts in (0, V + 1):
        with pytest.raises(NeurouteError, match="11 customers; give from 1 to 11"):
            multi_start(CVRP, net, instances(), starts)
    with pytest.raises(NeurouteError, match="needs about"):
        multi_start(CVRP, net, instances(), memory_gb=1e-6)
