"""The attention-free module: against a dense reference, at sizes and distances where a plain exp fails, its memory."""

import math

import pytest
import torch
from torch import Tensor

from neuroute.evaluation.efficiency import measure_memory
from neuroute.networks.blocks.attention import pairwise_distances
from neuroute.networks.blocks.layers import AafmLayer, aafm, one_alpha, slope, weigh

pytestmark = pytest.mark.usefixtures("one_thread")


def dense(query: Tensor, keys: Tensor, values: Tensor, bias: Tensor) -> Tensor:
    """icam, Eq. 3, in float64 and with a weight of its own for each pair of nodes and each channel."""
    query, keys, values, bias = (part.double() for part in (query, keys, values, bias))
    weights = torch.softmax(bias[..., None] + keys[:, None], dim=2)
    return torch.sigmoid(query) * (weights * values[:, None]).sum(2)


def drawn(batch: int = 2, queries: int = 5, nodes: int = 9, width: int = 6, spread: float = 1.0) -> list[Tensor]:
    torch.manual_seed(0)
    shapes = ((queries, width), (nodes, width), (nodes, width), (queries, nodes))
    query, keys, values, bias = (torch.randn(batch, *shape, dtype=torch.float64) for shape in shapes)
    return [query, spread * keys, values, bias]


@pytest.mark.parametrize("far", [1.0, 30.0, 1e3, 1e6])
@pytest.mark.parametrize("spread", [1.0, 20.0])
@pytest.mark.parametrize("hidden", [[], [0, 4]])
def test_equals_the_dense_reference(far: float, spread: float, hidden: list[int]) -> None:
    query, keys, values, bias = drawn(spread=spread)
    bias = bias * far
    bias[..., hidden] = -torch.inf
    expected = dense(query, keys, values, bias)
    torch.testing.assert_close(aafm(query, weigh(keys, values), bias), expected, rtol=1e-10, atol=1e-10)
    single = [part.float() for part in (query, keys, values, bias)]
    expected = dense(*single)
    found = aafm(single[0], weigh(*single[1:3]), single[3])
    torch.testing.assert_close(found.double(), expected, rtol=1e-3, atol=1e-5)


def test_gradients_are_those_of_the_dense_reference() -> None:
    parts = [part.requires_grad_() for part in drawn()]
    query, keys, values, bias = parts
    out = torch.randn(2, 5, 6, dtype=torch.float64)
    expected = torch.autograd.grad((dense(*parts) * out).sum(), parts)
    found = torch.autograd.grad((aafm(query, weigh(keys, values), bias) * out).sum(), parts)
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("alpha", [-3.0, 1.0, 40.0])
@pytest.mark.parametrize("scale", [1.0, 1e4, 1e12])
@pytest.mark.parametrize("log_n", [3.3, 16.6])
def test_finite_where_a_plain_exp_is_not(alpha: float, scale: float, log_n: float) -> None:
    """Coordinates as far as those of TSPLIB and further, 100,000 nodes, keys that differ by hundreds; gradients too."""
    torch.manual_seed(0)
    query, keys, values = (torch.randn(1, 12, 4) for _ in range(3))
    keys = (300 * keys).requires_grad_()
    slope_ = torch.tensor(alpha, requires_grad=True)
    bias = slope(slope_, log_n) * pairwise_distances(*2 * (scale * torch.rand(1, 12, 2),))
    if scale > 1 and alpha < 0:
        assert not bias.exp().isfinite().all()
    found = aafm(query, weigh(keys, values), bias)
    assert found.isfinite().all()
    assert found.abs().max() <= values.abs().max()  # a weighted mean of values, times at most 1
    found.sum().backward()
    assert keys.grad.isfinite().all()
    assert slope_.grad.isfinite()


def test_keys_that_differ_by_hundreds_are_exact_in_float64() -> None:
    query, keys, values, bias = drawn(spread=100.0)
    assert (keys.amax(1) - keys.amin(1)).max() > 250
    expected = dense(query, keys, values, 50 * bias)
    torch.testing.assert_close(aafm(query, weigh(keys, values), 50 * bias), expected, rtol=1e-10, atol=1e-10)


def test_the_adaptation_function() -> None:
    """icam, Eq. 12: minus alpha, times log2 of the size, times the distance."""
    alpha = one_alpha()
    assert alpha.item() == 1
    assert slope(alpha, math.log2(1024)).item() == -10


def test_memory_is_one_number_a_pair() -> None:
    """O(n d + n n), never n n d: with gradients kept, too."""
    width, few, many = 16, 200, 800

    def kept(nodes: int) -> int:
        layer = AafmLayer(width, 32)
        x, apart = torch.randn(1, nodes, width), torch.rand(1, nodes, nodes)
        with torch.no_grad():
            _, peak, _ = measure_memory(lambda: layer(x, apart, 5.0), torch.device("cpu"))
        saved = 0

        def note(t: Tensor) -> Tensor:
            nonlocal saved
            saved += t.nbytes if t.dim() == 3 and t.data_ptr() != apart.data_ptr() else 0
            return t

        with torch.autograd.graph.saved_tensors_hooks(note, lambda t: t):
            layer(x, apart, 5.0)
        assert peak < 4 * (2.1 * nodes**2 + 30 * nodes * width)
        return saved

    assert kept(many) < 4 * (2.1 * many**2 + 60 * many * width)
    assert kept(many) < (many / few) ** 2 * kept(few)
