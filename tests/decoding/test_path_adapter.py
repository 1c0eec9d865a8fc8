"""Networks of many starts in searches over paths: the decisions of `decide`, the same tours."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from networks import MULTI_START, make
from neuroute.decoding.decode import decode, improve, instances_per_batch
from neuroute.decoding.multi_start import multi_start
from neuroute.decoding.tsp import SEARCH, TSP, PathAdapter, TspBatch
from neuroute.problems.tsp import tour_length
from neuroute.specs.objects import Decoding

N = 25
NAMES = [
    "pomo",
    "elg",
    "pointerformer",
    *(name for name in MULTI_START if name.startswith("icam ") and "cvrp" not in name),
]


@pytest.fixture(params=NAMES)
def net(request: pytest.FixtureRequest) -> Any:
    return make(request.param, train_nodes=10)


def instances(count: int = 6, n: int = N) -> Tensor:
    return torch.rand(count, n, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(5))


def lengths(coords: Tensor, tours: Tensor) -> np.ndarray:
    return tour_length(coords.numpy(), tours.numpy())


@torch.no_grad()
def test_a_decision_on_what_is_left_is_the_one_on_all_nodes(net: Any) -> None:
    """In the middle of a tour that closes at node 7, in a plane of its own scale and on an instance of another size."""
    coords = 0.4 * instances(3, 17)
    visited, left = [7, 2, 11, 5], [0, 1, 3, 4, 6, 8, 9, 10, 12, 13, 14, 15, 16]
    closed = torch.zeros(3, 1, 17, dtype=torch.float64)
    closed[..., visited] = -torch.inf
    first, current = torch.full((3, 1), 7), torch.full((3, 1), 5)
    expected = net.decide(net.prepare(net.encode(coords)), first, current, closed)[:, 0, left]
    found = PathAdapter(net).decide(PathAdapter(net).encode(coords)[:, [5, *left, 7]])
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n", [4, N])
def test_greedy_paths_are_the_tours_from_node_0(net: Any, n: int) -> None:
    coords = instances(n=n)
    for same in ({"method": "rrc"}, {"method": "prc"}, {"method": "beam"}):
        assert torch.equal(decode("tsp", net, coords, Decoding(**same)), multi_start(TSP, net, coords, 1))


def test_a_beam_is_a_search_over_probabilities(net: Any) -> None:
    """Against a plain one that asks `decide` about all nodes."""
    coords, beam = instances(3, 9), 5
    assert torch.equal(decode("tsp", net, coords, Decoding(method="beam", beam=beam)), plain_beam(net, coords, beam))


@torch.no_grad()
def plain_beam(net: Any, coords: Tensor, beam: int) -> Tensor:
    found = []
    for one in coords:
        prepared, live = net.prepare(net.encode(one[None])), [(0.0, [0])]
        while len(live[0][1]) < len(one):
            wider = []
            for log_p, tour in live:
                closed = torch.zeros(1, 1, len(one), dtype=torch.float64)
                closed[..., tour] = -torch.inf
                logits = net.decide(prepared, torch.tensor([[0]]), torch.tensor([[tour[-1]]]), closed)[0, 0]
                each = logits.log_softmax(0)
                wider += [(log_p + float(each[j]), [*tour, j]) for j in range(len(one)) if j not in tour]
            live = sorted(wider, key=lambda pair: -pair[0])[:beam]
        tours = torch.tensor([tour for _, tour in live])
        found.append(tours[lengths(one.expand(len(tours), -1, -1), tours).argmin()])
    return torch.stack(found)


def test_a_sub_path_is_an_instance_of_its_own_size(net: Any) -> None:
    """The first iteration, by hand: the block alone is encoded, and ends where it ended."""
    coords = instances(4)
    begin = multi_start(TSP, net, coords, 1)
    seen = []

    class Watched(PathAdapter):
        def encode(self, coords: Tensor) -> Tensor:
            seen.append(coords.clone())
            return super().encode(coords)

    after = next(SEARCH.reconstruct(Watched(net), TspBatch(coords), begin, Decoding(method="rrc", iterations=1), 4.0))
    (block,) = seen
    with torch.inference_mode():
        prepared = net.prepare(net.encode(block))
        m, stops = block.shape[1], [torch.zeros(4, dtype=torch.int64)]
        closed = torch.zeros(4, 1, m, dtype=torch.float64)
        closed[..., [0, m - 1]] = -torch.inf
        for _ in range(m - 2):
            logits = net.decide(prepared, torch.full((4, 1), m - 1), stops[-1][:, None], closed)
            stops.append(logits[:, 0].argmax(-1))
            closed.scatter_(2, stops[-1][:, None, None], -torch.inf)
    new = block.gather(1, torch.stack([*stops, torch.full((4,), m - 1)], 1)[..., None].expand(-1, -1, 2))
    old, own = ((path[:, 1:] - path[:, :-1]).norm(dim=-1).sum(-1) for path in (block, new))
    kept = torch.where((own < old)[:, None, None], new, block)
    assert torch.equal(coords.gather(1, after[:, :m, None].expand(-1, -1, 2)), kept)


@pytest.mark.parametrize("method", [{"method": "beam", "beam": 4}, {"method": "rrc", "iterations": 5}])
def test_how_many_at_a_time_changes_nothing(net: Any, method: dict[str, Any]) -> None:
    coords = instances()
    whole = decode("tsp", net, coords, Decoding(**method, batch_size=6))
    assert torch.equal(decode("tsp", net, coords, Decoding(**method, batch_size=1)), whole)
    one = 4 * 16 * 24 * (N + 1) * method.get("beam", 1) / 1e9
    assert instances_per_batch(net, N, Decoding(**method), 4 * one) < 6
    assert torch.equal(decode("tsp", net, coords, Decoding(**method), 4 * one), whole)


def test_re_construction_may_start_from_the_best_of_many(net: Any) -> None:
    coords = instances()
    decoding = Decoding(starts="all", augment=True, milestones=(0,))
    ((_, tours, _),) = improve("tsp", net, coords, decoding)
    assert torch.equal(tours, multi_start(TSP, net, coords, augment=True))
