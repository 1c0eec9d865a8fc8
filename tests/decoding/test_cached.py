"""Decoding with a network that reads pairs of nodes: kept or computed anew, stretched, repeated, in bounded memory."""

import math
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.decoding.construct import construct
from neuroute.decoding.decode import decode, improve
from neuroute.decoding.greedy import complete_paths, greedy_tours
from neuroute.decoding.memory import batch_size_for, pair_floats
from neuroute.decoding.prefixes import TourPrefixes, search_beams
from neuroute.decoding.tsp import TspBatch
from neuroute.networks.bq import Bq
from neuroute.networks.pens import Pens
from neuroute.plan.objects import Decoding

N = 40
POSITIONS = ("alibi", "rope", "both", "coordinates")


def network(positions: str, dtype: torch.dtype = torch.float64) -> Pens:
    torch.manual_seed(4)
    return Pens(2, 32, 4, 48, positions, train_nodes=20).to(dtype).eval()  # type: ignore[arg-type]


@pytest.fixture
def coords() -> Tensor:
    return torch.rand(3, N, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(8))


def lengths(coords: Tensor, tours: Tensor) -> Tensor:
    points = coords.gather(1, tours[..., None].expand(-1, -1, 2))
    return (points - points.roll(-1, 1)).norm(dim=-1).sum(-1)


def naive_greedy(net: Pens, coords: Tensor, place: int) -> list[int]:
    """The instance at a place of its set, every decision on rows gathered anew."""
    net.draw, net.first = 0, place
    rows = net.encode(coords[None])[0]
    tour, left = [0], list(range(1, len(coords)))
    while left:
        seen = rows[[tour[-1], *left, 0]][None]
        tour.append(left.pop(int(net.decide(seen).argmax())))
    return tour


# -- kept or computed anew ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("cached", [True, False])
def test_greedy_equals_the_plain_loop(coords: Tensor, positions: str, cached: bool) -> None:
    net = network(positions)
    with torch.inference_mode():
        expected = [naive_greedy(net, c, i) for i, c in enumerate(coords)]
    assert decode("tsp", net, coords, Decoding(cached=cached, batch_size=3)).tolist() == expected
    if cached:
        assert construct("tsp", net, coords).tolist() == expected  # what training validates with


@pytest.mark.parametrize("positions", ["alibi", "both"])
def test_whatever_is_kept_the_tours_are_the_same(coords: Tensor, positions: str) -> None:
    """All heads' biases, the distances, or nothing, as the memory allows."""
    net = network(positions)
    rows = net.encode(coords)
    channels = []

    def decide(rows: Tensor, pairs: Tensor | None = None) -> Tensor:
        return net.decide(rows, pairs=pairs)

    with torch.inference_mode():
        expected = greedy_tours(decide, rows)
        for floats in (1 << 24, 3 * 4 * (N + 1) ** 2 - 1, 3 * (N + 1) ** 2 - 1):

            def pairs_of(rows: Tensor, floats: int = floats) -> Tensor | None:
                kept = net.pairs(rows, floats)
                channels.append(0 if kept is None else kept.shape[1])
                return kept

            assert torch.equal(greedy_tours(decide, rows, pairs_of), expected)
    assert channels == [4, 1, 0]


