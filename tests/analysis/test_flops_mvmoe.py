"""Counts of MVMoE: those of the built network, and of torch's counter."""

from typing import Any

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from neuroute.accounting.flops_mvmoe import Mvmoe
from neuroute.networks.mvmoe import MvMoe
from neuroute.networks.routing import Routing
from neuroute.networks.weights import parameters

SHAPE: dict[str, Any] = {"depth": 3, "width": 24, "heads": 3, "feed_forward": 40}
EVERYWHERE = {"positions": ["raw", "enc", "dec"]}
CASES: list[dict[str, Any]] = [
    {"experts": 0},
    {"experts": 0, "inputs": "VRPL"},
    {"experts": 5, "top": 3},
    {"positions": ["enc1", "raw"], "inputs": "OVRPBTW"},
    {"method": "random"} | EVERYWHERE,
    {"method": "expert-choice"} | EVERYWHERE,
    {"method": "soft"} | EVERYWHERE,
    {"method": "soft", "level": "instance"},
    {"method": "expert-choice", "level": "instance"},
    {"level": "instance"},
    {"level": "problem"},
    {"decoder_method": "soft"},
    {"hierarchy": "step"},
    {"hierarchy": "random"},
    {"norm": "rezero"},
    {"norm": "none"},
    {"norm": "batch"},
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_parameters_are_those_of_the_network(case: dict[str, Any]) -> None:
    with torch.device("meta"):
        assert Mvmoe(**SHAPE, **case).parameters == parameters(MvMoe(**SHAPE, **case))


def test_active_parameters_of_the_published_network() -> None:
    assert Mvmoe().active_parameters == 2_068_608
    assert Mvmoe(experts=0).active_parameters == Mvmoe(experts=0).parameters


@pytest.mark.parametrize("case", CASES, ids=str)
def test_flops_are_those_of_torchs_counter(case: dict[str, Any]) -> None:
    torch.manual_seed(0)
    net, counts, n, tours = MvMoe(**SHAPE, **case).eval(), Mvmoe(**SHAPE, **case), 9, 4
    coords, demand, windows = torch.rand(1, n, 2), torch.rand(1, n), torch.rand(1, n, 2)
    state = torch.rand(1, tours, 4), torch.tensor([[1, 2, 3, 4]]), torch.zeros(1, tours, n)
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        with FlopCounterMode(display=False) as counter:
            encoded = net.encode(coords, demand, windows)
            net.prepare(encoded)
        assert counter.get_total_flops() == counts.encoder_flops(n, matmul_only=True)
        for seed in range(4):  # both branches of a hierarchical gate
            routing = Routing(torch.Generator().manual_seed(seed), balance=True)
            prepared = net.prepare(encoded, routing)
            with FlopCounterMode(display=False) as counter:
                net.decide(prepared, *state)
            sparse = all(bool(each) for each in routing.sparse)
            assert counter.get_total_flops() == counts.decision_flops(n, tours, sparse=sparse, matmul_only=True)


def test_what_is_not_routed_is_not_computed() -> None:
    """Twice as many experts cost what their gates do."""
    four, eight = Mvmoe(experts=4), Mvmoe(experts=8)
    assert eight.encoder_flops(51) - four.encoder_flops(51) == 6 * 51 * 2 * 128 * 4
    assert eight.decision_flops(51) - four.decision_flops(51) == 2 * 128 * 4
