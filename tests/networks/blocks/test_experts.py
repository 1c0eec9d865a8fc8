"""Mixtures: sparse computation equals the dense one, backwards too; calls side by side are calls."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from neuroute.networks.blocks.mixture import Hierarchical, LinearExperts, Mixture, MlpExperts
from neuroute.networks.blocks.routing import (
    LEVELS,
    METHODS,
    NOISE_FLOOR,
    Balance,
    ExpertChoice,
    Gate,
    InputChoice,
    Routing,
    Slots,
    Tape,
    variation,
)

W, OUT, M, K, BATCH, TOKENS, UNITS = 6, 5, 4, 2, 3, 8, 7
GATES = [
    (method, level)
    for method in METHODS
    for level in LEVELS
    if level != "problem" or method in ("input-choice", "random")  # others have nothing to choose among
]


def mixture(method: Any = "input-choice", level: Any = "node", top: int = K, mlp: bool = False) -> Mixture:
    torch.manual_seed(0)
    made = Mixture(MlpExperts(M, W, 9) if mlp else LinearExperts(M, W, OUT), W, top, method, level).double()
    torch.nn.init.normal_(made.gate.weight)
    torch.nn.init.normal_(made.gate.noise)
    return made


def tokens(calls: int = 1) -> Tensor:
    torch.manual_seed(1)
    return torch.randn(BATCH, calls * TOKENS, W, dtype=torch.float64, requires_grad=True)


def every_expert(net: Mixture, x: Tensor) -> Tensor:
    """x (..., W) -> (m, ..., out): what each expert makes of it."""
    e = net.experts
    if isinstance(e, MlpExperts):
        hidden = [torch.relu(x @ w.T + b) for w, b in zip(e.up.weight, e.up.bias, strict=True)]
        return torch.stack([h @ w.T + b for h, w, b in zip(hidden, e.down.weight, e.down.bias, strict=True)])
    assert isinstance(e, LinearExperts)
    return torch.stack([x @ w.T + b for w, b in zip(e.weight, e.bias, strict=True)])


def dense(net: Mixture, x: Tensor, routing: Routing) -> Tensor:
    """Every expert on every token, weighed: x (batch, tokens, W) -> (batch, tokens, out)."""
    level = net.gate.level
    units = {"node": BATCH * TOKENS, "instance": BATCH, "problem": 1}[level]
    parts = x.reshape(units, -1, W)
    routed = net.gate(parts.mean(1)[None], routing)
    if isinstance(routed, Slots):
        slots = torch.einsum("us,utw->stw", routed.dispatch[0], parts).unflatten(0, (M, -1))
        made = torch.stack([every_expert(net, slots[j])[j] for j in range(M)]).flatten(0, 1)
        return torch.einsum("us,sto->uto", routed.combine[0], made).reshape(BATCH, TOKENS, -1)
    weights = torch.zeros(units, M, dtype=torch.float64)
    if isinstance(routed, ExpertChoice):
        weights = weights.scatter(0, routed.units[0], routed.weights[0])
    else:
        assert isinstance(routed, InputChoice)
        weights = weights.scatter(1, routed.experts[0], routed.weights[0].double())
    return torch.einsum("um,muto->uto", weights, every_expert(net, parts)).reshape(BATCH, TOKENS, -1)


@pytest.mark.parametrize("mlp", [False, True], ids=["linear", "mlp"])
@pytest.mark.parametrize(("method", "level"), GATES)
def test_sparse_equals_dense(method: str, level: str, mlp: bool) -> None:
    net, gradients = mixture(method, level, mlp=mlp), []
    outs = []
    for compute in (net, lambda x, routing: dense(net, x, routing)):
        x = tokens()
        out = compute(x, Routing(torch.Generator().manual_seed(4)))
        net.zero_grad()
        (out * torch.arange(out.numel()).view_as(out).cos()).sum().backward()
        outs.append(out.detach())
        grads = [p.grad for p in net.parameters()]
        gradients.append([x.grad, *(torch.zeros(()) if g is None else g.clone() for g in grads)])
    torch.testing.assert_close(outs[0], outs[1], rtol=1e-12, atol=1e-12)
    for sparse, whole in zip(*gradients, strict=True):
        torch.testing.assert_close(sparse, whole, rtol=1e-11, atol=1e-11)


def test_an_expert_that_nobody_takes_is_not_run() -> None:
    net, x = mixture().eval(), tokens()
    net.gate.weight.data.zero_()
    net.gate.weight.data[:2] = 1.0  # two scores of the sum of the channels, against two of 0
    x = x.detach().abs()
    for parameter in net.experts.parameters():
        parameter.data[2:] = torch.nan
    assert bool(net(x).isfinite().all())


@pytest.mark.parametrize(("method", "level"), GATES)
def test_calls_side_by_side_are_calls(method: str, level: str) -> None:
    """What a tape has kept, several calls at a time: the same outputs and the same balance loss."""
    net, x, calls = mixture(method, level), tokens(5).detach(), 5
    tape = Tape(torch.Generator().manual_seed(4), balance=True)
    one_by_one = torch.cat([net(part, tape) for part in x.split(TOKENS, dim=1)], dim=1)
    loss = tape.loss()
    replay = tape.replay(TOKENS)
    parts = [net(part, replay) for part in x.split([2 * TOKENS, (calls - 2) * TOKENS], dim=1)]
    torch.testing.assert_close(torch.cat(parts, dim=1), one_by_one)
    torch.testing.assert_close(replay.loss(), loss.to(one_by_one.dtype) if loss.any() else loss)
    if tape.kept:
        with pytest.raises(ValueError, match="the tape ends"):
            net(x[:, :TOKENS], replay)


@pytest.mark.parametrize("hierarchy", ["step", "random"])
def test_a_hierarchical_gate_multiplies_what_it_draws(hierarchy: Any) -> None:
    net = Hierarchical(mixture(), W, OUT, hierarchy).double()
    x, calls = tokens(9).detach(), 9
    tape = Tape(torch.Generator().manual_seed(4), balance=True)
    one_by_one = torch.cat([net(part, tape) for part in x.split(TOKENS, dim=1)], dim=1)
    sparse = torch.cat(tape.kept["sparse"])
    assert 0 < int(sparse.sum()) < calls
    assert len(tape.reports) == len(tape.kept["noise"]) == int(sparse.sum())
    noise = iter(tape.kept["noise"])
    for call, part in enumerate(x.split(TOKENS, dim=1)):
        p = torch.ones(2) if net.gate is None else net.gate(part.mean(dim=(0, 1))).softmax(-1)
        if sparse[call]:
            again = Tape()
            again.kept["noise"] = [next(noise)]
            expected = p[0] * net.sparse(part, again.replay(TOKENS))
        else:
            expected = p[1] * net.dense(part)
        torch.testing.assert_close(one_by_one[:, call * TOKENS : (call + 1) * TOKENS], expected)
    torch.testing.assert_close(net(x, tape.replay(TOKENS)), one_by_one)


def test_a_hierarchical_gate_draws_with_its_probabilities() -> None:
    net = Hierarchical(mixture(), W, OUT, "step").double()
    routing = Routing(torch.Generator().manual_seed(0), balance=True)
    first = torch.tensor([[0.8, 0.2]], dtype=torch.float64)
    for _ in range(400):
        net(tokens()[:1, :1], routing, first)
    assert 0.74 < float(torch.cat(routing.sparse).double().mean()) < 0.86


# -- gates: the paper's equations term by term, what starts where, and what they refuse -------------------------------


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
    net, x = mixture(top=top).gate, units()
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
    net, x, routing = mixture().gate.eval(), units(), Routing(balance=True)
    choice = net(x, routing)
    best, experts = (x @ net.weight.T).topk(K, dim=-1)
    assert torch.equal(choice.experts, experts)
    torch.testing.assert_close(choice.weights, best.softmax(-1))
    counts = torch.stack([(experts == j).sum(dim=(1, 2)) for j in range(M)], dim=1)
    assert torch.equal(routing.reports[0].load, counts.double())


def test_the_balance_loss_is_that_of_the_paper() -> None:
    importance, load = torch.rand(3, M), torch.rand(3, M)
    expected = sum(float(x.var() / x.mean() ** 2) for x in (*importance, *load))
    assert float(Balance(importance, load).loss()) == pytest.approx(expected, rel=1e-5)
    assert float(variation(torch.full((M,), 3.0))) == 0
    assert float(variation(torch.tensor([5.0]))) == 0


def test_a_single_expert_of_each_learns_from_the_balance_loss_alone() -> None:
    net, routing = mixture(top=1).gate, Routing(balance=True)
    choice = net(units(), routing)
    assert torch.equal(choice.weights, torch.ones_like(choice.weights))
    choice.weights.sum().backward(retain_graph=True)
    assert not net.weight.grad.any()
    routing.loss().backward()
    assert net.weight.grad.any()
    assert net.noise.grad.any()


@pytest.mark.usefixtures("one_thread")
def test_learning_from_the_balance_loss_spreads_the_nodes() -> None:
    """From a gate that sends every node to the same two experts, each of which so has half of the load."""
    torch.manual_seed(0)
    net = Mixture(LinearExperts(M, 8, 8), 8, K, "input-choice", "node")
    x = torch.randn(1, 400, 8) + 1
    with torch.no_grad():
        net.gate.weight[:K] += 0.5

    def routed() -> tuple[Routing, Tensor]:
        """And the load's shares by expert, with the noise that training has."""
        routing = Routing(balance=True)
        net(x, routing)
        load = routing.reports[0].load.detach().flatten()
        return routing, load / load.sum()

    assert routed()[1].max() > 0.4
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for _ in range(150):
        optimizer.zero_grad()
        routed()[0].loss().backward()
        optimizer.step()
    assert routed()[1].max() < 0.3
    assert routed()[1].min() > 0.2


