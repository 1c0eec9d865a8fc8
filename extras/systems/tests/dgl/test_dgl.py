"""DGL: its running statistics, and instances at the edge."""

from itertools import permutations

import numpy as np
import pytest
import torch
from torch import Tensor

from networks import make
from neuroute.decoding.decode import decode
from neuroute.decoding.sampling import TourPrefixes
from neuroute.specs.objects import Decoding
from neuroute_systems.dgl import network as dgl
from neuroute_systems.dgl.network import Dgl

pytestmark = pytest.mark.usefixtures("one_thread")


def rows_of(net: Dgl, coords: Tensor, walked: int) -> Tensor:
    """Rows of a tour through all nodes in their order, at stop number `walked`."""
    rows = net.encode(coords)
    rows = torch.cat([rows, rows[:, :1]], dim=1)
    for stop in range(walked + 1):
        net.arrive(rows[:, stop:])
    return rows[:, walked:]


@pytest.mark.parametrize("walked", [0, 1, 150, 396, 397])
def test_means_stay_exact_and_variances_are_never_too_small(walked: int) -> None:
    """float32 coordinates, 400 nodes, down to one that is left."""
    net, coords = make("dgl"), torch.rand(2, 400, 2, generator=torch.Generator().manual_seed(0))
    rows = rows_of(net, coords, walked)
    open_ = coords[:, walked + 1 :].double()
    apart = torch.cdist(coords[:, walked:].double(), open_)
    torch.testing.assert_close(rows[:, :-1, 2], apart.mean(2), rtol=0, atol=1e-12)
    assert (rows[:, :-1, 3] >= apart.var(2, correction=0) - 1e-12).all()
    assert (rows[..., 4] == 399 - walked).all()


def test_the_first_statistics_are_those_of_all_distances(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many are there at a time."""
    coords = torch.rand(3, 17, 2, dtype=torch.float64)
    whole = make("dgl").encode(coords)
    apart = torch.cdist(coords, coords)
    torch.testing.assert_close(whole[..., 2], apart.mean(2))
    torch.testing.assert_close(whole[..., 3], apart.var(2, correction=0))
    monkeypatch.setattr(dgl, "PART", 100)
    torch.testing.assert_close(make("dgl").encode(coords), whole, rtol=0, atol=1e-15)


def test_where_an_instance_lies_and_how_large_it_is_does_not_matter() -> None:
    net, coords = make("dgl near"), torch.rand(4, 20, 2, dtype=torch.float64)
    expected = net.decide(rows_of(net, coords, 3))
    moved = net.decide(rows_of(net, 40 * coords + torch.tensor([7.0, -3.0]), 3))
    torch.testing.assert_close(moved, expected, rtol=1e-5, atol=1e-5)  # 1e-7 is added to the distance to the first node


@pytest.mark.parametrize("n", [4, 5, 9])
def test_few_nodes_and_coincident_ones(n: int) -> None:
    net, points = make("dgl"), np.random.default_rng(1).random((3, n, 2))
    points[1, 1] = points[1, 0]
    points[2, 1:3] = points[2, 3]
    for how in (Decoding(), Decoding(method="beam", beam=3), Decoding(method="rrc", iterations=2)):
        tours = decode("tsp", net, points, how)
        assert torch.equal(tours.sort(dim=1).values, torch.arange(n).expand(3, n))


def test_a_beam_remembers_for_each_partial_tour() -> None:
    """As wide as there are tours of six nodes: the shortest is found, and its probability is that of its walk."""

    net, coords = make("dgl"), torch.rand(2, 6, 2, dtype=torch.float64)
    prefixes, log_p = TourPrefixes(net.decide, net.encode(coords), arrive=net.arrive), torch.zeros(2, 1).double()
    for _ in range(prefixes.decisions):
        log_p, pairs = (log_p[..., None] + prefixes.log_p()).flatten(1).sort(dim=1, descending=True)
        options = prefixes.order.shape[2] - prefixes.step - 2
        prefixes.extend(pairs // options, pairs % options)
    assert {tuple(tour) for tour in prefixes.moves[0].tolist()} == {(0, *rest) for rest in permutations(range(1, 6))}
    for tour, found in zip(prefixes.moves[1].tolist(), log_p[1], strict=True):
        chance = torch.zeros(()).double()
        for step in range(prefixes.decisions):
            rows = rows_of(net, coords[1:, tour], step)
            chance = chance + torch.log_softmax(net.decide(rows)[0], dim=0)[0]
        torch.testing.assert_close(found, chance.detach(), rtol=1e-9, atol=1e-9)
