"""CVRP decoding: always feasible, batched = single, re-construct never worse, equal to the plain loop."""

import numpy as np
import pytest
import torch
from refusals import one_line

from neuroute.datasets.streams import cvrp_dataset
from neuroute.decoding.cvrp import CvrpBatch
from neuroute.decoding.cvrp_paths import complete_routes
from neuroute.decoding.decode import decode, improve
from neuroute.networks.lehd import LehdCvrp
from neuroute.plan.objects import Dataset, Decoding
from neuroute.problems.cvrp import cost, is_feasible
from neuroute.problems.vrp import Vrp, to_routes

pytestmark = pytest.mark.usefixtures("one_thread")

V = 13
RRC = Decoding(method="rrc", iterations=12)


@pytest.fixture
def net() -> LehdCvrp:
    torch.manual_seed(2)
    return LehdCvrp(depth=2, width=16, heads=4, feed_forward=24, train_nodes=10).double().eval()


@pytest.fixture
def batch() -> Vrp:
    found = cvrp_dataset(Dataset(problem="cvrp", n=V, count=7))
    return Vrp(found.coords.astype(np.float64), found.demand, found.capacity)


def test_logits_that_do_not_tell_the_ways_apart_are_refused(net: LehdCvrp, batch: Vrp) -> None:
    class OneWay(LehdCvrp):
        def decide(self, *state: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
            return super().decide(*state)[..., 0]

    net.__class__ = OneWay
    with one_line(r"logits \(7, 13\); \(batch, available, 2\)"):
        decode("cvrp", net, batch, Decoding())


def plain_greedy(net: LehdCvrp, batch: Vrp, row: int) -> list[list[int]]:
    """One instance, every state gathered anew from the list of unvisited customers."""
    one = CvrpBatch.of(batch[row : row + 1], torch.device("cpu"))
    nodes = net.encode(one.coords, one.share)
    capacity = left = int(batch.capacity[row])
    current, waiting, routes = 0, list(range(1, V + 1)), []
    while waiting:
        logits = net.decide(nodes[:, [current, *waiting, 0]], torch.tensor([left / capacity]).double())[0]
        place, via = divmod(int(logits.flatten().argmax()), 2)
        current = waiting.pop(place)
        need = int(batch.demand[row, current])
        if via or need > left or not routes:
            routes, left = [*routes, []], capacity
        routes[-1].append(current)
        left -= need
    return routes


def test_greedy_equals_the_plain_loop(net: LehdCvrp, batch: Vrp) -> None:
    found = decode("cvrp", net, batch, Decoding()).numpy()
    assert [to_routes(s) for s in found] == [plain_greedy(net, batch, row) for row in range(len(batch))]


@pytest.mark.usefixtures("rounded_lengths")
@pytest.mark.parametrize("decoding", [Decoding(), RRC, Decoding(log_n=False)])
def test_solutions_are_feasible_and_do_not_depend_on_the_batch(net: LehdCvrp, batch: Vrp, decoding: Decoding) -> None:
    together = decode("cvrp", net, batch, decoding)
    assert (together.dtype, together.shape) == (torch.int64, (7, 2, V))
    assert is_feasible(batch, together.numpy()).all()
    for size in (1, 3):
        assert torch.equal(together, decode("cvrp", net, batch, decoding.model_copy(update={"batch_size": size})))
    assert torch.equal(together[:4], decode("cvrp", net, batch[:4], decoding))


def test_re_construct_is_never_worse_and_gets_better(net: LehdCvrp, batch: Vrp) -> None:
    milestones = tuple(range(31))
    decoding = Decoding(method="rrc", iterations=30, milestones=milestones)
    found = improve("cvrp", net, batch, decoding)
    assert [m for m, _, _ in found] == list(milestones)
    assert torch.equal(found[0][1], decode("cvrp", net, batch, Decoding()))
    lengths = np.stack([cost(batch, s.numpy()) for _, s, _ in found])
    assert all(is_feasible(batch, s.numpy()).all() for _, s, _ in found)
    assert (np.diff(lengths, axis=0) <= 1e-12).all()
    assert (lengths[-1] < lengths[0] - 1e-3).any()
    seconds = [s for _, _, s in found]
    assert seconds == sorted(seconds)


def fixed(logit: torch.Tensor):
    """Prefers candidates by a number in their rows, always in the way of the larger logit."""
    return lambda rows, left: rows[:, 1:-1] + logit


def test_a_customer_that_does_not_fit_is_reached_through_the_depot() -> None:
    rows = torch.tensor([[9.0, 1, 4, 3, 2, 9]])[..., None]
    demand = torch.tensor([[0, 2, 3, 3, 4, 0]])
    seen = []

    def decide(rows: torch.Tensor, left: torch.Tensor) -> torch.Tensor:
        seen.append(round(float(left) * 7))
        return fixed(torch.tensor([1.0, 0.0]))(rows, left)

    order, via = complete_routes(decide, rows, demand, torch.tensor([7]), torch.tensor([5]))
    assert order.tolist() == [[0, 2, 3, 4, 1]]
    assert via.tolist() == [[0, 0, 1, 0, 1]]  # 5 - 3, then 3 > 2: 7 - 3, 4 - 4, then 2 > 0
    assert seen == [5, 2, 4, 0]


def test_a_return_that_is_chosen_refills_even_if_the_customer_fits() -> None:
    rows = torch.tensor([[9.0, 3, 2, 1, 9]])[..., None]
    demand = torch.tensor([[0, 1, 1, 1, 0]])
    order, via = complete_routes(fixed(torch.tensor([0.0, 1.0])), rows, demand, torch.tensor([7]), torch.tensor([7]))
    assert (order.tolist(), via.tolist()) == ([[0, 1, 2, 3]], [[0, 1, 1, 1]])


@pytest.mark.parametrize("n", [1, 2, 4])
def test_smallest_instances(net: LehdCvrp, n: int) -> None:
    few = cvrp_dataset(Dataset(problem="cvrp", n=n, count=3))
    assert is_feasible(few, decode("cvrp", net.float(), few, Decoding(method="rrc", iterations=3)).numpy()).all()