def test_expert_choice_takes_the_best_units_of_each_expert() -> None:
    net, x = mixture("expert-choice").gate, units()
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
    slots = mixture("soft").gate(units(), Routing())
    assert isinstance(slots, Slots)
    assert slots.dispatch.shape == slots.combine.shape == (2, UNITS, M * K)
    torch.testing.assert_close(slots.dispatch.sum(1), torch.ones(2, M * K, dtype=torch.float64))
    torch.testing.assert_close(slots.combine.sum(2), torch.ones(2, UNITS, dtype=torch.float64))


def test_random_gates_choose_all_pairs_equally_often_in_evaluation_too() -> None:
    routing = Routing(torch.Generator().manual_seed(0))
    choice = mixture("random").gate.eval()(torch.zeros(1, 6000, W, dtype=torch.float64), routing)
    assert isinstance(choice, InputChoice)
    assert torch.equal(choice.weights, torch.full((1, 6000, K), 0.5))
    pairs = choice.experts[0].sort(dim=1).values
    _, counts = torch.unique(pairs, dim=0, return_counts=True)
    assert len(counts) == 6
    assert bool(((counts - 1000).abs() < 150).all())


@pytest.mark.parametrize(("method", "level"), GATES)
def test_gates_start_at_noise_where_they_are_noisy(method: Any, level: Any) -> None:
    net = Gate(W, M, K, method, level)
    noisy = method == "input-choice" and level != "problem"
    assert bool(net.weight.any()) != noisy
    assert float(net.weight.detach().abs().max()) <= 1 / math.sqrt(len(net.weight))
    assert not net.noise.any()
