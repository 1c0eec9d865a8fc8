"""POMO: published size, equations, what is visited, that all of it learns."""

import pytest
import torch
from torch import Tensor

from neuroute.decoding.multi_start import roll_out
from neuroute.decoding.tsp import TspBatch
from neuroute.networks.blocks.post_norm_layer import InstanceNorm
from neuroute.networks.pomo import Pomo
from neuroute.networks.weights import parameters

pytestmark = pytest.mark.usefixtures("one_thread")

SHAPE = {"depth": 2, "width": 24, "heads": 3, "feed_forward": 40}


def small() -> Pomo:
    """A float64 network whose norms have left their initial values."""
    torch.manual_seed(0)
    net = Pomo(**SHAPE).double().eval()
    for name, p in net.named_parameters():
        if "norm" in name:
            p.data.normal_(1.0, 0.3)
    return net


def midway(batch: int = 2, nodes: int = 9) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """coords, first and current stop of three tours, and -inf at what they have visited."""
    torch.manual_seed(1)
    tours = torch.stack([torch.stack([torch.randperm(nodes)[:4] for _ in range(3)]) for _ in range(batch)])
    closed = torch.zeros(batch, 3, nodes, dtype=torch.float64).scatter(2, tours, -torch.inf)
    return torch.rand(batch, nodes, 2, dtype=torch.float64), tours[..., 0], tours[..., -1], closed


def test_published_size() -> None:
    with torch.device("meta"):
        net = Pomo()
    assert parameters(net) == 1_269_760
    assert parameters(net.layers[0]) == 197_888


def normalised(x: Tensor, norm: InstanceNorm) -> Tensor:
    return torch.nn.functional.instance_norm(x.transpose(1, 2), weight=norm.weight, bias=norm.bias).transpose(1, 2)


def heads_attention(heads: int, q: Tensor, k: Tensor, v: Tensor, closed: Tensor | float = 0.0) -> Tensor:
    parts = (part.chunk(heads, dim=-1) for part in (q, k, v))
    scale = (q.shape[-1] // heads) ** -0.5
    return torch.cat(
        [torch.softmax(a @ b.transpose(1, 2) * scale + closed, -1) @ c for a, b, c in zip(*parts, strict=True)], -1
    )


def encoded_by_the_book(net: Pomo, coords: Tensor) -> Tensor:
    h = net.embed(coords)
    for layer in net.layers:
        q, k, v = (h @ w.T for w in layer.qkv.weight.chunk(3))
        h = normalised(h + layer.out(heads_attention(net.heads, q, k, v)), layer.attention_norm)
        h = normalised(h + layer.down(torch.relu(layer.up(h))), layer.feed_forward_norm)
    return h


def decided_by_the_book(net: Pomo, h: Tensor, first: Tensor, current: Tensor, closed: Tensor) -> Tensor:
    w_first, w_last = net.context.ends.weight.chunk(2)
    w_k, w_v = net.key_value.weight.chunk(2)
    instance = torch.arange(len(h))[:, None]
    query = h[instance, first] @ w_first.T + h[instance, current] @ w_last.T
    seen = heads_attention(net.heads, query, h @ w_k.T, h @ w_v.T, closed)
    return 10 * torch.tanh(net.combine(seen) @ h.transpose(1, 2) / net.width**0.5) + closed


def test_equals_the_equations() -> None:
    net, (coords, first, current, closed) = small(), midway()
    h = encoded_by_the_book(net, coords)
    torch.testing.assert_close(net.encode(coords), h, rtol=1e-10, atol=1e-10)
    found = net.decide(net.prepare(net.encode(coords)), first, current, closed)
    torch.testing.assert_close(found, decided_by_the_book(net, h, first, current, closed), rtol=1e-10, atol=1e-10)
    assert torch.equal(found == -torch.inf, closed == -torch.inf)
    assert found[found > -torch.inf].abs().max() <= 10


def test_the_instance_norm_is_over_nodes_and_remembers_nothing() -> None:
    norm, x = InstanceNorm(5), torch.rand(3, 40, 5) * 7 + 2
    for found in (norm(x), norm.eval()(x)):
        torch.testing.assert_close(found.mean(1), torch.zeros(3, 5), rtol=0, atol=1e-5)
        torch.testing.assert_close(found.var(1, correction=0), torch.ones(3, 5), rtol=1e-3, atol=1e-3)
    assert norm(x.bfloat16()).dtype == torch.float32


def test_nodes_have_no_order_and_tours_and_instances_do_not_meet() -> None:
    net, (coords, first, current, closed) = small(), midway()
    found = net.decide(net.prepare(net.encode(coords)), first, current, closed)
    shuffle = torch.randperm(9)
    place = shuffle.argsort()  # where a node is now
    moved = net.decide(net.prepare(net.encode(coords[:, shuffle])), place[first], place[current], closed[..., shuffle])
    torch.testing.assert_close(moved, found[..., shuffle], rtol=1e-10, atol=1e-10)
    alone = net.decide(net.prepare(net.encode(coords[1:])), first[1:, 2:], current[1:, 2:], closed[1:, 2:])
    torch.testing.assert_close(alone, found[1:, 2:], rtol=1e-10, atol=1e-10)


def test_first_and_current_stop_matter() -> None:
    net, (coords, first, current, closed) = small(), midway()
    prepared = net.prepare(net.encode(coords))
    found = net.decide(prepared, first, current, closed)
    open_ = closed == 0
    assert not torch.allclose(net.decide(prepared, current, current, closed)[open_], found[open_])
    assert not torch.allclose(net.decide(prepared, first, first, closed)[open_], found[open_])


def test_all_of_it_learns_along_trajectories() -> None:
    """What training needs: log-probabilities of whole sampled tours, with gradients."""
    net = small()
    coords = torch.rand(2, 7, 2, dtype=torch.float64)
    log_p: list[Tensor] = []

    def sample(logits: Tensor) -> Tensor:
        chosen = torch.distributions.Categorical(logits=logits).sample()
        log_p.append(logits.log_softmax(-1).gather(2, chosen[..., None])[..., 0])
        return chosen

    starts = torch.arange(7).expand(2, -1)
    tours = roll_out(net, net.prepare(net.encode(coords)), TspBatch(coords), starts, sample)
    assert torch.equal(tours.sort(-1).values, torch.arange(7).expand(2, 7, 7))
    assert len(log_p) == 5
    (torch.stack(log_p).sum(0) * torch.randn(2, 7, dtype=torch.float64)).mean().backward()
    assert [name for name, p in net.named_parameters() if p.grad is None or not p.grad.any()] == []


def test_what_cannot_be_built() -> None:
    with pytest.raises(ValueError, match="not divisible"):
        Pomo(width=10, heads=4)
