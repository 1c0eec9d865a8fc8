"""The decoder-only network: size, formula, invariances."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F

from neuroute.networks.decoder_only import DecoderOnly

SHAPES = [*itertools.product((6, 12, 24, 42), (128, 256, 512)), (24, 64), (96, 32)]  # scaling, Tables 1 and 2


def awake(depth: int = 3, width: int = 32, **options: bool) -> DecoderOnly:
    """A float64 network whose ReZero scalars have left zero."""
    torch.manual_seed(0)
    net = DecoderOnly(depth, width, 4, **options).double()  # type: ignore[arg-type]
    for layer in net.layers:
        if layer.alpha1 is not None:
            layer.alpha1.data.fill_(0.7)
            layer.alpha2.data.fill_(-0.4)
    return net


def by_the_book(net: DecoderOnly, rows: torch.Tensor, scale: float) -> torch.Tensor:
    """Eq. 8-16 written out head by head, without fusion."""
    h = F.linear(rows, net.embed.weight, net.embed.bias)
    x = torch.cat([net.current(h[:, 0])[:, None], h[:, 1:-1], net.start(h[:, -1])[:, None]], 1)
    for layer in net.layers:
        w_q, w_k, w_v = layer.qkv.weight.chunk(3)
        d_k = w_q.shape[0] // layer.heads
        heads = []
        for i in range(layer.heads):
            part = slice(i * d_k, (i + 1) * d_k)
            q, k, v = x @ w_q[part].T, x @ w_k[part].T, x @ w_v[part].T
            heads.append(torch.softmax(scale * q @ k.transpose(1, 2) / math.sqrt(d_k), -1) @ v)
        attended = layer.out(torch.cat(heads, -1))
        if layer.gate is not None:
            attended = attended * torch.sigmoid(layer.gate(x))
        a1, a2 = (1.0, 1.0) if layer.alpha1 is None else (layer.alpha1, layer.alpha2)
        x = x + a1 * attended
        x = x + a2 * layer.down(torch.relu(layer.up(x)))
    return net.head(x)[:, 1:-1, 0]


@pytest.mark.parametrize("gate", [True, False])
@pytest.mark.parametrize("rezero", [True, False])
def test_equals_the_formulas(gate: bool, rezero: bool) -> None:
    net = awake(gate=gate, rezero=rezero)
    rows = torch.rand(5, 12, 2, dtype=torch.float64)
    for scale in (1.0, 1.3):
        torch.testing.assert_close(net.decide(rows, scale), by_the_book(net, rows, scale), rtol=1e-12, atol=1e-12)


def test_order_of_the_candidates_does_not_matter() -> None:
    net, rows = awake(), torch.rand(4, 20, 2, dtype=torch.float64)
    shuffle = torch.randperm(18)
    shuffled = torch.cat([rows[:, :1], rows[:, 1:-1][:, shuffle], rows[:, -1:]], 1)
    torch.testing.assert_close(net.decide(shuffled), net.decide(rows)[:, shuffle], rtol=1e-12, atol=1e-12)


def test_start_and_current_are_told_apart() -> None:
    net, rows = awake(), torch.rand(4, 20, 2, dtype=torch.float64)
    assert not torch.allclose(net.decide(rows), net.decide(rows.flip(1)).flip(1))


def test_rezero_starts_as_the_identity() -> None:
    net = DecoderOnly(4, 16, 2)
    x = torch.rand(2, 5, 16)
    torch.testing.assert_close(net.layers[0](x), x)


def test_log_n_factor_is_one_at_the_training_size() -> None:
    net = DecoderOnly(1, 8, 1, train_nodes=100)
    assert net.attention_scale(100) == 1.0
    assert net.attention_scale(1000) == pytest.approx(1.5)  # ln 1000 / ln 100
    assert net.attention_scale(50) < 1.0


def test_width_must_divide_into_heads() -> None:
    with pytest.raises(ValueError, match="not divisible"):
        DecoderOnly(1, 10, 4)
