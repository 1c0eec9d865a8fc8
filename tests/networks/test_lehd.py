"""LEHD: size, formulas, invariances, and that every way to decode works with it."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from neuroute.decoding.beam import beam_tours
from neuroute.decoding.decode import decode
from neuroute.networks.blocks.residual_layer import ResidualLayer
from neuroute.networks.lehd import Lehd
from neuroute.networks.weights import parameters
from neuroute.plan.objects import Decoding
from neuroute.training.decisions import PathDecision, loss


def small(dtype: torch.dtype = torch.float64, **shape: int) -> Lehd:
    torch.manual_seed(0)
    return Lehd(**({"depth": 3, "width": 24, "heads": 3, "feed_forward": 40} | shape)).to(dtype).eval()


@pytest.mark.parametrize(
    ("depth", "width", "feed_forward", "count"), [(6, 128, 512, 1_431_681), (24, 64, 256, 1_251_137)]
)
def test_published_sizes(depth: int, width: int, feed_forward: int, count: int) -> None:
    """The released model, and the deep one of scaling, Table 20, which fits an FFN of 4 W."""
    with torch.device("meta"):
        assert parameters(Lehd(depth, width, 8, feed_forward)) == count


def layer_by_the_book(layer: ResidualLayer, x: Tensor) -> Tensor:
    """x + MHA(x), then + FFN, one head after the other; no normalisation."""
    w_q, w_k, w_v = layer.qkv.weight.chunk(3)
    d_k = len(w_q) // layer.heads
    attended = []
    for i in range(layer.heads):
        part = slice(i * d_k, (i + 1) * d_k)
        q, k, v = x @ w_q[part].T, x @ w_k[part].T, x @ w_v[part].T
        attended.append(torch.softmax(q @ k.transpose(1, 2) / d_k**0.5, dim=-1) @ v)
    x = x + F.linear(torch.cat(attended, -1), layer.out.weight, layer.out.bias)
    return x + layer.down(torch.relu(layer.up(x)))


def test_equals_the_formulas() -> None:
    net, coords = small(), torch.rand(5, 12, 2, dtype=torch.float64)
    nodes = layer_by_the_book(net.encoder, coords @ net.embed.weight.T + net.embed.bias)
    torch.testing.assert_close(net.encode(coords), nodes, rtol=1e-12, atol=1e-12)
    x = torch.cat([net.current(nodes[:, 3:4]), nodes[:, 4:11], net.start(nodes[:, 11:])], dim=1)
    for layer in net.layers:
        x = layer_by_the_book(layer, x)
    expected = (x @ net.head.weight.T + net.head.bias)[:, 1:-1, 0]
    torch.testing.assert_close(net.decide(net.encode(coords)[:, 3:]), expected, rtol=1e-12, atol=1e-12)


def test_the_encoder_sees_every_node_that_it_is_given() -> None:
    net, coords = small(), torch.rand(2, 9, 2, dtype=torch.float64)
    moved = coords.clone()
    moved[:, 8] += 0.1
    assert not torch.allclose(net.encode(coords)[:, :8], net.encode(moved)[:, :8])
    assert not torch.allclose(net.encode(coords[:, :8]), net.encode(coords)[:, :8])


def test_order_of_the_candidates_does_not_matter() -> None:
    net, rows = small(), torch.rand(4, 20, 24, dtype=torch.float64)
    shuffle = torch.randperm(18)
    shuffled = torch.cat([rows[:, :1], rows[:, 1:-1][:, shuffle], rows[:, -1:]], 1)
    torch.testing.assert_close(net.decide(shuffled), net.decide(rows)[:, shuffle], rtol=1e-12, atol=1e-12)


def test_start_and_current_are_told_apart() -> None:
    net, rows = small(), torch.rand(4, 20, 24, dtype=torch.float64)
    assert not torch.allclose(net.decide(rows), net.decide(rows.flip(1)).flip(1))


def test_a_batch_decides_as_its_instances_do() -> None:
    net, coords = small(), torch.rand(6, 15, 2, dtype=torch.float64)
    alone = torch.cat([net.decide(net.encode(one[None])) for one in coords])
    torch.testing.assert_close(net.decide(net.encode(coords)), alone, rtol=1e-12, atol=1e-12)


def test_everything_but_the_unused_projection_learns() -> None:
    net = small()
    loss(PathDecision(net), torch.rand(8, 10, 2, dtype=torch.float64), 2).backward()
    idle = {name for name, p in net.named_parameters() if p.grad is None or not p.grad.any()}
    # The head's bias adds the same to all scores.
    assert idle - {"head.bias"} == {"unused.weight", "unused.bias"}


def test_decoding_gives_tours_and_a_beam_of_one_is_greedy() -> None:
    net, coords = small(), torch.rand(5, 13, 2, dtype=torch.float64)
    greedy = decode("tsp", net, coords, Decoding())
    assert torch.equal(beam_tours(net.decide, net.encode(coords), coords, 1), greedy)
    for how in (Decoding(method="beam", beam=4), Decoding(method="rrc", iterations=5), Decoding(log_n=False)):
        assert torch.equal(decode("tsp", net, coords, how).sort(dim=1).values, torch.arange(13).expand(5, 13)), how.id
    assert torch.equal(decode("tsp", net, coords, Decoding(log_n=False)), greedy)  # LEHD has no such factor


def test_greedy_encodes_once() -> None:
    net, calls = small(), 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    net.encoder.register_forward_hook(count)
    decode("tsp", net, torch.rand(3, 11, 2, dtype=torch.float64), Decoding())
    assert calls == 1


def test_width_must_divide_into_heads() -> None:
    with pytest.raises(ValueError, match="not divisible"):
        Lehd(1, 10, 4, 16)
