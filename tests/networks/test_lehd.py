"""LEHD/4E-L: LEHD as a special case, what its gates draw, that it learns; LEHD: its encoder, where gradients go."""

from typing import Any

import pytest
import torch
from torch import Tensor

from networks import decision, make
from neuroute.decoding.decode import decode
from neuroute.networks.blocks.routing import Routing
from neuroute.networks.lehd import LehdCvrp, LehdCvrpLight
from neuroute.specs.objects import Decoding

pytestmark = pytest.mark.usefixtures("one_thread")

SHAPE: dict[str, Any] = {"depth": 2, "width": 16, "heads": 4, "feed_forward": 24}


@pytest.fixture
def net() -> LehdCvrpLight:
    torch.manual_seed(0)
    made = LehdCvrpLight(**SHAPE).double()
    for name, p in made.named_parameters():
        if "gate" in name:
            p.data.normal_(0.0, 0.5)
    return made


def decided(net: LehdCvrpLight, routing: Routing | None = None, customers: int = 7) -> Tensor:
    rows, left = decision(net, 3, customers + 1)
    return net.decide(rows, left) if routing is None else net.decide(rows, left, 1.0, routing)


def test_an_ungated_ffn_is_lehds(net: LehdCvrpLight) -> None:
    """With equal experts and the gate's factor undone, LEHD/4E-L is LEHD, whatever its gates draw."""
    lehd = LehdCvrp(**SHAPE).double()
    own = lehd.state_dict()
    for name, value in net.state_dict().items():
        if name in own and "light" not in name:
            own[name].copy_(value)
    for light, plain in zip(net.layers, lehd.layers, strict=True):
        light.light.gate = None  # neither branch is multiplied, each as likely
        for part, dense in ((plain.up, light.light.dense[0]), (plain.down, light.light.dense[2])):
            dense.load_state_dict(part.state_dict())
        for part, experts in ((plain.up, "up"), (plain.down, "down")):
            for field in ("weight", "bias"):
                getattr(getattr(light.light.sparse.experts, experts), field).data.copy_(getattr(part, field))
    expected = lehd.decide(*decision(lehd, 3, 8))
    for seed in range(6):
        found = decided(net, Routing(torch.Generator().manual_seed(seed)))
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


def test_draws_are_repeated_and_differ_from_step_to_step(net: LehdCvrpLight) -> None:
    net.eval()
    for layer in net.layers:
        layer.light.gate.weight.data.zero_()  # both as likely
    assert torch.equal(decided(net), decided(net))
    drawn = set()
    for customers in range(4, 24):
        seen = Routing(torch.Generator().manual_seed(customers + 1), balance=True)
        assert torch.equal(decided(net, seen, customers), decided(net, customers=customers))
        drawn.add(tuple(bool(each) for each in seen.sparse))
    assert drawn == {(a, b) for a in (False, True) for b in (False, True)}
    net.train()  # from torch's own generator
    rows, left = decision(net, 3, 8)
    assert len({float(net.decide(rows, left).detach().sum()) for _ in range(12)}) > 4


def test_greedy_encodes_once() -> None:
    net, calls = make("lehd"), 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    net.encoder.register_forward_hook(count)
    decode("tsp", net, torch.rand(3, 11, 2, dtype=torch.float64), Decoding())
    assert calls == 1


def test_customers_enter_the_decoder_without_a_gradient() -> None:
    net = make("lehd cvrp")
    rows, left = decision(net)
    net.decide(rows.requires_grad_(), left).square().sum().backward()
    assert (rows.grad[:, :-1] == 0).all()
    assert (rows.grad[:, -1] != 0).any()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in net.layers.parameters())
