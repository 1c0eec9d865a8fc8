"""LEHD for the TSP and the CVRP: when its encoder runs, where gradients go."""

import torch

from networks import decision, make
from neuroute.decoding.decode import decode
from neuroute.plan.objects import Decoding


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
