"""Heads are split so that their gradients come back in one pass."""

import torch

from neuroute.networks.blocks.attention import split_heads


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
