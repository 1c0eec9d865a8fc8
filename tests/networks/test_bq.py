"""BQ-NCO: its equations with loads for the CVRP, initial values; the decoder-only network: formula, factor of log n."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import by_the_book
from networks import PATH, decision, make, without_gradients
from neuroute.networks.blocks.layers import ResidualLayer
from neuroute.networks.bq import BqCvrp, ReZeroCrossLayer

pytestmark = pytest.mark.usefixtures("one_thread")

WITH_LOADS = [name for name in PATH if name.startswith("bq cvrp")]
EXACT = {"rtol": 1e-10, "atol": 1e-10}


@pytest.mark.parametrize("name", ["bq", *WITH_LOADS])
def test_initial_values(name: str) -> None:
    """Xavier's bound on (12, 192, 16) tensors; nothing is added at first, but learns to be."""
    kind, arguments = PATH[name]
    net = kind(**arguments | {"width": 192, "heads": 12})
    names = ("qkv.weight", "query.weight", "key_value.weight", "out.weight", "out.matrix")
    matrices = [p for name, p in net.named_parameters() if name.endswith(names)]
    assert len(matrices) == {"bq": 6, "bq cvrp": 4}.get(name, 12)
    of_torch = torch.nn.init.xavier_uniform_(torch.empty(12, 192, 16)).abs().max().item()
    assert of_torch == pytest.approx(0.0429, abs=1e-4)
    assert all(p.abs().max().item() == pytest.approx(0.0429, abs=1e-4) for p in matrices)
    idle = [p for name, p in net.named_parameters() if "alpha" in name or name.endswith("value_bias")]
    assert all(p.requires_grad and not p.any() for p in idle)


def cross_layer(layer: ReZeroCrossLayer, x: Tensor, context: Tensor) -> Tensor:
    w_k, w_v = layer.key_value.weight.chunk(2)
    keys, values = context @ w_k.T, context @ w_v.T + layer.out.value_bias
    attended = by_the_book.attention(layer.heads, x @ layer.query.weight.T, keys, values, scale=1.0)
    x = x + layer.out.alpha1 * (attended @ layer.out.matrix.T)
    return x + layer.alpha2 * layer.down(torch.relu(layer.up(x)))


def cvrp_by_the_book(net: BqCvrp, rows: Tensor, left: Tensor) -> Tensor:
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
            h = by_the_book.residual_layer(layer, h)
        else:
            z = cross_layer(layer.gather, z, h)
            h = cross_layer(layer.spread, h, z)
    return h[:, r:-1] @ net.head.weight.T + net.head.bias


@pytest.mark.parametrize("name", WITH_LOADS)
@pytest.mark.parametrize("customers", [2, 8, 40, 300])
def test_equals_the_equations(name: str, customers: int) -> None:
    net = make(name)
    rows, left = decision(net, 3, customers + 1)
    expected = cvrp_by_the_book(net, rows, left)
    assert expected.shape == (3, customers - 1, 2)
    torch.testing.assert_close(net.decide(rows, left), expected, **EXACT)
    torch.testing.assert_close(without_gradients(net, rows, left), expected, **EXACT)


@pytest.mark.parametrize("name", ["bq cvrp", "bq cvrp cross"])
def test_of_the_customers_only_the_nearest_are_seen(name: str) -> None:
    kind, arguments = PATH[name]
    net, limited = kind(**arguments).double(), kind(**arguments | {"nearest": 3}).double()
    limited.load_state_dict(net.state_dict())
    rows, left = torch.rand(4, 9, 3, dtype=torch.float64), torch.full((4,), 0.5, dtype=torch.float64)
    found = limited.decide(rows, left)
    for one, stop in zip(found, rows, strict=True):
        away = (stop[1:-1, :2] - stop[0, :2]).norm(dim=-1)
        near = away.argsort()[:3]
        expected = torch.full((7, 2), -torch.inf, dtype=torch.float64)
        expected[near] = net.decide(stop[[0, *(1 + near).tolist(), 8]][None], left[:1])[0]
        torch.testing.assert_close(one, expected)
    assert torch.equal(limited.decide(rows[:, 4:], left), net.decide(rows[:, 4:], left))  # three customers


@pytest.mark.parametrize("gate", [True, False])
@pytest.mark.parametrize("rezero", [True, False])
def test_equals_the_formulas(gate: bool, rezero: bool) -> None:
    """scaling, Eq. 8-16."""
    net = make("decoder-only", gate=gate, rezero=rezero)
    (rows,) = decision(net)
    for scale in (1.0, 1.3):
        h = F.linear(rows, net.embed.weight, net.embed.bias)
        x = torch.cat([net.current(h[:, 0])[:, None], h[:, 1:-1], net.start(h[:, -1])[:, None]], 1)
        for layer in net.layers:
            x = by_the_book.residual_layer(layer, x, scale)
        torch.testing.assert_close(net.decide(rows, scale), net.head(x)[:, 1:-1, 0], rtol=1e-12, atol=1e-12)
