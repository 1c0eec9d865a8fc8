"""BQ-NCO: size, formulas, initial values, invariances, and that every way to decode works with it."""

import pytest
import torch

from neuroute.decoding.beam import beam_tours
from neuroute.decoding.decode import decode
from neuroute.networks.bq import Bq
from neuroute.networks.weights import parameters
from neuroute.plan.objects import Decoding
from neuroute.training.decisions import PathDecision, loss


def awake() -> Bq:
    """A float64 network whose ReZero scalars and biases have left zero."""
    torch.manual_seed(0)
    net = Bq(depth=3, width=24, heads=3, feed_forward=40).double().eval()
    for layer in net.layers:
        layer.alpha1.data.fill_(0.7)
        layer.alpha2.data.fill_(-0.4)
        layer.key_value_bias.data.normal_()
    return net


def test_published_size() -> None:
    with torch.device("meta"):
        net = Bq()
    assert parameters(net) == 3_107_539
    assert parameters(net.layers[0]) == 345_154


def by_the_book(net: Bq, rows: torch.Tensor) -> torch.Tensor:
    """The published computation on (heads, width, d_k) tensors; scores are not divided by sqrt(d_k)."""
    x = rows @ net.embed.weight.T + net.embed.bias
    x = torch.cat([x[:, :1] + net.ends.weight[0], x[:, 1:-1], x[:, -1:] + net.ends.weight[1]], dim=1)
    for layer in net.layers:
        width = x.shape[-1]
        d_k = width // layer.heads
        w_q, w_k, w_v = layer.qkv.weight.view(3, layer.heads, d_k, width).transpose(2, 3)
        b_k, b_v = layer.key_value_bias.view(2, layer.heads, 1, d_k)
        w_o = layer.out.weight.view(width, layer.heads, d_k)
        q = torch.einsum("btw,hwd->bhtd", x, w_q)
        k = torch.einsum("btw,hwd->bhtd", x, w_k) + b_k
        v = torch.einsum("btw,hwd->bhtd", x, w_v) + b_v
        attended = torch.softmax(torch.einsum("bhtd,bhsd->bhts", q, k), dim=-1) @ v
        x = x + layer.alpha1 * torch.einsum("bhtd,whd->btw", attended, w_o)
        x = x + layer.alpha2 * layer.down(torch.relu(layer.up(x)))
    return (x @ net.head.weight.T + net.head.bias)[:, 1:-1, 0]


def test_equals_the_formulas() -> None:
    net, rows = awake(), torch.rand(5, 12, 2, dtype=torch.float64)
    torch.testing.assert_close(net.decide(rows), by_the_book(net, rows), rtol=1e-10, atol=1e-10)


def test_scores_are_not_divided() -> None:
    net, rows = awake(), torch.rand(5, 12, 2, dtype=torch.float64)
    assert not torch.allclose(net.decide(rows, 8**-0.5), by_the_book(net, rows))


def test_initial_values() -> None:
    net = Bq()
    for layer in net.layers:
        for weight in (layer.qkv.weight, layer.out.weight):  # Xavier's bound on (12, 192, 16) tensors
            assert weight.abs().max().item() == pytest.approx(0.0429, abs=1e-4)
        assert not layer.key_value_bias.any()
        assert layer.alpha1.item() == layer.alpha2.item() == 0
    of_torch = torch.nn.init.xavier_uniform_(torch.empty(12, 192, 16))
    assert of_torch.abs().max().item() == pytest.approx(net.layers[0].qkv.weight.abs().max().item(), abs=1e-4)


def test_the_bias_of_the_keys_is_inert_and_that_of_the_values_is_not() -> None:
    net, path = awake(), torch.rand(8, 10, 2, dtype=torch.float64)
    before = net.decide(path)
    loss(PathDecision(net), path, 0).backward()
    for layer in net.layers:
        of_keys, of_values = layer.key_value_bias.grad.chunk(2)
        assert of_keys.abs().max() < 1e-12 < 1e-6 < of_values.abs().max()
        layer.key_value_bias.data[:24] += 1.0
    torch.testing.assert_close(net.decide(path), before, rtol=1e-10, atol=1e-10)
    net.layers[0].key_value_bias.data[24:] += 1.0
    assert not torch.allclose(net.decide(path), before)


def test_order_of_the_candidates_does_not_matter() -> None:
    net, rows = awake(), torch.rand(4, 20, 2, dtype=torch.float64)
    shuffle = torch.randperm(18)
    shuffled = torch.cat([rows[:, :1], rows[:, 1:-1][:, shuffle], rows[:, -1:]], 1)
    torch.testing.assert_close(net.decide(shuffled), net.decide(rows)[:, shuffle], rtol=1e-12, atol=1e-12)


def test_start_and_current_are_told_apart() -> None:
    net, rows = awake(), torch.rand(4, 20, 2, dtype=torch.float64)
    assert not torch.allclose(net.decide(rows), net.decide(rows.flip(1)).flip(1))


def test_a_batch_decides_as_its_instances_do() -> None:
    net, rows = awake(), torch.rand(6, 15, 2, dtype=torch.float64)
    alone = torch.cat([net.decide(one[None]) for one in rows])
    torch.testing.assert_close(net.decide(rows), alone, rtol=1e-12, atol=1e-12)


def test_rezero_starts_as_the_identity() -> None:
    x = torch.rand(2, 5, 24)
    torch.testing.assert_close(Bq(1, 24, 3, 40).layers[0](x), x)


def test_decoding_gives_tours_and_a_beam_of_one_is_greedy() -> None:
    net, coords = awake(), torch.rand(5, 13, 2, dtype=torch.float64)
    greedy = decode("tsp", net, coords, Decoding())
    assert torch.equal(beam_tours(net.decide, coords, coords, 1), greedy)
    for how in (Decoding(), Decoding(method="beam", beam=4), Decoding(method="rrc", iterations=5)):
        assert torch.equal(decode("tsp", net, coords, how).sort(dim=1).values, torch.arange(13).expand(5, 13)), how.id
    assert torch.equal(decode("tsp", net, coords, Decoding(log_n=False)), greedy)  # BQ-NCO has no such factor
