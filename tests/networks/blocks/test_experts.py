"""Mixtures: sparse computation equals the dense one, backwards too; calls side by side are calls."""

from typing import Any

import pytest
import torch
from torch import Tensor

from neuroute.networks.blocks.experts.gates import ExpertChoice, InputChoice, Slots
from neuroute.networks.blocks.experts.mixture import Hierarchical, LinearExperts, Mixture, MlpExperts, join_calls
from neuroute.networks.blocks.experts.routing import Routing, Tape

W, OUT, M, K, BATCH, TOKENS = 6, 5, 4, 2, 3, 8
GATES = [
    ("input-choice", "node"),
    ("input-choice", "instance"),
    ("input-choice", "problem"),
    ("random", "node"),
    ("random", "instance"),
    ("random", "problem"),
    ("expert-choice", "node"),
    ("expert-choice", "instance"),
    ("soft", "node"),
    ("soft", "instance"),
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


@pytest.mark.parametrize("top", [1, 2, 3, 4])
def test_any_number_of_experts_each(top: int) -> None:
    net, x = mixture(top=top).eval(), tokens()
    torch.testing.assert_close(net(x), dense(net, x, Routing()), rtol=1e-12, atol=1e-12)


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


def test_together_is_the_way_back() -> None:
    x = tokens(3)
    assert torch.equal(join_calls(x.unflatten(1, (3, -1)).transpose(0, 1)), x)
