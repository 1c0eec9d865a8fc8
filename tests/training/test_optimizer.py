"""Updates are those of the papers that Adam and AdamW are from, and go on from moments that are kept elsewhere."""

import copy

import pytest
import torch
from torch import Tensor, nn

from neuroute.networks.weights import all_finite
from neuroute.training.batches import adam

RATE, DECAY, STEPS = 1e-2, 0.1, 5


def net_and_gradients(dtype: torch.dtype) -> tuple[nn.Module, list[list[Tensor]]]:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(37, 53), nn.Linear(53, 1)).to(dtype)
    return net, [[torch.randn_like(weight) for weight in net.parameters()] for _ in range(STEPS)]


def go(net: nn.Module, optimizer: torch.optim.Optimizer, gradients: list[list[Tensor]]) -> None:
    for step in gradients:
        for weight, gradient in zip(net.parameters(), step, strict=True):
            weight.grad = gradient.clone()
        optimizer.step()


def by_the_book(weight: Tensor, gradients: list[Tensor], *, decoupled: bool) -> Tensor:
    """Algorithm 2 of Loshchilov & Hutter (2019), in float64."""
    weight, mean, square = weight.double(), torch.zeros(()), torch.zeros(())
    for number, given in enumerate(gradients, start=1):
        gradient = given.double() + (0 if decoupled else DECAY * weight)
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        step = mean / (1 - 0.9**number) / ((square / (1 - 0.999**number)).sqrt() + 1e-8)
        weight = weight - RATE * (step + (DECAY * weight if decoupled else 0))
    return weight


@pytest.mark.parametrize("decoupled", [False, True])
@pytest.mark.parametrize(("dtype", "digits"), [(torch.float32, 1e-6), (torch.float64, 1e-14)])
def test_updates_are_the_algorithm_s(dtype: torch.dtype, digits: float, decoupled: bool) -> None:
    net, gradients = net_and_gradients(dtype)
    before = [weight.detach().clone() for weight in net.parameters()]
    go(net, adam(net, RATE, DECAY, decoupled), gradients)
    for weight, first, *of_steps in zip(net.parameters(), before, *gradients, strict=True):
        wanted = by_the_book(first, of_steps, decoupled=decoupled)
        torch.testing.assert_close(weight.detach().double(), wanted, rtol=digits, atol=digits)


def test_a_state_goes_on_to_the_bit_whatever_way_made_it() -> None:
    """Also one that was kept when updates were not fused: it goes on as it was."""
    for make in (
        lambda net: adam(net, RATE, DECAY, decoupled=True),
        lambda net: torch.optim.AdamW(net.parameters(), RATE, weight_decay=DECAY, foreach=True),
    ):
        whole, gradients = net_and_gradients(torch.float32)
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
    net, _ = net_and_gradients(torch.float32)
    assert all_finite(net)
    for weight in net.parameters():
        for place in (0, weight.numel() // 2, -1):
            kept = weight.data.view(-1)[place].item()
            weight.data.view(-1)[place] = bad
            assert not all_finite(net)
            weight.data.view(-1)[place] = kept
    assert all_finite(net)
