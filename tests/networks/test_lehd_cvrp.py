"""LEHD for the CVRP: its size, its formulas, where gradients go."""

import math

import pytest
import torch
import torch.nn.functional as F

from neuroute.networks.lehd import LehdCvrp


@pytest.fixture
def net() -> LehdCvrp:
    torch.manual_seed(0)
    return LehdCvrp(depth=2, width=16, heads=4, feed_forward=24).double()


def state(batch: int = 3, customers: int = 7) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    coords = torch.rand(batch, customers + 1, 2, dtype=torch.float64)
    demand = torch.rand(batch, customers + 1, dtype=torch.float64) * 0.3
    demand[:, 0] = 0
    return coords, demand, torch.rand(batch, dtype=torch.float64)


def layer_by_the_book(layer, x: torch.Tensor) -> torch.Tensor:
    """x + MHA(x), then + FFN, head by head."""
    w_q, w_k, w_v = layer.qkv.weight.chunk(3)
    d_k, heads = len(w_q) // layer.heads, []
    for i in range(layer.heads):
        part = slice(i * d_k, (i + 1) * d_k)
        q, k, v = x @ w_q[part].T, x @ w_k[part].T, x @ w_v[part].T
        heads.append(torch.softmax(q @ k.transpose(1, 2) / math.sqrt(d_k), -1) @ v)
    x = x + layer.out(torch.cat(heads, -1))
    return x + layer.down(torch.relu(layer.up(x)))


def test_equals_the_formulas_in_lehds_order(net: LehdCvrp) -> None:
    """LEHD feeds [depot, unvisited customers, current] to its decoder."""
    coords, demand, left = state()
    nodes = layer_by_the_book(net.encoder, net.embed(torch.cat([coords, demand[..., None]], -1)))
    torch.testing.assert_close(net.encode(coords, demand), nodes, rtol=1e-12, atol=1e-12)
    with_left = lambda h: torch.cat([h, left[:, None]], -1)  # noqa: E731
    current, available = nodes[:, 3], nodes[:, [1, 2, 5, 6, 7]]
    h = torch.cat([net.start(with_left(nodes[:, 0]))[:, None], available, net.current(with_left(current))[:, None]], 1)
    for layer in net.layers:
        h = layer_by_the_book(layer, h)
    expected = F.linear(h, net.head.weight, net.head.bias)[:, 1:-1]
    rows = torch.cat([nodes[:, 3:4], available, nodes[:, :1]], 1)
    found = net.decide(rows, left)
    assert found.shape == (3, 5, 2)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_customers_enter_the_decoder_without_a_gradient(net: LehdCvrp) -> None:
    coords, demand, left = state()
    nodes = net.encode(coords, demand).detach().requires_grad_()
    net.decide(nodes.roll(-1, dims=1), left).square().sum().backward()
    assert (nodes.grad[:, 1:] == 0).all()
    assert (nodes.grad[:, 0] != 0).any()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in net.layers.parameters())


def test_the_encoder_learns_through_the_depot(net: LehdCvrp) -> None:
    coords, demand, left = state()
    net.decide(net.encode(coords, demand).roll(-1, dims=1), left).square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in net.parameters())


def test_demand_and_what_is_left_matter_and_the_order_of_candidates_does_not(net: LehdCvrp) -> None:
    coords, demand, left = state()
    rows = net.encode(coords, demand).roll(-1, dims=1)
    logits = net.decide(rows, left)
    shuffle = torch.randperm(6)
    shuffled = torch.cat([rows[:, :1], rows[:, 1:-1][:, shuffle], rows[:, -1:]], 1)
    torch.testing.assert_close(net.decide(shuffled, left), logits[:, shuffle], rtol=1e-12, atol=1e-12)
    assert not torch.allclose(net.decide(rows, left / 2), logits)
    assert not torch.allclose(net.decide(net.encode(coords, demand / 2).roll(-1, dims=1), left), logits)
