"""SIT for the TSP and the CVRP: equations, folding, what is detached."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from networks import idle
from neuroute.kernels.library import describe, library
from neuroute.kernels.linear import look_up
from neuroute.networks.blocks.linear_cross_attention import CrossLayer, folds, seen_by
from neuroute.networks.sit import Sit, SitCvrp
from sit_by_the_book import logits as by_the_book

pytestmark = pytest.mark.usefixtures("one_thread")

# Heads times representatives: less than the width, so that long streams are folded; and more, so that none are.
FOLDING = {"depth": 3, "width": 24, "heads": 3, "feed_forward": 40, "representatives": 4}
PLAIN = {"depth": 2, "width": 12, "heads": 3, "feed_forward": 20, "representatives": 15}
TWIN = FOLDING | {"attention": "self"}


def small(shape: dict = FOLDING, dtype: torch.dtype = torch.float64, kind: type[Sit] = Sit) -> Sit:
    torch.manual_seed(0)
    return kind(**shape).to(dtype).eval()


def rows(batch: int = 3, tokens: int = 60) -> Tensor:
    return torch.rand(batch, tokens, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def routed(tokens: int = 60) -> tuple[Tensor, Tensor]:
    """Rows [current, available..., depot] of the CVRP, and what is left in the vehicle."""
    seen = torch.cat([rows(tokens=tokens), torch.rand(3, tokens, 1, dtype=torch.float64)], dim=-1)
    seen[:, -1, 2] = 0
    return seen, torch.rand(3, dtype=torch.float64)


def without_gradients(net: Sit, *seen: Tensor) -> Tensor:
    with torch.inference_mode():
        return net.decide(*seen).clone()


SHAPES = [
    (kind, shape) for kind in (Sit, SitCvrp) for shape in (FOLDING, PLAIN, TWIN, FOLDING | {"representatives": 1})
]


@pytest.mark.parametrize(("kind", "shape"), [*SHAPES, (SitCvrp, FOLDING | {"detach_customers": True})])
@pytest.mark.parametrize("tokens", [3, 9, 60])
def test_equals_the_equations(kind: type[Sit], shape: dict, tokens: int) -> None:
    net = small(shape, kind=kind)
    seen = (rows(tokens=tokens),) if kind is Sit else routed(tokens)
    expected = by_the_book(net, *seen)
    assert expected.shape == ((3, tokens - 2) if kind is Sit else (3, tokens - 2, 2))
    torch.testing.assert_close(net.decide(*seen), expected, rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(without_gradients(net, *seen), expected, rtol=1e-11, atol=1e-11)


def test_detached_the_cvrps_embedding_learns_through_the_depot_alone() -> None:
    net = small(FOLDING | {"detach_customers": True}, kind=SitCvrp)
    net.decide(*routed()).flatten(1).log_softmax(1)[:, 5].sum().neg().backward()
    assert idle(net) == set()
    assert net.embed.weight.grad.abs().sum(0).gt(0).tolist() == [True, True, False]


def test_the_published_shape_equals_the_equations_in_float32() -> None:
    net, seen = small({}, torch.float32), rows(2, 300)
    assert folds(net.width, net.decoder.layers[0].gather.heads, 16, 314)
    expected = by_the_book(net, seen)
    for found in (net.decide(seen.float()), without_gradients(net, seen.float())):
        torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-5)


def test_long_streams_are_folded_and_short_ones_are_not() -> None:
    assert folds(128, 8, 16, 293)
    assert not folds(128, 8, 16, 292)
    assert not folds(32, 8, 16, 100_000)


def test_folded_attention_is_attention() -> None:
    torch.manual_seed(0)
    layer = CrossLayer(24, 3, 40).double()
    few, many = torch.randn(2, 5, 24).double(), torch.randn(2, 50, 24).double()
    exact = {"rtol": 1e-12, "atol": 1e-12}
    for scale in (1.0, 1.7):
        with torch.no_grad():
            torch.testing.assert_close(layer.gathered(few, many, scale), layer.attended(few, many, scale), **exact)
            found = look_up(many, *layer.folded(few, scale), layer.out.bias)
            torch.testing.assert_close(found, many + layer.attended(many, few, scale), **exact)
    assert not torch.allclose(layer.attended(few, many, 1.0), layer.attended(few, many, 1.7))


def test_fused_and_explicit_products_agree() -> None:
    """A CPU takes the first, a GPU the second."""
    torch.manual_seed(0)
    queries, stream = torch.randn(2, 12, 24).double(), torch.randn(2, 50, 24).double()
    with torch.no_grad():
        fused, explicit = (seen_by(queries, stream, fused=fused) for fused in (True, False))
    torch.testing.assert_close(fused, explicit, rtol=1e-12, atol=1e-12)


class Largest(TorchDispatchMode):
    """The most numbers in a tensor that any operation returns."""

    numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        for tensor in found if isinstance(found, tuple | list) else (found,):
            if isinstance(tensor, Tensor):
                self.numbers = max(self.numbers, tensor.numel())
        return found


@pytest.mark.skipif(library() is None, reason=describe())
def test_nothing_larger_than_the_stream_is_ever_there() -> None:
    """No product of nodes with nodes, and no FFN of all nodes: 1.2 million numbers here."""
    net, seen = small(dtype=torch.float32), torch.rand(1, 30_000, 2)
    with torch.no_grad(), Largest() as largest:
        net.decide(seen)
    assert largest.numbers == (30_000 + 3) * 24


def test_the_attention_scale_scales() -> None:
    net, seen = small(), rows()
    assert net.attention_scale(10_000) == 1.0
    sharper = net.decide(seen, 2.0)
    assert not torch.allclose(sharper, net.decide(seen))
    with torch.inference_mode():
        torch.testing.assert_close(net.decide(seen, 2.0).clone(), sharper, rtol=1e-11, atol=1e-11)


def test_gradients_are_those_of_finite_differences() -> None:
    net, seen = small({"depth": 1, "width": 4, "heads": 2, "feed_forward": 6, "representatives": 2}), rows(1, 6)
    assert torch.autograd.gradcheck(net.decide, seen.requires_grad_())


def test_bf16_stays_close() -> None:
    net, seen = small({}, torch.float32), rows(2, 300).float()
    expected = without_gradients(net, seen)
    with torch.autocast("cpu", torch.bfloat16):
        for found in (net.decide(seen), without_gradients(net, seen)):
            assert found.dtype == torch.float32
            torch.testing.assert_close(found, expected, rtol=0.1, atol=0.05)
