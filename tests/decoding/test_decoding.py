"""Greedy and beam search: valid, batched = single, cached = recomputed, beam 1 = greedy."""

import pytest
import torch

from neuroute.decoding.decode import decode
from neuroute.decoding.greedy import complete_paths, greedy_tours
from neuroute.decoding.prefixes import TourPrefixes, search_beams
from neuroute.decoding.tsp import TspBatch
from neuroute.networks.decoder_only import DecoderOnly
from neuroute.plan.objects import Decoding

N = 17


@pytest.fixture
def net() -> DecoderOnly:
    torch.manual_seed(3)
    net = DecoderOnly(3, 16, 4, train_nodes=10).double()
    for layer in net.layers:
        layer.alpha1.data.fill_(1.0)
        layer.alpha2.data.fill_(1.0)
    return net.eval()


@pytest.fixture
def coords() -> torch.Tensor:
    return torch.rand(6, N, 2, dtype=torch.float64)


def lengths(coords: torch.Tensor, tours: torch.Tensor) -> torch.Tensor:
    points = coords.gather(1, tours[..., None].expand(-1, -1, 2))
    return (points - points.roll(-1, 1)).norm(dim=-1).sum(-1)


def naive_greedy(net: DecoderOnly, coords: torch.Tensor) -> list[int]:
    """One instance, every state gathered anew from the list of unvisited nodes."""
    tour, left = [0], list(range(1, len(coords)))
    while left:
        rows = coords[[tour[-1], *left, 0]][None]
        tour.append(left.pop(int(net.decide(rows).argmax())))
    return tour


def test_greedy_equals_the_plain_loop(net: DecoderOnly, coords: torch.Tensor) -> None:
    tours = greedy_tours(net.decide, net.encode(coords))
    assert tours.tolist() == [naive_greedy(net, c) for c in coords]


def test_batched_equals_single(net: DecoderOnly, coords: torch.Tensor) -> None:
    for decoding in (Decoding(), Decoding(method="beam", beam=3), Decoding(method="rrc", iterations=8)):
        together = decode("tsp", net, coords, decoding)
        assert torch.equal(together, torch.cat([decode("tsp", net, c[None], decoding) for c in coords]))
        assert torch.equal(together, decode("tsp", net, coords, decoding.model_copy(update={"batch_size": 4})))


def test_tours_are_permutations(net: DecoderOnly, coords: torch.Tensor) -> None:
    for decoding in (Decoding(), Decoding(log_n=False), Decoding(method="beam", beam=5)):
        tours = decode("tsp", net, coords, decoding)
        assert torch.equal(tours.sort(1).values, torch.arange(N).expand(6, -1))
        assert (tours[:, 0] == 0).all()


def test_re_construct_never_worsens_a_tour(net: DecoderOnly, coords: torch.Tensor) -> None:
    before = lengths(coords, decode("tsp", net, coords, Decoding()))
    for iterations in (1, 5, 40):
        tours = decode("tsp", net, coords, Decoding(method="rrc", iterations=iterations))
        assert torch.equal(tours.sort(1).values, torch.arange(N).expand(6, -1))
        after = lengths(coords, tours)
        assert (after <= before + 1e-12).all()
        before = after
    assert (after < lengths(coords, decode("tsp", net, coords, Decoding())) - 1e-3).any()


def test_beam_one_is_greedy(net: DecoderOnly, coords: torch.Tensor) -> None:
    found, length = search_beams(TourPrefixes(net.decide, coords), TspBatch(coords).lengths, 1)
    assert torch.equal(found, greedy_tours(net.decide, net.encode(coords)))
    torch.testing.assert_close(length, lengths(coords, found))


def test_wide_beam_finds_the_best_of_all_tours() -> None:
    """A beam that holds every tour of 6 nodes returns the optimum, whatever the network says."""
    from itertools import permutations

    torch.manual_seed(0)
    net = DecoderOnly(1, 8, 2).double()
    coords = torch.rand(4, 6, 2, dtype=torch.float64)
    tours, _ = search_beams(TourPrefixes(net.decide, coords), TspBatch(coords).lengths, 120)
    every = torch.tensor([(0, *p) for p in permutations(range(1, 6))])
    for c, tour in zip(coords, tours, strict=True):
        best = lengths(c.expand(120, -1, -1), every).min()
        torch.testing.assert_close(lengths(c[None], tour[None])[0], best)


def test_paths_keep_their_ends(net: DecoderOnly, coords: torch.Tensor) -> None:
    order = complete_paths(net.decide, coords.clone())
    assert (order[:, 0] == 0).all()
    assert (order[:, -1] == N - 1).all()
    assert torch.equal(order.sort(1).values, torch.arange(N).expand(6, -1))


def test_smallest_instances() -> None:
    net = DecoderOnly(1, 8, 1)
    for n in (4, 5):
        assert decode("tsp", net, torch.rand(2, n, 2), Decoding()).shape == (2, n)
        assert decode("tsp", net, torch.rand(2, n, 2), Decoding(method="beam", beam=64)).shape == (2, n)