def test_pairs_are_computed_once_when_they_are_kept(coords: Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    net, asked = network("alibi"), []
    pairs = Pens.pairs

    def counted(self: Pens, rows: Tensor, floats: int | None = None) -> Tensor | None:
        asked.append(rows.shape[1])
        return pairs(self, rows, floats)

    monkeypatch.setattr(Pens, "pairs", counted)
    decode("tsp", net, coords, Decoding(batch_size=3))
    assert asked == [N + 1]
    asked.clear()
    decode("tsp", net, coords, Decoding(batch_size=3, cached=False))
    assert asked == list(range(N + 1, 3, -1))


def test_pairs_are_swapped_along_with_the_rows(coords: Tensor) -> None:
    """At every decision the kept pairs are those of the rows at hand."""
    net = network("alibi")
    rows = torch.cat([net.encode(coords), net.encode(coords)[:, :1]], dim=1)
    steps = 0

    def watched(rows: Tensor, pairs: Tensor) -> Tensor:
        nonlocal steps
        steps += 1
        torch.testing.assert_close(pairs, net.pairs(rows), rtol=1e-14, atol=0)
        return net.decide(rows, pairs=pairs)

    complete_paths(watched, rows.clone(), net.pairs(rows))
    assert steps == N - 2


def test_what_is_kept_never_takes_more_than_a_quarter_of_the_memory() -> None:
    net = network("alibi")
    for nodes, memory_gb in ((100, 0.01), (100, 1.0), (1000, 0.05), (5000, 2.0)):
        size = batch_size_for(net, nodes, Decoding(), memory_gb)
        rows = torch.rand(1, 1, 34).expand(size, nodes + 1, 34)
        floats = size * (nodes + 1) ** 2 * net.heads
        assert size == 1 or floats <= pair_floats(memory_gb)
        if size * (nodes + 1) ** 2 > pair_floats(memory_gb):
            assert net.pairs(rows, pair_floats(memory_gb)) is None
    assert pair_floats(4.0) * 4 == 1e9  # bytes of float32


# -- searches -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("positions", POSITIONS)
def test_a_beam_of_one_is_greedy(coords: Tensor, positions: str) -> None:
    net = network(positions)
    greedy = decode("tsp", net, coords, Decoding())
    prefixes = TourPrefixes(net.decide, net.encode(coords))
    assert torch.equal(search_beams(prefixes, TspBatch(coords).lengths, 1)[0], greedy)
    assert torch.equal(decode("tsp", net, coords, Decoding(method="beam", beam=1)), greedy)


@pytest.mark.slow
@pytest.mark.parametrize("positions", POSITIONS)
def test_every_way_to_decode_gives_the_same_tours_in_any_batch(coords: Tensor, positions: str) -> None:
    net, coords = network(positions), coords[:, :16]
    rrc, beam = Decoding(method="rrc", iterations=6), Decoding(method="beam", beam=3)
    for decoding in (Decoding(draw=2), Decoding(rescale=1.5, cached=False), beam, rrc):
        tours = decode("tsp", net, coords, decoding)
        assert torch.equal(tours.sort(1).values, torch.arange(16).expand(3, -1)), decoding.id
        for size in (1, 2, 3):  # embeddings follow an instance's place in its set, whatever the batch
            split = decode("tsp", net, coords, decoding.model_copy(update={"batch_size": size}))
            assert torch.equal(split, tours), decoding.id


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("rescale", [1.0, 1.7])
def test_re_construct_never_worsens_a_tour(coords: Tensor, positions: str, rescale: float) -> None:
    coords = coords[:, :20]
    decoding = Decoding(method="rrc", iterations=12, milestones=(0, 1, 5, 12), rescale=rescale)
    found = improve("tsp", network(positions), coords, decoding)
    measured = [lengths(coords, tours) for _, tours, _ in found]
    assert [iterations for iterations, _, _ in found] == [0, 1, 5, 12]
    for before, after in pairwise(measured):
        assert (after <= before + 1e-12).all()
    assert (measured[-1] < measured[0] - 1e-3).any()


# -- stretched, repeated ------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("net", [network("alibi"), network("rope"), network("coordinates"), Bq(2, 32, 4, 48).double()])
@pytest.mark.parametrize("how", [{}, {"method": "rrc", "iterations": 5}, {"method": "beam", "beam": 3}])
def test_rescaling_stretches_what_the_network_sees_alone(net: Pens | Bq, how: dict[str, Any], coords: Tensor) -> None:
    """Tours are those of the stretched instance; searches compare lengths, which a power of two leaves alike."""
    for layer in net.layers:
        if hasattr(layer, "alpha1"):
            layer.alpha1.data.fill_(0.5)
            layer.alpha2.data.fill_(0.5)
    found = decode("tsp", net, coords, Decoding(**how, rescale=2.0))
    assert torch.equal(found, decode("tsp", net, 2 * coords, Decoding(**how)))
    assert not torch.equal(found, decode("tsp", net, coords, Decoding(**how)))


@pytest.mark.parametrize("factor", [0, 0.0, -1.5, math.nan, math.inf, "largest"])
def test_what_is_no_factor_is_refused(factor: object) -> None:
    with pytest.raises(ValidationError, match="rescale"):
        Decoding(rescale=factor)  # type: ignore[arg-type]


def test_the_best_factor_has_to_be_known(coords: Tensor) -> None:
    with pytest.raises(ValueError, match="looked up"):
        decode("tsp", network("alibi"), coords, Decoding(rescale="best"))


@pytest.mark.parametrize("positions", POSITIONS)
def test_draws_give_other_tours_where_embeddings_are_random(coords: Tensor, positions: str) -> None:
    net = network(positions)
    first, second, again = (decode("tsp", net, coords, Decoding(draw=draw)) for draw in (0, 1, 0))
    assert torch.equal(first, again)
    assert torch.equal(first, second) == (positions == "coordinates")


# -- the entropy scaling factor -----------------------------------------------------------------------------------


def test_esf_follows_what_is_left(coords: Tensor) -> None:
    """BQ + ESF: at each decision attention is multiplied by log(k) / log(n_train), k the rows of the decision."""
    torch.manual_seed(0)
    net = Bq(2, 32, 4, 48, train_nodes=20).double().eval()
    for layer in net.layers:
        layer.alpha1.data.fill_(0.7)
        layer.alpha2.data.fill_(-0.4)
        layer.qkv.weight.data.mul_(4)  # scores large enough for their factor to matter
    expected = []
    with torch.inference_mode():
        for c in coords:
            tour, left = [0], list(range(1, N))
            while left:
                rows = c[[tour[-1], *left, 0]][None]
                scores = net.decide(rows, math.log(len(left) + 2) / math.log(20))
                tour.append(left.pop(int(scores.argmax())))
            expected.append(tour)
    found = decode("tsp", net, coords, Decoding(esf=True))
    assert found.tolist() == expected
    assert not torch.equal(found, decode("tsp", net, coords, Decoding()))


# -- memory -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("positions", POSITIONS)
def test_an_instance_above_the_memory_budget_is_one_clear_line(coords: Tensor, positions: str) -> None:
    with pytest.raises(NeurouteError, match=f"instance of {N} nodes needs about .* GB.*memory_gb") as refused:
        decode("tsp", network(positions), coords, Decoding(), memory_gb=1e-6)
    assert "\n" not in str(refused.value)
    enough = float(str(refused.value).split("needs about ")[1].split()[0])
    assert decode("tsp", network(positions), coords, Decoding(), memory_gb=1.05 * enough).shape == (
        3,
        N,
    )  # what it says suffices


def test_ten_thousand_nodes_keep_distances_alone() -> None:
    """With the default budget, the published shape's twelve biases of 10,001^2 are too many, the distances are not."""
    net = Pens()
    assert batch_size_for(net, 10_000, Decoding(), 4.0) == 1
    assert 10_001**2 <= pair_floats(4.0) < 12 * 10_001**2
    few = partial(net.pairs, torch.rand(1, 101, 194))
    assert [p is not None and p.shape[1] for p in (few(12 * 101**2), few(12 * 101**2 - 1), few(101**2 - 1))] == [
        12,
        1,
        False,
    ]
