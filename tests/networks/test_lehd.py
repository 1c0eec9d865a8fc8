"""LEHD for the TSP and the CVRP: what its encoder sees, where gradients go."""

import pytest
import torch
from torch import Tensor

from networks import make
from neuroute.decoding.decode import decode
from neuroute.networks.lehd import LehdCvrp
from neuroute.plan.objects import Decoding

EXACT = {"rtol": 1e-12, "atol": 1e-12}


def test_the_encoder_sees_every_node_that_it_is_given() -> None:
    net, coords = make("lehd"), torch.rand(2, 9, 2, dtype=torch.float64)
    moved = coords.clone()
    moved[:, 8] += 0.1
    assert not torch.allclose(net.encode(coords)[:, :8], net.encode(moved)[:, :8])
    assert not torch.allclose(net.encode(coords[:, :8]), net.encode(coords)[:, :8])


def test_greedy_encodes_once() -> None:
    net, calls = make("lehd"), 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    net.encoder.register_forward_hook(count)
    decode("tsp", net, torch.rand(3, 11, 2, dtype=torch.float64), Decoding())
    assert calls == 1


# -- CVRP -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def net() -> LehdCvrp:
    return make("lehd cvrp")


def state(batch: int = 3, customers: int = 7) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(1)
    coords = torch.rand(batch, customers + 1, 2, dtype=torch.float64)
    demand = torch.rand(batch, customers + 1, dtype=torch.float64) * 0.3
    demand[:, 0] = 0
    return coords, demand, torch.rand(batch, dtype=torch.float64)


def test_customers_enter_the_decoder_without_a_gradient(net: LehdCvrp) -> None:
    coords, demand, left = state()
    nodes = net.encode(coords, demand).detach().requires_grad_()
    net.decide(nodes.roll(-1, dims=1), left).square().sum().backward()
    assert (nodes.grad[:, 1:] == 0).all()
    assert (nodes.grad[:, 0] != 0).any()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in net.layers.parameters())
