"""Updates are those of the papers that Adam and AdamW are from, and go on from moments that are kept elsewhere."""

import copy

import pytest
import torch
from torch import Tensor, nn

from neuroute.networks.weights import all_finite
from neuroute.training.batches import adam

RATE, DECAY, STEPS = 1e-2, 0.1, 5


def net_and_gradients() -> tuple[nn.Module, list[list[Tensor]]]:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(37, 53), nn.Linear(53, 1))
    return net, [[torch.randn_like(weight) for weight in net.parameters()] for _ in range(STEPS)]


def go(net: nn.Module, optimizer: torch.optim.Optimizer, gradients: list[list[Tensor]]) -> None:
    for step in gradients:
        for weight, gradient in zip(net.parameters(), step, strict=True):
            weight.grad = gradient.clone()
        optimizer.step()


@pytest.mark.parametrize(("decoupled", "kind"), [(False, torch.optim.Adam), (True, torch.optim.AdamW)])
def test_its_constants_are_those_of_the_papers(decoupled: bool, kind: type) -> None:
    optimizer = adam(nn.Linear(2, 1), RATE, DECAY, decoupled)
    wanted = {"lr": RATE, "weight_decay": DECAY, "betas": (0.9, 0.999), "eps": 1e-8, "amsgrad": False}
    assert type(optimizer) is kind
    assert wanted.items() <= optimizer.param_groups[0].items()


def test_a_state_goes_on_to_the_bit_whatever_way_made_it() -> None:
    """Also one that was kept when updates were not fused: it goes on as it was."""
    for make in (
        lambda net: adam(net, RATE, DECAY, decoupled=True),
        lambda net: torch.optim.AdamW(net.parameters(), RATE, weight_decay=DECAY, foreach=True),
    ):
        whole, gradients = net_and_gradients()
        parted, first = copy.deepcopy(whole), make(whole)
        go(whole, first, gradients)
        begun = make(parted)
        go(parted, begun, gradients[:2])
        resumed = adam(parted, RATE, DECAY, decoupled=True)
        resumed.load_state_dict(copy.deepcopy(begun.state_dict()))
        go(parted, resumed, gradients[2:])
        assert all(map(torch.equal, whole.parameters(), parted.parameters()))


@pytest.mark.parametrize("bad", [torch.inf, -torch.inf, torch.nan])
def test_a_weight_that_is_no_finite_number_is_seen(bad: float) -> None:
    net, _ = net_and_gradients()
    assert all_finite(net)
    for weight in net.parameters():
        for place in (0, weight.numel() // 2, -1):
            kept = weight.data.view(-1)[place].item()
            weight.data.view(-1)[place] = bad
            assert not all_finite(net)
            weight.data.view(-1)[place] = kept
    assert all_finite(net)
