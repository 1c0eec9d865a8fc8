"""Attention with a bias: every path gives what softmax(scale q k^T + bias) v says."""

import math

import pytest
import torch
from torch import Tensor

from neuroute.networks.blocks.attention import (
    alibi_slopes,
    attend,
    axial_frequencies,
    axial_rotation,
    pairwise_distances,
    rotate,
)

SCALE = 0.37


def dense(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> Tensor:
    scores = torch.einsum("bhqd,bhkd->bhqk", q, k) * SCALE
    weights = (scores if bias is None else scores + bias).exp()
    return torch.einsum("bhqk,bhkd->bhqd", weights / weights.sum(-1, keepdim=True), v)


def drawn(dtype: torch.dtype = torch.float64) -> list[Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(3, 2, 11, 8, generator=generator, dtype=torch.float64).to(dtype) for _ in range(3)]


def biases() -> dict[str, Tensor | None]:
    generator = torch.Generator().manual_seed(2)
    full = -5 * torch.rand(3, 2, 11, 11, generator=generator, dtype=torch.float64)
    hidden = torch.zeros(3, 1, 1, 11, dtype=torch.float64)
    hidden[1, ..., 4:7] = -math.inf
    return {"none": None, "of heads": full, "of all heads": full[:, :1], "hiding keys": hidden, "both": full + hidden}


@pytest.mark.parametrize("name", biases())
def test_equals_the_dense_softmax(name: str) -> None:
    q, k, v = drawn()
    bias = biases()[name]
    torch.testing.assert_close(attend(q, k, v, SCALE, bias), dense(q, k, v, bias), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", biases())
def test_the_branch_that_trains_in_bf16_on_cpu(name: str) -> None:
    """Forward and gradients are those of the exact formula, to the digits of bf16."""
    bias = biases()[name]
    exact = [t.bfloat16().double().requires_grad_() for t in drawn()]
    half = [t.detach().bfloat16().requires_grad_() for t in exact]
    expected, found = dense(*exact, bias), attend(*half, SCALE, bias)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.double(), expected, rtol=0.03, atol=0.03)
    weight = torch.randn(expected.shape, dtype=torch.float64)
    (expected * weight).sum().backward()
    (found * weight.bfloat16()).sum().backward()
    for e, f in zip(exact, half, strict=True):
        assert (f.grad.double() - e.grad).norm() < 0.03 * e.grad.norm()


def test_a_query_in_all_digits_is_rounded_as_the_keys_are() -> None:
    """As autocast does; torch's backward pass of a mixed call takes ten times as long."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, 4, 40, 8, generator=generator) for _ in range(3))
    k, v = k.bfloat16(), v.bfloat16()
    bias = torch.zeros(2, 1, 40, 40).masked_fill(torch.rand(2, 1, 40, 40, generator=generator) < 0.3, -torch.inf)
    out, gradients = [], []
    for query in (q.clone().requires_grad_(), q.bfloat16().requires_grad_()):
        out.append(attend(query, k, v, 0.3, bias))
        out[-1].float().square().sum().backward()
        assert query.grad.dtype == query.dtype
        gradients.append(query.grad.float())
    assert out[0].dtype == torch.bfloat16
    assert torch.equal(*out)
    assert torch.equal(*gradients)


# -- slopes, frequencies, distances, turns: the paper's formulas, and what must follow from them (pens, Section 4.1) --


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


def test_distances_are_exact_where_points_nearly_coincide() -> None:
    """The way by squares and products finds 0 or ten times as much."""
    a, b = torch.rand(2, 5, 2, dtype=torch.float64), torch.rand(2, 7, 2, dtype=torch.float64)
    expected = (a[:, :, None] - b[:, None]).square().sum(-1).sqrt()
    torch.testing.assert_close(pairwise_distances(a, b), expected, rtol=1e-14, atol=0)
    close = (0.9 + 1e-6 * torch.rand(1, 200, 2, dtype=torch.float64)).float()
    exact = (close.double()[:, :, None] - close.double()[:, None]).norm(dim=-1)
    torch.testing.assert_close(pairwise_distances(close, close).double(), exact, rtol=1e-5, atol=0)


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
