"""POMO for the CVRP: published size, equations, what is left counts, symmetries, FLOPs."""

import pytest
import torch
from torch import Tensor

from neuroute.decoding.cvrp import CvrpBatch
from neuroute.decoding.multi_start import roll_out
from neuroute.networks.pomo import Pomo, PomoCvrp
from neuroute.networks.weights import parameters

pytestmark = pytest.mark.usefixtures("one_thread")

SHAPE = {"depth": 2, "width": 24, "heads": 3, "feed_forward": 40}
V = 8


def small() -> PomoCvrp:
    """A float64 network whose norms have left their initial values."""
    torch.manual_seed(0)
    net = PomoCvrp(**SHAPE).double().eval()
    for name, p in net.named_parameters():
        if "norm" in name:
            p.data.normal_(1.0, 0.3)
    return net


def case(batch: int = 2) -> tuple[Tensor, Tensor]:
    torch.manual_seed(1)
    demand = torch.randint(1, 10, (batch, V + 1)) / 20
    demand[:, 0] = 0
    return torch.rand(batch, V + 1, 2, dtype=torch.float64), demand.double()


def midway(batch: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """What three vehicles have left, where they are, and -inf at what they have visited."""
    torch.manual_seed(2)
    stops = torch.stack([torch.stack([1 + torch.randperm(V)[:4] for _ in range(3)]) for _ in range(batch)])
    closed = torch.zeros(batch, 3, V + 1, dtype=torch.float64).scatter(2, stops, -torch.inf)
    return torch.rand(batch, 3, dtype=torch.float64), stops[..., -1], closed


def test_published_size() -> None:
    with torch.device("meta"):
        net = PomoCvrp()
    assert parameters(net) == 1_254_016


def heads_attention(q: Tensor, k: Tensor, v: Tensor, closed: Tensor | float = 0.0) -> Tensor:
    parts = (part.chunk(3, dim=-1) for part in (q, k, v))
    return torch.cat(
        [torch.softmax(a @ b.transpose(1, 2) * 8**-0.5 + closed, -1) @ c for a, b, c in zip(*parts, strict=True)], -1
    )


def test_equals_the_equations() -> None:
    net, (coords, demand), (left, current, closed) = small(), case(), midway()
    depot, customers = net.embed.depot, net.embed.customers
    rows = torch.cat([coords[:, 1:], demand[:, 1:, None]], -1)
    h = torch.cat([depot(coords[:, :1]), customers(rows)], 1)
    for layer in net.layers:
        q, k, v = (h @ w.T for w in layer.qkv.weight.chunk(3))
        h = layer.attention_norm(h + layer.out(heads_attention(q, k, v)))
        h = layer.feed_forward_norm(h + layer.down(torch.relu(layer.up(h))))
    torch.testing.assert_close(net.encode(coords, demand), h, rtol=1e-10, atol=1e-10)
    w_k, w_v = net.key_value.weight.chunk(2)
    query = torch.cat([h[torch.arange(2)[:, None], current], left[..., None]], -1) @ net.context.project.weight.T
    seen = heads_attention(query, h @ w_k.T, h @ w_v.T, closed)
    expected = 10 * torch.tanh(net.combine(seen) @ h.transpose(1, 2) / net.width**0.5) + closed
    found = net.decide(net.prepare(net.encode(coords, demand)), left, current, closed)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


def test_the_depots_demand_is_not_read_and_what_is_left_is() -> None:
    net, (coords, demand), (left, current, closed) = small(), case(), midway()
    encoded = net.encode(coords, demand)
    other = demand.clone()
    other[:, 0] = 7
    assert torch.equal(net.encode(coords, other), encoded)
    prepared = net.prepare(encoded)
    found = net.decide(prepared, left, current, closed)
    assert not torch.allclose(net.decide(prepared, 1 - left, current, closed)[closed == 0], found[closed == 0])


def test_customers_have_no_order() -> None:
    net, (coords, demand), (left, current, closed) = small(), case(), midway()
    found = net.decide(net.prepare(net.encode(coords, demand)), left, current, closed)
    shuffle = torch.cat([torch.zeros(1, dtype=torch.int64), 1 + torch.randperm(V)])
    prepared = net.prepare(net.encode(coords[:, shuffle], demand[:, shuffle]))
    moved = net.decide(prepared, left, shuffle.argsort()[current], closed[..., shuffle])
    torch.testing.assert_close(moved, found[..., shuffle], rtol=1e-10, atol=1e-10)


def test_all_of_it_learns_along_trajectories() -> None:
    net, (coords, demand) = small(), case()
    log_p: list[Tensor] = []

    def sample(logits: Tensor) -> Tensor:
        chosen = torch.distributions.Categorical(logits=logits).sample()
        log_p.append(logits.log_softmax(-1).gather(2, chosen[..., None])[..., 0])
        return chosen

    batch = CvrpBatch(coords, (demand * 20).round().long(), torch.tensor([20, 20]))
    prepared = net.prepare(net.encode(coords, demand))
    roll_out(net, prepared, batch, torch.arange(1, V + 1).expand(2, -1), sample)
    (torch.stack(log_p).sum(0) * torch.randn(2, V, dtype=torch.float64)).mean().backward()
    assert [name for name, p in net.named_parameters() if p.grad is None or not p.grad.any()] == []


def test_the_tsps_is_another_network() -> None:
    assert (Pomo.problem, PomoCvrp.problem) == ("tsp", "cvrp")
    with pytest.raises(ValueError, match="not divisible"):
        PomoCvrp(width=10, heads=4)
