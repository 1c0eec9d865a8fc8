"""The decoder-only network: its formula, where it starts, its factor of log n."""

import pytest
import torch
import torch.nn.functional as F

import by_the_book
from networks import decision, make
from neuroute.networks.bq import Bq
from neuroute.networks.decoder_only import DecoderOnly


@pytest.mark.parametrize("gate", [True, False])
@pytest.mark.parametrize("rezero", [True, False])
def test_equals_the_formulas(gate: bool, rezero: bool) -> None:
    """scaling, Eq. 8-16."""
    net = make("decoder-only", gate=gate, rezero=rezero)
    (rows,) = decision(net)
    for scale in (1.0, 1.3):
        h = F.linear(rows, net.embed.weight, net.embed.bias)
        x = torch.cat([net.current(h[:, 0])[:, None], h[:, 1:-1], net.start(h[:, -1])[:, None]], 1)
        for layer in net.layers:
            x = by_the_book.residual_layer(layer, x, scale)
        torch.testing.assert_close(net.decide(rows, scale), net.head(x)[:, 1:-1, 0], rtol=1e-12, atol=1e-12)


def test_rezero_starts_as_the_identity() -> None:
    x = torch.rand(2, 5, 24)
    for net in (DecoderOnly(4, 24, 2), Bq(1, 24, 3, 40)):
        torch.testing.assert_close(net.layers[0](x), x)


def test_log_n_factor_is_one_at_the_training_size() -> None:
    net = DecoderOnly(1, 8, 1, train_nodes=100)
    assert net.attention_scale(100) == 1.0
    assert net.attention_scale(1000) == pytest.approx(1.5)  # ln 1000 / ln 100
    assert net.attention_scale(50) < 1.0
