"""LEHD for the TSP and the CVRP: what its encoder sees, where gradients go."""

import torch

from networks import decision, make
from neuroute.decoding.decode import decode
from neuroute.plan.objects import Decoding


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


def test_customers_enter_the_decoder_without_a_gradient() -> None:
    net = make("lehd cvrp")
    rows, left = decision(net)
    net.decide(rows.requires_grad_(), left).square().sum().backward()
    assert (rows.grad[:, :-1] == 0).all()
    assert (rows.grad[:, -1] != 0).any()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in net.layers.parameters())
