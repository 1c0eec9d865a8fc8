"""SIT for the TSP and the CVRP: equations, folding, what is detached."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from networks import PATH, decision, idle, make, without_gradients
from neuroute.networks.blocks.linear_cross_attention import folds
from neuroute.networks.kernels.library import describe, library
from neuroute.networks.sit import Sit
from sit_by_the_book import logits as by_the_book

pytestmark = pytest.mark.usefixtures("one_thread")


CASES: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in PATH if name.startswith("sit")),
    *((name, {"representatives": 1}) for name in ("sit", "sit cvrp")),
    ("sit cvrp", {"detach_customers": True}),
]


@pytest.mark.parametrize(("name", "change"), CASES)
@pytest.mark.parametrize("tokens", [3, 9, 60])
def test_equals_the_equations(name: str, change: dict[str, Any], tokens: int) -> None:
    net = make(name, **change)
    seen = decision(net, 3, tokens)
    expected = by_the_book(net, *seen)
    assert expected.shape == ((3, tokens - 2) if net.problem == "tsp" else (3, tokens - 2, 2))
    torch.testing.assert_close(net.decide(*seen), expected, rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(without_gradients(net, *seen), expected, rtol=1e-11, atol=1e-11)


def test_detached_the_cvrps_embedding_learns_through_the_depot_alone() -> None:
    net = make("sit cvrp", detach_customers=True)
    net.decide(*decision(net)).flatten(1).log_softmax(1)[:, 5].sum().neg().backward()
    assert idle(net) == set()
    assert net.embed.weight.grad.abs().sum(0).gt(0).tolist() == [True, True, False]


def test_long_streams_are_folded_and_short_ones_are_not() -> None:
    assert folds(128, 8, 16, 293)
    assert not folds(128, 8, 16, 292)
    assert not folds(32, 8, 16, 100_000)


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
    net, seen = make("sit").float(), torch.rand(1, 30_000, 2)
    with torch.no_grad(), Largest() as largest:
        net.decide(seen)
    assert largest.numbers == (30_000 + 3) * 24


def test_the_attention_scale_scales() -> None:
    net = make("sit")
    (seen,) = decision(net, 3, 60)
    assert net.attention_scale(10_000) == 1.0
    sharper = net.decide(seen, 2.0)
    assert not torch.allclose(sharper, net.decide(seen))
    torch.testing.assert_close(without_gradients(net, seen, 2.0), sharper, rtol=1e-11, atol=1e-11)


def test_gradients_are_those_of_finite_differences() -> None:
    net = make("sit", depth=1, width=4, heads=2, feed_forward=6, representatives=2)
    (seen,) = decision(net, 1, 6)
    assert torch.autograd.gradcheck(net.decide, seen.requires_grad_())


def test_bf16_stays_close() -> None:
    torch.manual_seed(0)
    net, seen = Sit().eval(), torch.rand(2, 300, 2)
    expected = without_gradients(net, seen)
    with torch.autocast("cpu", torch.bfloat16):
        for found in (net.decide(seen), without_gradients(net, seen)):
            assert found.dtype == torch.float32
            torch.testing.assert_close(found, expected, rtol=0.1, atol=0.05)
