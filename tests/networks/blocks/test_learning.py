"""What training computes in its own way: solutions and gradients are those of plain layers."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from neuroute.networks.blocks.attention import split_heads
from neuroute.networks.blocks.rezero import CPU_FLOATS, feed_forward, parameters

WIDTH, HIDDEN = 20, 512
PART = CPU_FLOATS // HIDDEN  # rows


def gradients(x: Tensor, up: nn.Linear, down: nn.Linear, out: Tensor) -> list[Tensor]:
    given = torch.randn(out.shape, generator=torch.Generator().manual_seed(5)).to(out)
    return [out.detach(), *torch.autograd.grad((out * given).sum(), [x, *up.parameters(), *down.parameters()])]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rows", [1, 7, PART, 2 * PART + 3])
def test_an_ffn_learns_as_two_layers(rows: int, dtype: torch.dtype) -> None:
    torch.manual_seed(rows)
    x = torch.randn(1, rows, WIDTH, dtype=dtype, requires_grad=True)
    up, down = nn.Linear(WIDTH, HIDDEN, dtype=dtype), nn.Linear(HIDDEN, WIDTH, dtype=dtype)
    out = feed_forward(x, parameters(up), parameters(down))
    assert "FeedForwardFunction" in type(out.grad_fn.next_functions[0][0]).__name__  # type: ignore[union-attr]
    found, wanted = gradients(x, up, down, out), gradients(x, up, down, down(F.relu(up(x))))
    tight = {torch.float32: 1e-5, torch.float64: 1e-12}[dtype]
    for ours, plain in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours, plain, rtol=tight, atol=tight * float(plain.abs().max()))


def test_an_ffn_in_bf16_learns_as_torch_does() -> None:
    torch.manual_seed(0)
    x, up, down = torch.randn(9, WIDTH, requires_grad=True), nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)
    with torch.autocast("cpu", torch.bfloat16):
        outs = feed_forward(x, parameters(up), parameters(down)), down(F.relu(up(x)))
    for ours, plain in zip(*(gradients(x, up, down, out) for out in outs), strict=True):
        assert torch.equal(ours, plain)


def test_heads_and_their_gradients() -> None:
    torch.manual_seed(0)
    qkv = torch.randn(3, 5, 3 * 24, requires_grad=True)
    plain = qkv.view(3, 5, 3, 4, 6).permute(2, 0, 3, 1, 4)
    given = torch.randn(plain.shape)
    found = split_heads(qkv, 4)
    assert all(torch.equal(one, other) for one, other in zip(found, plain, strict=True))
    (ours,) = torch.autograd.grad([*found], qkv, [*given])
    (wanted,) = torch.autograd.grad(plain, qkv, given)
    assert torch.equal(ours, wanted)
