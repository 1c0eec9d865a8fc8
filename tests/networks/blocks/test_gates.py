"""Gates: the paper's equations term by term, what starts where, and what they refuse."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from neuroute.networks.blocks.experts.gates import LEVELS, METHODS, NOISE_FLOOR, ExpertChoice, Gate, InputChoice, Slots
from neuroute.networks.blocks.experts.routing import Balance, Routing, Tape, variation

W, M, K, UNITS = 6, 4, 2, 7


def gate(method: Any = "input-choice", level: Any = "node", top: int = K) -> Gate:
    torch.manual_seed(0)
    made = Gate(W, M, top, method, level).double()
    torch.nn.init.normal_(made.weight)
    torch.nn.init.normal_(made.noise)
    return made


def units() -> Tensor:
    torch.manual_seed(1)
    return torch.randn(2, UNITS, W, dtype=torch.float64)


@torch.no_grad()
def by_the_book(net: Gate, x: Tensor, normal: Tensor) -> tuple[Tensor, Tensor]:
    """Equations 15 to 18, unit by unit: gates (units, m) and load (m,)."""
    gates, load = torch.zeros(len(x), M, dtype=torch.float64), [0.0] * M
    for unit, (row, noise) in enumerate(zip(x, normal, strict=True)):
        h = [float(row @ net.weight[j]) for j in range(M)]
        deviation = [math.log1p(math.exp(float(row @ net.noise[j]))) + NOISE_FLOOR for j in range(M)]
        noisy = [h[j] + float(noise[j]) * deviation[j] for j in range(M)]
        best = sorted(range(M), key=lambda j: -noisy[j])[: net.top]
        total = sum(math.exp(noisy[j]) for j in best)
        for j in best:
            gates[unit, j] = math.exp(noisy[j]) / total
        for j in range(M):
            threshold = sorted((noisy[i] for i in range(M) if i != j), reverse=True)[net.top - 1]
            load[j] += 0.5 * (1 + math.erf((h[j] - threshold) / deviation[j] / math.sqrt(2)))
    return gates, torch.tensor(load, dtype=torch.float64)


@pytest.mark.parametrize("top", [1, 2, 3])
def test_noisy_input_choice_is_that_of_the_equations(top: int) -> None:
    net, x = gate(top=top), units()
    tape = Tape(torch.Generator().manual_seed(3), balance=True)
    choice = net(x, tape)
    (report,), (normal,) = tape.reports, tape.kept["noise"]
    for call in range(2):
        gates, load = by_the_book(net, x[call], normal[call])
        found = torch.zeros_like(gates).scatter(1, choice.experts[call], choice.weights[call])
        torch.testing.assert_close(found, gates)
        torch.testing.assert_close(report.importance[call], gates.sum(0))
        torch.testing.assert_close(report.load[call], load)


def test_evaluation_has_no_noise_and_counts_loads() -> None:
    net, x, routing = gate().eval(), units(), Routing(balance=True)
    choice = net(x, routing)
    best, experts = (x @ net.weight.T).topk(K, dim=-1)
    assert torch.equal(choice.experts, experts)
    torch.testing.assert_close(choice.weights, best.softmax(-1))
    counts = torch.stack([(experts == j).sum(dim=(1, 2)) for j in range(M)], dim=1)
    assert torch.equal(routing.reports[0].load, counts.double())


def test_all_experts_have_counted_loads_in_training_too() -> None:
    routing = Routing(balance=True)
    gate(top=M)(units(), routing)
    assert torch.equal(routing.reports[0].load, torch.full((2, M), UNITS, dtype=torch.float64))


def test_the_balance_loss_is_that_of_the_paper() -> None:
    importance, load = torch.rand(3, M), torch.rand(3, M)
    expected = sum(float(x.var() / x.mean() ** 2) for x in (*importance, *load))
    assert float(Balance(importance, load).loss()) == pytest.approx(expected, rel=1e-5)
    assert float(variation(torch.full((M,), 3.0))) == 0
    assert float(variation(torch.tensor([5.0]))) == 0


def test_a_single_expert_of_each_learns_from_the_balance_loss_alone() -> None:
    net, routing = gate(top=1), Routing(balance=True)
    choice = net(units(), routing)
    assert torch.equal(choice.weights, torch.ones_like(choice.weights))
    choice.weights.sum().backward(retain_graph=True)
    assert not net.weight.grad.any()
    routing.loss().backward()
    assert net.weight.grad.any()
    assert net.noise.grad.any()


def test_noise_is_that_of_the_generator() -> None:
    net, x = gate(), units()
    first, again, other = (net(x, Routing(torch.Generator().manual_seed(seed))).weights for seed in (5, 5, 6))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_expert_choice_takes_the_best_units_of_each_expert() -> None:
    net, x = gate("expert-choice"), units()
    taken = net(x, Routing())
    assert isinstance(taken, ExpertChoice)
    p = (x @ net.weight.T).softmax(dim=1).detach()
    for call in range(2):
        for j in range(M):
            best = sorted(range(UNITS), key=lambda unit: -float(p[call, unit, j]))[: UNITS * K // M]
            assert taken.units[call, :, j].tolist() == best
            torch.testing.assert_close(taken.weights[call, :, j], p[call, best, j])
    assert net(x[:, :1], Routing()).units.shape == (2, 1, M)  # one at least


def test_soft_mixtures_are_convex() -> None:
    slots = gate("soft")(units(), Routing())
    assert isinstance(slots, Slots)
    assert slots.dispatch.shape == slots.combine.shape == (2, UNITS, M * K)
    torch.testing.assert_close(slots.dispatch.sum(1), torch.ones(2, M * K, dtype=torch.float64))
    torch.testing.assert_close(slots.combine.sum(2), torch.ones(2, UNITS, dtype=torch.float64))


def test_random_gates_choose_all_pairs_equally_often_in_evaluation_too() -> None:
    routing = Routing(torch.Generator().manual_seed(0))
    choice = gate("random").eval()(torch.zeros(1, 6000, W, dtype=torch.float64), routing)
    assert isinstance(choice, InputChoice)
    assert torch.equal(choice.weights, torch.full((1, 6000, K), 0.5))
    pairs = choice.experts[0].sort(dim=1).values
    _, counts = torch.unique(pairs, dim=0, return_counts=True)
    assert len(counts) == 6
    assert bool(((counts - 1000).abs() < 150).all())


def test_gates_start_at_noise_where_they_are_noisy() -> None:
    for method in METHODS:
        for level in LEVELS:
            if level == "problem" and method in ("expert-choice", "soft"):
                continue
            net = Gate(W, M, K, method, level)
            noisy = method == "input-choice" and level != "problem"
            assert bool(net.weight.any()) != noisy
            assert float(net.weight.detach().abs().max()) <= 1 / math.sqrt(len(net.weight))
            assert not net.noise.any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "best"}, "no gate 'best'"),
        ({"level": "galaxy"}, "at level 'galaxy'"),
        ({"method": "soft", "level": "problem"}, "nothing to choose from"),
        ({"top": 5}, "from 1 to all 4 experts, not 5"),
        ({"top": 0}, "not 0"),
    ],
)
def test_what_is_not_there_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Gate(**{"width": W, "experts": M, "top": K} | change)
