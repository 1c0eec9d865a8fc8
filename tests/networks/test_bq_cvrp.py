"""BQ-NCO for the CVRP, with self- and with cross-attention: size, equations, loads, invariances, that it learns."""

import numpy as np
import pytest
import torch
from torch import Tensor

import neuroute.networks.blocks.linear_cross_attention as blocks
from neuroute.datasets.streams import cvrp_dataset
from neuroute.decoding.decode import decode
from neuroute.networks.blocks.residual_layer import ResidualLayer
from neuroute.networks.blocks.rezero_cross_attention import ReZeroCrossLayer
from neuroute.networks.bq import BqCvrp
from neuroute.networks.weights import parameters
from neuroute.plan.objects import Dataset, Decoding
from neuroute.problems.cvrp import is_feasible
from neuroute.problems.vrp import Vrp

pytestmark = pytest.mark.usefixtures("one_thread")

SELF = {"depth": 2, "width": 24, "heads": 3, "feed_forward": 40}
FOLDING = SELF | {"attention": "cross", "representatives": 4}  # many tokens are not projected
PLAIN = FOLDING | {"width": 12, "feed_forward": 20, "representatives": 15}  # all are
SHAPES = [SELF, FOLDING, PLAIN]


def awake(shape: dict) -> BqCvrp:
    """A float64 network whose ReZero scalars and biases have left zero."""
    torch.manual_seed(0)
    net = BqCvrp(**shape).double().eval()
    for name, parameter in net.named_parameters():
        if "alpha" in name:
            parameter.data.uniform_(0.4, 0.8).mul_(-1 if name.endswith("2") else 1)
        elif name.endswith(("value_bias", "key_value_bias")):
            parameter.data.normal_()
    return net


def state(batch: int = 3, customers: int = 40, left: float = 2.0) -> tuple[Tensor, Tensor]:
    """Rows [current, available..., depot], and so much in the vehicle that all fit."""
    torch.manual_seed(1)
    rows = torch.rand(batch, customers + 1, 3, dtype=torch.float64)
    rows[:, -1, 2] = 0
    return rows, left - torch.rand(batch, dtype=torch.float64)


def without_gradients(net: BqCvrp, rows: Tensor, left: Tensor) -> Tensor:
    with torch.inference_mode():
        return net.decide(rows, left).clone()


