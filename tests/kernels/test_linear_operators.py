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
@pytest.mark.usefixtures("one_thread")
def test_neither_threads_nor_other_rows_change_a_bit() -> None:
    x, up, down, found = drawn(900, 64), layer(64, 256), layer(256, 64), []
    with torch.inference_mode():
        for number in (1, 2, 3):
            torch.set_num_threads(number)
            found.append((linear.linear(x, up), linear.feed_forward(x, up, down)))
        some = linear.linear(x[100:165], up), linear.feed_forward(x[100:165], up, down)
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


WIDTH, HIDDEN = 20, 70


def gradients(out: Tensor, *of: Tensor) -> list[Tensor]:
    given = torch.randn(out.shape, generator=torch.Generator().manual_seed(5)).to(out)
    return [out.detach(), *torch.autograd.grad((out * given).sum(), of)]


def assert_alike(found: list[Tensor], wanted: list[Tensor]) -> None:
    for ours, plain in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours, plain, rtol=1e-5, atol=1e-5 * float(plain.abs().max()))


@compiled
@pytest.mark.parametrize("rows", [linear.ROWS, 129, 700])
def test_layers_and_ffns_learn_as_torch_s(rows: int) -> None:
    torch.manual_seed(rows)
    x, stream = torch.randn(2, 1, rows, WIDTH, requires_grad=True).unbind()
    up, down = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)
    square = nn.Linear(WIDTH, WIDTH, bias=False)
    assert linear._learns(x, *parameters(up), stream)
    assert_alike(*(gradients(out, x, up.weight, up.bias) for out in (linear.linear(x, parameters(up)), up(x))))
    found = linear.linear(x, parameters(square), None, stream)
    assert_alike(*(gradients(out, x, stream, square.weight) for out in (found, stream + square(x))))
    for other in (None, stream, x):
        found = linear.feed_forward(x, parameters(up), parameters(down), None, other)
        wanted = down(F.relu(up(x))) if other is None else other + down(F.relu(up(x)))
        of = [x, *([stream] if other is stream else []), *up.parameters(), *down.parameters()]
        assert_alike(gradients(found, *of), gradients(wanted, *of))


@compiled
@pytest.mark.parametrize("rows", [[70, 0, 3, 200], [1, 2, 70]])
def test_groups_learn_as_a_layer_each(rows: list[int]) -> None:
    torch.manual_seed(0)
    x, up, down = (
        torch.randn(sum(rows), WIDTH),
        torch.randn(len(rows), HIDDEN, WIDTH),
        torch.randn(len(rows), 9, HIDDEN),
    )
    of = [x, up, torch.randn(len(rows), HIDDEN), down / 10, torch.randn(len(rows), 9)]
    of = [each.requires_grad_() for each in of]

    def one_by_one(x: Tensor, *layers: Tensor) -> Tensor:
        out = []
        for part, *own in zip(x.split(rows), *layers, strict=True):
            first = F.linear(part, *own[:2])
            out.append(F.linear(F.relu(first), *own[2:]) if own[2:] else first)
        return torch.cat(out)

    for layers in (of[1:3], of[1:]):
        found = linear.grouped(x, rows, *layers)
        assert_alike(gradients(found, x, *layers), gradients(one_by_one(x, *layers), x, *layers))
        with torch.no_grad():
            assert_near(linear.grouped(x, rows, *layers), found.detach().double())


@compiled
@pytest.mark.usefixtures("one_thread")
def test_threads_change_no_bit_of_gradients() -> None:
    x, of = drawn(900, 64).requires_grad_(), [each.requires_grad_() for each in (*layer(64, 100), *layer(100, 64))]
    found = []
    for number in (1, 2, 3):
        torch.set_num_threads(number)
        found.append(gradients(linear.feed_forward(x, (of[0], of[1]), (of[2], of[3])), x, *of))
    for each in found:
        assert all(torch.equal(one, other) for one, other in zip(each, found[0], strict=True))


@pytest.mark.parametrize("rows", [linear.PADDED.start + 1, linear.PADDED.stop - 1])
def test_rows_in_bf16_are_those_of_a_planned_count(rows: int) -> None:
    """An instance's decisions have a new count each time; what is added to it is not seen."""
    torch.manual_seed(0)
    x, up, down = torch.randn(1, linear.PADDED.stop, WIDTH), nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        some, every = (linear.feed_forward(each, parameters(up), parameters(down)) for each in (x[:, :rows], x))
        assert some.shape == (1, rows, WIDTH)
        torch.testing.assert_close(some, every[:, :rows], atol=0.02, rtol=0.02)


def test_an_ffn_in_bf16_learns_as_torch_does() -> None:
    torch.manual_seed(0)
    x, up, down = torch.randn(9, WIDTH, requires_grad=True), nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)
    with torch.autocast("cpu", torch.bfloat16):
        outs = linear.feed_forward(x, parameters(up), parameters(down)), down(F.relu(up(x)))
    of = [x, *up.parameters(), *down.parameters()]
    for ours, plain in zip(*(gradients(out, *of) for out in outs), strict=True):
        assert torch.equal(ours, plain)
