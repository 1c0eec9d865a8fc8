"""Greedy and beam search of the TSP; pairs of nodes kept or computed anew, stretched, bounded memory."""

import math
from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from networks import make
from neuroute.core.errors import NeurouteError
from neuroute.decoding.decode import construct, decode
from neuroute.decoding.greedy import greedy_tours
from neuroute.decoding.memory import batch_size_for, pair_floats
from neuroute.decoding.sampling import TourPrefixes, search_beams
from neuroute.decoding.tsp import TspBatch
from neuroute.networks.decoder_only import DecoderOnly
from neuroute.problems.tsp import tour_length
from neuroute.specs.objects import Decoding

N = 40
POSITIONS = ("alibi", "rope", "both", "coordinates")
NETWORKS = ("decoder-only", *(f"pens {positions}" for positions in POSITIONS))


def network(name: str) -> Any:
    return make(name, train_nodes=10)


@pytest.fixture
def coords() -> Tensor:
    return torch.rand(3, N, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(8))


def lengths(coords: Tensor, tours: Tensor) -> np.ndarray:
    return tour_length(coords.numpy(), tours.numpy())


def naive_greedy(net: Any, coords: Tensor, place: int, scale_of: Callable[[int], float] | None = None) -> list[int]:
    """The instance at a place of its set, every decision on rows gathered anew; scale_of: of so many rows."""
    net.draw, net.first = 0, place
    rows, scale_of = net.encode(coords[None])[0], scale_of or (lambda _: net.attention_scale(len(coords)))
    tour, left = [0], list(range(1, len(coords)))
    while left:
        seen = rows[[tour[-1], *left, 0]][None]
        tour.append(left.pop(int(net.decide(seen, scale_of(seen.shape[1])).argmax())))
    return tour


# -- kept or computed anew ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("cached", [True, False])
def test_greedy_equals_the_plain_loop(coords: Tensor, name: str, cached: bool) -> None:
    net = network(name)
    with torch.inference_mode():
        expected = [naive_greedy(net, c, i) for i, c in enumerate(coords)]
    assert decode("tsp", net, coords, Decoding(cached=cached, batch_size=3)).tolist() == expected
    if cached:
        assert construct("tsp", net, coords).tolist() == expected  # what training validates with


@pytest.mark.parametrize("name", ["pens alibi", "pens both"])
def test_whatever_is_kept_the_tours_are_the_same(coords: Tensor, name: str) -> None:
    """All heads' biases, the distances, or nothing, as the memory allows."""
    net = network(name)
    rows = net.encode(coords)
    channels = []

    def decide(rows: Tensor, pairs: Tensor | None = None) -> Tensor:
        return net.decide(rows, pairs=pairs)

    with torch.inference_mode():
        expected = greedy_tours(decide, rows)
        for floats in (1 << 24, 3 * net.heads * (N + 1) ** 2 - 1, 3 * (N + 1) ** 2 - 1):

            def pairs_of(rows: Tensor, floats: int = floats) -> Tensor | None:
                kept = net.pairs(rows, floats)
                channels.append(0 if kept is None else kept.shape[1])
                return kept

            assert torch.equal(greedy_tours(decide, rows, pairs_of), expected)
    assert channels == [net.heads, 1, 0]


def test_what_is_kept_never_takes_more_than_a_quarter_of_the_memory() -> None:
    net, without = network("pens alibi"), []
    for nodes, memory_gb in ((100, 0.01), (100, 1.0), (1000, 0.05), (1000, 0.01), (5000, 2.0)):
        size = batch_size_for(net, nodes, Decoding(), memory_gb)
        rows = torch.rand(1, 1, 2 + net.width).expand(size, nodes + 1, -1)
        floats = size * (nodes + 1) ** 2 * net.heads
        assert size == 1 or floats <= pair_floats(memory_gb)
        if size * (nodes + 1) ** 2 > pair_floats(memory_gb):
            assert net.pairs(rows, pair_floats(memory_gb)) is None
            without.append((nodes, memory_gb))
    assert without == [(1000, 0.01)]
    assert pair_floats(4.0) * 4 == 1e9  # bytes of float32


# -- searches -----------------------------------------------------------------------------------------------------


def test_a_wide_beam_finds_the_best_of_all_tours() -> None:
    """A beam that holds every tour of 6 nodes returns the optimum, whatever the network says."""
    net, coords = network("decoder-only"), torch.rand(4, 6, 2, dtype=torch.float64)
    tours, _ = search_beams(TourPrefixes(net.decide, coords), TspBatch(coords).lengths, 120)
    every = torch.tensor([(0, *rest) for rest in permutations(range(1, 6))])
    best = [lengths(one, every).min() for one in coords]
    np.testing.assert_allclose(lengths(coords, tours), best)


