"""The compiled linear layers give what the formula says, to float32's digits, and are left out where they must be."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from neuroute.networks.blocks.kernels import attention, linear

compiled = pytest.mark.skipif(linear._compiled() is None, reason=attention.describe())
SIZES = [(8, 32), (32, 96), (20, 33), (128, 128), (7, 1), (48, 144)]  # inputs and outputs
ROWS = [64, 71, 300]


def drawn(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def layer(inputs: int, outputs: int, *, biased: bool = True) -> linear.Layer:
    return drawn(outputs, inputs) / inputs**0.5, drawn(outputs) if biased else None


def dense(x: Tensor, of: linear.Layer) -> Tensor:
    return F.linear(x.double(), *(None if each is None else each.double() for each in of))


def assert_near(found: Tensor, wanted: Tensor) -> None:
    torch.testing.assert_close(found.double(), wanted, rtol=1e-5, atol=1e-5)


@compiled
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize(("inputs", "outputs"), SIZES)
def test_a_layer(inputs: int, outputs: int, rows: int) -> None:
    x, of, stream = drawn(rows, inputs), layer(inputs, outputs), drawn(rows, outputs)
    before, wanted = stream.clone(), dense(x, of)
    with torch.inference_mode():
        assert linear.fits(x, of, stream=stream)
        assert_near(linear.linear(x, of), wanted)
        assert_near(linear.linear(x, of, torch.tensor(0.3), stream), stream + 0.3 * wanted)
        unbiased = layer(inputs, outputs, biased=False)
        assert_near(linear.linear(x.view(1, rows, inputs), unbiased)[0], dense(x, unbiased))
    assert torch.equal(stream, before)


@compiled
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize(("width", "hidden"), [(32, 64), (20, 33), (128, 512), (3, 5)])
def test_an_ffn(width: int, hidden: int, rows: int) -> None:
    x, up, down = drawn(rows, width), layer(width, hidden), layer(hidden, width)
    wanted = dense(F.relu(dense(x, up)), down)
    before, other = x.double(), drawn(rows, width)
    with torch.inference_mode():
        assert linear.fits(x, up, down)
        assert_near(linear.feed_forward(x, up, down), wanted)
        assert_near(linear.feed_forward(x, up, down, torch.tensor(-2.0), other), drawn(rows, width) - 2 * wanted)
        assert linear.feed_forward(x, up, down, stream=x) is x
    assert_near(x, before + wanted)


@compiled
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize(("width", "groups", "group"), [(32, 3, 16), (20, 1, 32), (128, 8, 16), (5, 4, 48)])
def test_looking_up(width: int, groups: int, group: int, rows: int) -> None:
    stream, keys, values = drawn(rows, width), 3 * drawn(groups * group, width), layer(groups * group, width)
    scores = dense(stream, (keys, None)).unflatten(1, (groups, group))
    wanted = stream + dense(scores.softmax(dim=-1).flatten(1), values)
    with torch.inference_mode():
        assert linear.fits(stream, (keys, None), values)
        assert linear.fits_groups(group)
        linear.look_up(stream, keys, values, group)
    assert_near(stream, wanted)
    assert not linear.fits_groups(group + 1)


@compiled
def test_neither_threads_nor_other_rows_change_a_bit() -> None:
    x, up, down = drawn(900, 64), layer(64, 256), layer(256, 64)
    threads, found = torch.get_num_threads(), []
    with torch.inference_mode():
        for number in (1, 2, 3):
            torch.set_num_threads(number)
            found.append((linear.linear(x, up), linear.feed_forward(x, up, down)))
        some = linear.linear(x[100:165], up), linear.feed_forward(x[100:165], up, down)
    torch.set_num_threads(threads)
    for each in found:
        assert all(torch.equal(one, other) for one, other in zip(each, found[0], strict=True))
    assert all(torch.equal(one, other[100:165]) for one, other in zip(some, found[0], strict=True))


@compiled
def test_weights_that_are_packed_once_give_the_same_bits_and_are_looked_at_again_afterwards() -> None:
    up, down = torch.nn.Linear(32, 80), torch.nn.Linear(80, 33, bias=False)
    layers, x, factors = [(up.weight, up.bias), (down.weight, None)], drawn(70, 32), (None, torch.tensor(0.3))

    def outputs() -> list[Tensor]:
        return [linear.linear(x, layers[0]), *(linear.feed_forward(x, *layers, factor) for factor in factors)]

    with torch.inference_mode():
        wanted = outputs()
        with linear.packed_once():
            first = outputs()
            with linear.packed_once():
                again = outputs()
            for computed in (up.weight + 1, up.weight + 2):  # may have one address after the other
                assert_near(linear.linear(x, (computed, None)), dense(x, (computed, None)))
            assert linear.fits(x[:16], *layers)
            assert not linear.fits(x[:16], *layers, (computed, None))
        assert not linear.fits(x[:16], *layers)
        up.weight.data += 1
        changed = outputs()
    assert all(torch.equal(a, b) and torch.equal(a, c) for a, b, c in zip(wanted, first, again, strict=True))
    assert_near(changed[0], dense(x, layers[0]))


@compiled
def test_what_it_is_not_for() -> None:
    x, of = drawn(70, 16), layer(16, 32)
    assert not linear.fits(x, of)  # gradients may be asked for
    with torch.inference_mode():
        assert linear.fits(x, of)
        assert not linear.fits(x[:5], of)  # too few
        assert not linear.fits(x.double(), of)
        assert not linear.fits(x, (of[0].double(), None))
        assert not linear.fits(x.t().contiguous().t(), of)
        assert not linear.fits(x.to("meta"), of)
        assert not linear.fits(x, of, stream=drawn(70, 64)[:, ::2])
        with torch.autocast("cpu", torch.bfloat16):
            assert not linear.fits(x, of)
        with sdpa_kernel(SDPBackend.MATH):  # plain products, which are counted
            assert not linear.fits(x, of)
