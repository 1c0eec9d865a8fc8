"""POMO for the TSP and the CVRP: equations and their norm."""

import pytest
import torch
from torch import Tensor

from by_the_book import attention, instance_norm
from networks import features, make, midway
from neuroute.networks.blocks.post_norm_layer import InstanceNorm
from neuroute.networks.pomo import Pomo, PomoCvrp

EXACT = {"rtol": 1e-10, "atol": 1e-10}


def embedded(net: Pomo, coords: Tensor, *demand: Tensor) -> Tensor:
    if net.problem == "tsp":
        return net.embed(coords)
    rows = torch.cat([coords[:, 1:], demand[0][:, 1:, None]], -1)
    return torch.cat([net.embed.depot(coords[:, :1]), net.embed.customers(rows)], 1)


@pytest.mark.parametrize("name", ["pomo", "pomo cvrp"])
def test_equals_the_equations(name: str) -> None:
    net = make(name)
    seen, (known, current, closed) = features(net), midway(net)
    h = embedded(net, *seen)
    for layer in net.layers:
        q, k, v = (h @ w.T for w in layer.qkv.weight.chunk(3))
        h = instance_norm(h + layer.out(attention(net.heads, q, k, v)), layer.attention_norm)
        h = instance_norm(h + layer.down(torch.relu(layer.up(h))), layer.feed_forward_norm)
    torch.testing.assert_close(net.encode(*seen), h, **EXACT)
    each = torch.arange(len(h))[:, None]
    if name == "pomo":
        w_first, w_last = net.context.ends.weight.chunk(2)
        query = h[each, known] @ w_first.T + h[each, current] @ w_last.T
    else:
        query = torch.cat([h[each, current], known[..., None]], -1) @ net.context.project.weight.T
    w_k, w_v = net.key_value.weight.chunk(2)
    glimpse = net.combine(attention(net.heads, query, h @ w_k.T, h @ w_v.T, closed))
    expected = 10 * torch.tanh(glimpse @ h.transpose(1, 2) / net.width**0.5) + closed
    torch.testing.assert_close(net.decide(net.prepare(net.encode(*seen)), known, current, closed), expected, **EXACT)


def test_the_instance_norm_is_over_nodes_and_remembers_nothing() -> None:
    norm, x = InstanceNorm(5), torch.rand(3, 40, 5) * 7 + 2
    for normed in (norm(x), norm.eval()(x)):
        torch.testing.assert_close(normed.mean(1), torch.zeros(3, 5), rtol=0, atol=1e-5)
        torch.testing.assert_close(normed.var(1, correction=0), torch.ones(3, 5), rtol=1e-3, atol=1e-3)
    assert norm(x.bfloat16()).dtype == torch.float32


def test_the_tsps_is_another_network() -> None:
    assert (Pomo.problem, PomoCvrp.problem) == ("tsp", "cvrp")