@pytest.mark.parametrize("n", [4, 5])
def test_smallest_instances(n: int) -> None:
    for decoding in (Decoding(), Decoding(method="beam", beam=64)):
        tours = decode("tsp", network("decoder-only"), torch.rand(2, n, 2).double(), decoding)
        assert torch.equal(tours.sort(1).values, torch.arange(n).expand(2, -1))


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_every_way_to_decode_gives_the_same_tours_in_any_batch(coords: Tensor, name: str) -> None:
    net, coords = network(name), coords[:, :16]
    rrc, beam = Decoding(method="rrc", iterations=6), Decoding(method="beam", beam=3)
    for decoding in (Decoding(draw=2), Decoding(rescale=1.5, cached=False), Decoding(log_n=False), beam, rrc):
        tours = decode("tsp", net, coords, decoding)
        assert torch.equal(tours.sort(1).values, torch.arange(16).expand(3, -1)), decoding.name
        for size in (1, 2, 3):  # embeddings follow an instance's place in its set, whatever the batch
            split = decode("tsp", net, coords, decoding.model_copy(update={"batch_size": size}))
            assert torch.equal(split, tours), decoding.name


# -- stretched, repeated ------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pens alibi", "pens rope", "pens coordinates", "bq"])
@pytest.mark.parametrize("how", [{}, {"method": "rrc", "iterations": 5}, {"method": "beam", "beam": 3}])
def test_rescaling_stretches_what_the_network_sees_alone(name: str, how: dict[str, Any], coords: Tensor) -> None:
    """Tours are those of the stretched instance; searches compare lengths, which a power of two leaves alike."""
    net = network(name)
    found = decode("tsp", net, coords, Decoding(**how, rescale=2.0))
    assert torch.equal(found, decode("tsp", net, 2 * coords, Decoding(**how)))
    assert not torch.equal(found, decode("tsp", net, coords, Decoding(**how)))


@pytest.mark.parametrize("positions", POSITIONS)
def test_draws_give_other_tours_where_embeddings_are_random(coords: Tensor, positions: str) -> None:
    net = network(f"pens {positions}")
    first, second, again = (decode("tsp", net, coords, Decoding(draw=draw)) for draw in (0, 1, 0))
    assert torch.equal(first, again)
    assert torch.equal(first, second) == (positions == "coordinates")


# -- the entropy scaling factor -----------------------------------------------------------------------------------


def test_esf_follows_what_is_left(coords: Tensor) -> None:
    """BQ + ESF: at each decision attention is multiplied by log(k) / log(n_train), k the rows of the decision."""
    net = make("bq", train_nodes=20)
    for layer in net.layers:
        layer.qkv.weight.data.mul_(4)  # scores large enough for their factor to matter
    with torch.inference_mode():
        expected = [naive_greedy(net, c, i, lambda k: math.log(k) / math.log(20)) for i, c in enumerate(coords)]
    found = decode("tsp", net, coords, Decoding(esf=True))
    assert found.tolist() == expected
    assert not torch.equal(found, decode("tsp", net, coords, Decoding()))


# -- memory -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NETWORKS[1:])
def test_an_instance_above_the_memory_budget_is_one_clear_line(coords: Tensor, name: str) -> None:
    net = network(name)
    with pytest.raises(NeurouteError, match=f"instance of {N} nodes needs about .* GB.*memory_gb") as refused:
        decode("tsp", net, coords, Decoding(), memory_gb=1e-6)
    assert "\n" not in str(refused.value)
    enough = float(str(refused.value).split("needs about ")[1].split()[0])
    assert len(decode("tsp", net, coords, Decoding(), memory_gb=1.05 * enough)) == 3  # it suffices


class Undefined(DecoderOnly):
    """Divides by nothing in its third decision."""

    def decide(self, rows: Tensor, *more: Any) -> Tensor:
        scores = super().decide(rows, *more)
        return torch.where(torch.arange(scores.shape[1]) == 1, torch.nan, scores) if rows.shape[1] == N - 1 else scores


@pytest.mark.parametrize("how", [{}, {"method": "beam", "beam": 3}, {"method": "rrc", "iterations": 1}])
def test_scores_that_are_no_numbers_are_refused(coords: Tensor, how: dict[str, Any]) -> None:
    net = Undefined(1, 16, 2, train_nodes=10).eval()
    with pytest.raises(NeurouteError, match="scores are no numbers"):
        decode("tsp", net, coords.float().numpy(), Decoding.model_validate(how))


def own_way(net: Any, batch: TspBatch, decoding: Decoding, memory_gb: float, first: int) -> Any:
    return net.returned


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (np.zeros((3, N), dtype=np.int64), "returned ndarray"),
        (torch.zeros(3, N), r"returned torch.float32 of shape \(3, 40\)"),
        (torch.zeros(1, N, dtype=torch.int64), r"an int64 tensor \(3, ...\)"),
        (torch.arange(N).repeat(3, 1) + 1, "of no node; there are 0..39"),
    ],
)
def test_an_own_way_that_returns_no_solutions_is_named(coords: Tensor, returned: Any, said: str) -> None:
    net: Any = network("decoder-only").float()
    net.returned = returned
    with pytest.raises(NeurouteError, match=f"test_decoding:own_way.*{said}"):
        decode("tsp", net, coords.float().numpy(), Decoding(method="test_decoding:own_way"))
