"""Slopes, frequencies, distances, turns: the paper's formulas, and what must follow from them (pens, Section 4.1)."""

import math

import pytest
import torch
from refusals import one_line

from neuroute.networks.blocks.positions import (
    alibi_slopes,
    axial_frequencies,
    axial_rotation,
    pairwise_distances,
    rotate,
)
from neuroute.networks.weights import build
from neuroute.plan.objects import Network


def test_slopes_are_the_papers() -> None:
    """Appendix A.3: 10 / sqrt(2)^h, of 12 heads from 10 down to 10 / 2^5.5."""
    slopes = alibi_slopes(12).tolist()
    assert slopes == pytest.approx([10 / math.sqrt(2) ** h for h in range(12)], rel=1e-14)
    assert slopes[0] == 10
    assert slopes[2] == pytest.approx(5)
    assert slopes[11] == pytest.approx(0.2209708691207961)


def test_frequencies_are_the_papers() -> None:
    """Section 4.1: 14 * 100^(-i / (d / 4)), i up to d / 4 - 1, of heads of 16 channels: 14, 4.43, 1.4, 0.443."""
    assert axial_frequencies(16).tolist() == pytest.approx([14, 14 / math.sqrt(10), 1.4, 1.4 / math.sqrt(10)])
    assert axial_frequencies(4).tolist() == [14]


@pytest.mark.parametrize("width", [2, 6, 10, 18])
def test_a_head_that_axial_rope_cannot_split_is_one_clear_line(width: int) -> None:
    with pytest.raises(ValueError, match=f"head of {width} channels.*multiple of 4"):
        axial_frequencies(width)
    network = Network(
        kind="neuroute.networks.pens:Pens", arguments={"width": 3 * width, "heads": 3, "positions": "rope"}
    )
    with one_line(f"cannot be built.*head of {width} channels.*multiple of 4"):
        build(network)
    build(network.model_copy(update={"arguments": {**network.arguments, "positions": "alibi"}}))  # nothing to split


def test_distances_are_exact_where_points_nearly_coincide() -> None:
    """The way by squares and products finds 0 or ten times as much."""
    a, b = torch.rand(2, 5, 2, dtype=torch.float64), torch.rand(2, 7, 2, dtype=torch.float64)
    expected = (a[:, :, None] - b[:, None]).square().sum(-1).sqrt()
    torch.testing.assert_close(pairwise_distances(a, b), expected, rtol=1e-14, atol=0)
    close = (0.9 + 1e-6 * torch.rand(1, 200, 2, dtype=torch.float64)).float()
    exact = (close.double()[:, :, None] - close.double()[:, None]).norm(dim=-1)
    torch.testing.assert_close(pairwise_distances(close, close).double(), exact, rtol=1e-5, atol=0)


def test_turns_of_half_precision_are_made_in_single() -> None:
    """bf16 has no digits for the angles of stretched instances: only the result is rounded."""
    x, coords = torch.randn(1, 1, 9, 8), 5 * torch.rand(1, 9, 2)
    rotation = axial_rotation(coords, axial_frequencies(8))
    turned = rotate(x.bfloat16(), rotation)
    assert turned.dtype == torch.bfloat16
    assert torch.equal(turned, rotate(x.bfloat16().float(), rotation).bfloat16())


def test_compiled_rotation_has_the_gradient_of_the_eager_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The branch that torch.compile takes: its own gradient of complex products is wrong."""
    torch.manual_seed(0)
    x = torch.randn(2, 3, 5, 8, dtype=torch.float64)
    rotation = axial_rotation(torch.rand(2, 5, 2, dtype=torch.float64), axial_frequencies(8))
    weights = torch.randn_like(x)
    found = []
    for compiling in (False, True):
        monkeypatch.setattr(torch.compiler, "is_compiling", lambda compiling=compiling: compiling)
        own = x.clone().requires_grad_()
        turned = rotate(own, rotation)
        (turned * weights).sum().backward()
        found.append((turned.detach(), own.grad))
    for eager, compiled in zip(*found, strict=True):
        torch.testing.assert_close(eager, compiled)
