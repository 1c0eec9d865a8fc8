"""Linear layers and FFNs give what the formula says, to float32's digits, compiled or not."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from neuroute.networks.blocks.layers import parameters
from neuroute.networks.kernels import library, linear

compiled = pytest.mark.skipif(library.library() is None, reason=library.describe())
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
        assert linear._runs(x, *of, stream)
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
    wanted, other = dense(F.relu(dense(x, up)), down), drawn(rows, width)
    with torch.inference_mode():
        assert_near(linear.feed_forward(x, up, down), wanted)
        assert_near(linear.feed_forward(x, up, down, torch.tensor(-2.0), other), other - 2 * wanted)


@pytest.mark.parametrize("nodes", [slice(None), slice(3, -1)])
@pytest.mark.parametrize("biased", [True, False])
def test_a_head_behind_an_ffn(nodes: slice, biased: bool) -> None:
    x, up, down, head = drawn(2, 70, 32), layer(32, 64), layer(64, 32, biased=biased), torch.nn.Linear(32, 2)
    stream = x + 0.3 * dense(F.relu(dense(x, up)), down)
    wanted = dense(stream[:, nodes], (head.weight, head.bias))
    for mode in (torch.inference_mode, torch.enable_grad):
        with mode():
            assert_near(linear.scored_feed_forward(x, up, down, torch.tensor(0.3), head, nodes), wanted)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize(
    ("width", "heads", "q"), [(32, 3, 16), (20, 1, 32), (128, 8, 16), (5, 4, 48), (8, 2, 5), (20, 3, 2), (16, 2, 17)]
)
def test_looking_up(width: int, heads: int, q: int, rows: int) -> None:
    stream, bias = drawn(2, rows, width), drawn(width)
    keys, values = drawn(2, 2, heads, q, width) / 2
    shares = torch.softmax(stream.double()[:, None] @ keys.double().transpose(2, 3), dim=-1)
    wanted = stream + (shares @ values.double()).sum(dim=1) + bias
    with torch.inference_mode():
        assert_near(linear.look_up(stream, keys, values, bias), wanted)


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
def test_torch_s_checks() -> None:
    x, up, down, factor = drawn(70, 32), layer(32, 80), layer(80, 32), torch.tensor(0.3)
    checks = ("test_schema", "test_faketensor")
    torch.library.opcheck(linear._linear, (x, *up, factor, None), test_utils=checks)
    torch.library.opcheck(linear._feed_forward, (x, *up, *down, factor, x.clone()), test_utils=checks)
    looked = x[None], drawn(1, 2, 16, 32), drawn(1, 2, 16, 32), drawn(32)
    torch.library.opcheck(linear._look_up, looked, test_utils=checks)


@compiled
def test_what_they_are_not_for() -> None:
    x, of = drawn(70, 16), layer(16, 32)
    assert not linear._runs(x, *of)  # gradients may be asked for
    with torch.inference_mode():
        assert linear._runs(x, *of)
        assert not linear._runs(x[:5], *of)  # too few
        assert not linear._runs(x.double(), *of)
        assert not linear._runs(x, of[0].double())
        assert not linear._runs(x.t().contiguous().t(), *of)
        assert not linear._runs(x.to("meta"), *of)
        with torch.autocast("cpu", torch.bfloat16):
            assert not linear._runs(x, *of)
        with sdpa_kernel(SDPBackend.MATH):  # plain products, which are counted
            assert not linear._runs(x, *of)


WIDTH, HIDDEN = 20, 512
PART = linear.HIDDEN // HIDDEN  # rows


def gradients(x: Tensor, up: nn.Linear, down: nn.Linear, out: Tensor) -> list[Tensor]:
    given = torch.randn(out.shape, generator=torch.Generator().manual_seed(5)).to(out)
    return [out.detach(), *torch.autograd.grad((out * given).sum(), [x, *up.parameters(), *down.parameters()])]


@compiled
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rows", [1, 7, PART, 2 * PART + 3])
def test_an_ffn_learns_as_two_layers(rows: int, dtype: torch.dtype) -> None:
    torch.manual_seed(rows)
    x = torch.randn(1, rows, WIDTH, dtype=dtype, requires_grad=True)
    up, down = nn.Linear(WIDTH, HIDDEN, dtype=dtype), nn.Linear(HIDDEN, WIDTH, dtype=dtype)
    out = linear.feed_forward(x, parameters(up), parameters(down))
    assert "FeedForwardFunction" in type(out.grad_fn.next_functions[0][0]).__name__  # type: ignore[union-attr]
    found, wanted = gradients(x, up, down, out), gradients(x, up, down, down(F.relu(up(x))))
    tight = {torch.float32: 1e-5, torch.float64: 1e-12}[dtype]
    for ours, plain in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours, plain, rtol=tight, atol=tight * float(plain.abs().max()))


def test_an_ffn_in_bf16_learns_as_torch_does() -> None:
    torch.manual_seed(0)
    x, up, down = torch.randn(9, WIDTH, requires_grad=True), nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)
    with torch.autocast("cpu", torch.bfloat16):
        outs = linear.feed_forward(x, parameters(up), parameters(down)), down(F.relu(up(x)))
    for ours, plain in zip(*(gradients(x, up, down, out) for out in outs), strict=True):
        assert torch.equal(ours, plain)
