"""PENS: formulas, and that neither padding nor parts change a decision."""

import math

import pytest
import torch
from torch import Tensor

from networks import make
from neuroute.networks.pens import Pens
from pens_by_the_book import decision as by_the_book

POSITIONS = ("alibi", "rope", "both", "coordinates")
INITIAL = ("gaussian", "zero")


def paths(batch: int = 4, rows: int = 13) -> Tensor:
    return torch.rand(batch, rows, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(5))


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("initial", INITIAL)
@pytest.mark.parametrize("projection", [False, True])
@pytest.mark.parametrize("scale", [1.0, 1.3])
def test_equals_the_formulas(positions: str, initial: str, projection: bool, scale: float) -> None:
    net, coords = make(f"pens {positions}", initial=initial, output_projection=projection), paths(3, 9)
    noise = torch.randn(3, 9, 24, dtype=torch.float64)
    seen = noise if initial == "gaussian" else torch.zeros_like(noise)
    with torch.no_grad():
        found = net.decide(net.encode(coords, noise), scale)
        expected = [by_the_book(net, c, s, positions, scale)[0] for c, s in zip(coords, seen, strict=True)]
    torch.testing.assert_close(found, torch.stack(expected), rtol=1e-10, atol=1e-10)


def test_embeddings_follow_the_draw_and_the_place_alone() -> None:
    """An instance has embeddings of its own: one bad draw for all would spoil a whole test set."""
    net, coords = make("pens rope"), paths(5)

    def encoded(draw: int, part: Tensor, place: int = 0) -> Tensor:
        net.draw, net.first = draw, place
        return net.encode(part)

    first = encoded(3, coords)
    torch.manual_seed(99)  # torch's own state has no say
    assert torch.equal(encoded(3, coords), first)
    assert torch.equal(encoded(3, coords[2:3], place=2), first[2:3])  # nor have other instances
    assert (first[0, :, 10:] != first[1, :, 10:]).all()
    assert torch.equal(encoded(4, coords)[..., :10], first[..., :10])  # coordinates and rotation
    assert (encoded(4, coords)[..., 10:] != first[..., 10:]).all()


def test_no_two_draws_or_instances_share_embeddings() -> None:
    net, drawn = make("pens alibi"), []
    for net.draw in range(6):
        drawn.append(net.encode(torch.zeros(4, 7, 2))[..., 2:].flatten(1))
    vectors = torch.cat(drawn)
    assert len(vectors.unique(dim=0)) == 24
    assert len(vectors.unique()) > 0.99 * vectors.numel()


# -- what may not matter ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("initial", INITIAL)
def test_rows_that_are_not_there_change_nothing(positions: str, initial: str) -> None:
    net, coords, lengths = make(f"pens {positions}", initial=initial), paths(5, 13), torch.tensor([13, 12, 9, 5, 4])
    noise = torch.randn(5, 13, 24, dtype=torch.float64)
    together = net.decide(net.encode(coords, noise), lengths=lengths)
    for i, n in enumerate(lengths.tolist()):
        there = [*range(n - 1), 12]  # the last row is the destination
        alone = net.decide(net.encode(coords[i : i + 1, there], noise[i : i + 1, there]))[0]
        torch.testing.assert_close(together[i, : n - 2], alone, rtol=1e-10, atol=1e-10)
        assert (together[i, n - 2 :] == -math.inf).all()


@pytest.mark.parametrize("positions", ["alibi", "both"])
@pytest.mark.parametrize("padded", [False, True])
def test_chunked_equals_unchunked(monkeypatch: pytest.MonkeyPatch, positions: str, padded: bool) -> None:
    """The bias as a whole, from distances or from coordinates; all queries at once, some, or one at a time."""
    net, coords = make(f"pens {positions}"), paths()
    rows, lengths = net.encode(coords), torch.tensor([13, 11, 8, 5]) if padded else None
    expected = net.decide(rows, lengths=lengths)
    many, few, none = net.pairs(rows, floats=1 << 20), net.pairs(rows, floats=4 * 13**2), net.pairs(rows, floats=10)
    assert (many.shape, few.shape, none) == ((4, 3, 13, 13), (4, 1, 13, 13), None)
    for dense, part in ((1 << 26, 1 << 24), (0, 1 << 24), (0, 4 * 3 * 13 * 5), (0, 1)):
        monkeypatch.setattr(Pens, "DENSE", dense)
        monkeypatch.setattr(Pens, "PART", part)
        for pairs in (many, few, none):
            found = net.decide(rows, pairs=pairs, lengths=lengths)
            torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-11)


def test_the_bias_is_never_there_as_a_whole_when_it_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    net, largest = make("pens alibi"), 0
    rows, bias = net.encode(paths()), net._bias

    def watched(apart: Tensor) -> Tensor:
        nonlocal largest
        largest = max(largest, apart.numel() * net.heads)
        return bias(apart)

    monkeypatch.setattr(net, "_bias", watched)
    monkeypatch.setattr(Pens, "DENSE", 0)
    monkeypatch.setattr(Pens, "PART", 4 * 3 * 13 * 2)
    net.decide(rows)
    assert largest == 4 * 3 * 13 * 2


# -- moving, turning and mirroring an instance: PENS-A heeds none of it, PENS-R no moving (pens, Section 4.1) ---------


ANGLE = 0.7
TURN = torch.tensor([[math.cos(ANGLE), -math.sin(ANGLE)], [math.sin(ANGLE), math.cos(ANGLE)]], dtype=torch.float64)
MOVES = {
    "translation": lambda x: x + torch.tensor([1.25, -0.6], dtype=torch.float64),
    "rotation": lambda x: x @ TURN.T,
    "reflection": lambda x: x * torch.tensor([-1.0, 1.0], dtype=torch.float64),
    "all three": lambda x: (x @ TURN.T).flip(-1) + 0.5,
}
INVARIANT = {"alibi": set(MOVES), "rope": {"translation"}, "both": {"translation"}, "coordinates": set[str]()}


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 1e-4)])
def test_logits_heed_no_move_that_they_are_invariant_to(
    positions: str, move: str, dtype: torch.dtype, tolerance: float
) -> None:
    net, coords = make(f"pens {positions}").to(dtype), paths(6, 30)
    with torch.inference_mode():
        before, after = (net.decide(net.encode(each.to(dtype))) for each in (coords, MOVES[move](coords)))
    change = float((after - before).abs().max())
    if move in INVARIANT[positions]:
        assert change < tolerance
    else:
        assert change > 1e-2