def softmax_attention(net_heads: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """By the equation, head by head; scores are not divided by sqrt(d_k)."""
    heads = (part.chunk(net_heads, dim=-1) for part in (q, k, v))
    found = [torch.softmax(a @ b.transpose(1, 2), dim=-1) @ c for a, b, c in zip(*heads, strict=True)]
    return torch.cat(found, dim=-1)


def self_layer(layer: ResidualLayer, h: Tensor) -> Tensor:
    width = h.shape[2]
    q, k, v = (h @ w.T for w in layer.qkv.weight.split(width))
    k, v = k + layer.key_value_bias[:width], v + layer.key_value_bias[width:]
    h = h + layer.alpha1 * (softmax_attention(layer.heads, q, k, v) @ layer.out.weight.T)
    return h + layer.alpha2 * layer.down(torch.relu(layer.up(h)))


def cross_layer(layer: ReZeroCrossLayer, x: Tensor, context: Tensor, key_bias: float = 0.0) -> Tensor:
    w_k, w_v = layer.key_value.weight.chunk(2)
    keys, values = context @ w_k.T + key_bias, context @ w_v.T + layer.out.value_bias
    attended = softmax_attention(layer.heads, x @ layer.query.weight.T, keys, values)
    x = x + layer.out.alpha1 * (attended @ layer.out.matrix.T)
    return x + layer.alpha2 * layer.down(torch.relu(layer.up(x)))


def by_the_book(net: BqCvrp, rows: Tensor, left: Tensor, key_bias: float = 0.0) -> Tensor:
    """Logits (batch, available, 2), nothing masked."""
    r = net.ends.weight.shape[0] - 1
    h = torch.cat([rows, left[:, None, None].expand(-1, rows.shape[1], 1)], dim=-1) @ net.embed.weight.T
    h = h + net.embed.bias
    current = [h[:, :1] + net.ends.weight[i] for i in range(r)]
    depot = h[:, -1:] + net.ends.weight[r]
    z = torch.cat([*current, depot], dim=1)
    h = torch.cat([*current, h[:, 1:-1], depot], dim=1)
    for layer in net.layers:
        if isinstance(layer, ResidualLayer):
            h = self_layer(layer, h)
        else:
            z = cross_layer(layer.gather, z, h, key_bias)
            h = cross_layer(layer.spread, h, z, key_bias)
    return h[:, r:-1] @ net.head.weight.T + net.head.bias


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("customers", [2, 8, 40, 300])
def test_equals_the_equations(shape: dict, customers: int) -> None:
    net, (rows, left) = awake(shape), state(customers=customers)
    expected = by_the_book(net, rows, left)
    assert expected.shape == (3, customers - 1, 2)
    torch.testing.assert_close(net.decide(rows, left), expected, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(without_gradients(net, rows, left), expected, rtol=1e-10, atol=1e-10)


def test_a_bias_of_the_keys_would_change_nothing() -> None:
    net, (rows, left) = awake(FOLDING), state()
    torch.testing.assert_close(by_the_book(net, rows, left, 1.7), net.decide(rows, left), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
def test_hidden_states_are_those_that_the_head_reads(shape: dict) -> None:
    net, (rows, left) = awake(shape), state()
    states = net.hidden(rows, left)
    assert states.shape == (3, 41, net.width)
    torch.testing.assert_close(net.head(states)[:, 1:-1], net.decide(rows, left), rtol=1e-12, atol=1e-12)


def test_sliced_is_unsliced(monkeypatch: pytest.MonkeyPatch) -> None:
    net, (rows, left) = awake(FOLDING), state(5)
    whole = without_gradients(net, rows, left)
    for tokens in (7, 100):
        monkeypatch.setattr(blocks, "CPU_FLOATS", tokens * 40)
        torch.testing.assert_close(without_gradients(net, rows, left), whole, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_what_does_not_fit_cannot_be_reached_straight(shape: dict) -> None:
    net, (rows, left) = awake(shape), state(left=1.0)
    logits = net.decide(rows, left)
    too_much = rows[:, 1:-1, 2] > left[:, None]
    assert 0 < too_much.sum() < too_much.numel()
    assert torch.equal(logits[..., 0] == -torch.inf, too_much)
    assert logits[..., 1].isfinite().all()
    assert net.decide(rows, left + 1).isfinite().all()


def test_what_just_fits_does_fit() -> None:
    net, (rows, _) = awake(SELF), state(1)
    for capacity in (7, 50, 1816):
        demand = torch.arange(39) % 7 + 1
        rows[0, 1:-1, 2] = (demand / capacity).double()
        logits = net.decide(rows, (torch.tensor([4]) / torch.tensor([capacity])).double())
        assert torch.equal(logits[0, :, 0].isfinite(), demand <= 4)


@pytest.mark.parametrize("shape", SHAPES)
def test_demand_and_what_is_left_matter_and_the_order_of_candidates_does_not(shape: dict) -> None:
    net, (rows, left) = awake(shape), state()
    logits = net.decide(rows, left)
    shuffle = torch.randperm(39)
    shuffled = torch.cat([rows[:, :1], rows[:, 1:-1][:, shuffle], rows[:, -1:]], 1)
    torch.testing.assert_close(net.decide(shuffled, left), logits[:, shuffle], rtol=1e-10, atol=1e-10)
    assert not torch.allclose(net.decide(rows, 2 * left), logits)
    assert not torch.allclose(net.decide(rows * torch.tensor([1, 1, 0.5], dtype=torch.float64), left), logits)
    assert not torch.allclose(net.decide(rows.flip(1), left).flip(1), logits)  # the depot is told apart


@pytest.mark.parametrize("shape", SHAPES)
def test_a_batch_decides_as_its_instances_do(shape: dict) -> None:
    net, (rows, left) = awake(shape), state(6)
    alone = torch.cat([without_gradients(net, rows[i : i + 1], left[i : i + 1]) for i in range(6)])
    torch.testing.assert_close(without_gradients(net, rows, left), alone, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("shape", SHAPES)
def test_everything_learns(shape: dict) -> None:
    net, (rows, left) = awake(shape), state()
    net.decide(rows, left).flatten(1).log_softmax(1)[:, 5].sum().neg().backward()
    assert [name for name, p in net.named_parameters() if p.grad is None or not p.grad.any()] == []
    assert net.embed.weight.grad.abs().sum(0).gt(0).all()  # demand and what is left too


@pytest.mark.parametrize("shape", SHAPES)
def test_it_learns_from_the_start(shape: dict) -> None:
    """ReZero begins as the identity: a step must wake it up."""
    torch.manual_seed(0)
    net, (rows, left) = BqCvrp(**shape).double(), state(left=1.5)
    target = 2 * rows[:, 1:-1, :2].sum(-1).argmin(1) + 1
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    losses = []
    for _ in range(30):
        loss = torch.nn.functional.cross_entropy(net.decide(rows, left).flatten(1), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]


@pytest.mark.parametrize("shape", SHAPES)
def test_initial_values_are_bqs(shape: dict) -> None:
    net = BqCvrp(**shape | {"width": 192, "heads": 12})
    names = ("qkv.weight", "query.weight", "key_value.weight", "out.weight", "out.matrix")
    found = [p for name, p in net.named_parameters() if name.endswith(names)]
    assert len(found) == (4 if shape is SELF else 12)
    assert all(p.abs().max().item() == pytest.approx(0.0429, abs=1e-4) for p in found)
    assert all(p.item() == 0 for name, p in net.named_parameters() if "alpha" in name)


@pytest.mark.parametrize("shape", SHAPES)
def test_decoding_gives_feasible_solutions(shape: dict) -> None:
    found = cvrp_dataset(Dataset(problem="cvrp", n=21, count=5))
    batch = Vrp(found.coords.astype(np.float64), found.demand, found.capacity)
    net = awake(shape)
    for how in (Decoding(), Decoding(method="rrc", iterations=5)):
        assert is_feasible(batch, decode("cvrp", net, batch, how).numpy()).all()


def test_sizes() -> None:
    """BQ for the TSP has 3,107,539: two more inputs and one more logit are 577."""
    with torch.device("meta"):
        assert parameters(BqCvrp()) == 3_107_539 + 2 * 192 + 193
        cross = BqCvrp(attention="cross")
    assert parameters(cross.layers[0]) == 2 * (345_154 - 192)  # two layers of BQ's, without the keys' inert biases
    assert parameters(cross.ends) == 16 * 192


def test_what_cannot_be_built() -> None:
    with pytest.raises(ValueError, match="neither"):
        BqCvrp(attention="other")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least one"):
        BqCvrp(attention="cross", representatives=0)
    with pytest.raises(ValueError, match="not divisible"):
        BqCvrp(width=10, heads=4)
