"""ICAM: published sizes, equations, ablations, symmetries, that all of it learns, large sizes, half precision."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from neuroute.decoding.cvrp import CvrpBatch
from neuroute.decoding.multi_start import roll_out
from neuroute.decoding.tsp import TspBatch
from neuroute.networks.icam import Icam, IcamCvrp
from neuroute.networks.weights import parameters

pytestmark = pytest.mark.usefixtures("one_thread")

SHAPE: dict[str, Any] = {"depth": 2, "width": 24, "feed_forward": 40}
SWITCHES = [(True, True), (True, False), (False, True), (False, False)]  # adaptation, compatibility: icam, Table 9
LAYER = 3 * 128**2 + 2 * 128 * 512 + 5 * 128 + 512 + 1
N = 9


def small(kind: type[Icam] = Icam, **more: Any) -> Icam:
    """A float64 network whose norms and alphas have left their initial values."""
    torch.manual_seed(0)
    net = kind(**SHAPE, **more).double().eval()
    for name, p in net.named_parameters():
        if "norm" in name or "alpha" in name:
            p.data.normal_(1.0, 0.3)
    return net


def instance(kind: type[Icam], batch: int = 2) -> tuple[Tensor, ...]:
    """coords, and demand for the CVRP."""
    torch.manual_seed(1)
    coords = torch.rand(batch, N, 2, dtype=torch.float64)
    if kind is Icam:
        return (coords,)
    demand = torch.randint(1, 10, (batch, N)) / 20
    demand[:, 0] = 0
    return coords, demand.double()


def midway(kind: type[Icam], batch: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """Where three tours began or what they have left, where they are, and -inf at what they have visited."""
    torch.manual_seed(2)
    tours = torch.stack([torch.stack([torch.randperm(N)[:4] for _ in range(3)]) for _ in range(batch)])
    closed = torch.zeros(batch, 3, N, dtype=torch.float64).scatter(2, tours, -torch.inf)
    known = tours[..., 0] if kind is Icam else torch.rand(batch, 3, dtype=torch.float64)
    return known, tours[..., -1], closed


@pytest.mark.parametrize(("kind", "size"), [(Icam, 2_242_446), (IcamCvrp, 2_226_702)])
def test_published_sizes(kind: type[Icam], size: int) -> None:
    with torch.device("meta"):
        net = kind()
        assert parameters(net) == size
        assert parameters(net.layers[0]) == LAYER
        scalars = [name for name, p in net.named_parameters() if p.dim() == 0]
        assert len(scalars) == 14
        assert parameters(kind(adaptation=False)) == size - 13
        assert parameters(kind(compatibility=False)) == size - 1
    assert all(p.item() == 1 for name, p in kind(depth=1).named_parameters() if p.dim() == 0)


def by_the_book(net: Icam, features: tuple[Tensor, ...], known: Tensor, current: Tensor, closed: Tensor) -> Tensor:
    """icam, Eqs. 3 to 5, 12 to 15: every weight of every pair and channel written out."""

    def mixed(query: Tensor, keys: Tensor, values: Tensor, bias: Tensor) -> Tensor:
        above = (torch.exp(bias)[..., None] * (torch.exp(keys) * values)[:, None]).sum(2)
        below = (torch.exp(bias)[..., None] * torch.exp(keys)[:, None]).sum(2)
        return torch.sigmoid(query) * above / below

    def normalised(x: Tensor, norm: Any) -> Tensor:
        return torch.nn.functional.instance_norm(x.transpose(1, 2), weight=norm.weight, bias=norm.bias).transpose(1, 2)

    coords, cvrp = features[0], len(features) > 1
    apart = (coords[:, :, None] - coords[:, None]).norm(dim=-1)
    log_n = math.log2(N - 1 if cvrp else N)
    if cvrp:
        embed: Any = net.embed
        depot = coords[:, :1] @ embed.depot.weight.T + embed.depot.bias
        customers = torch.cat([coords[:, 1:], features[1][:, 1:, None]], -1) @ embed.customers.weight.T
        h = torch.cat([depot, customers + embed.customers.bias], 1)
    else:
        h = net.embed(coords)
    for layer in net.layers:
        query, keys, values = (h @ w.T for w in layer.qkv.weight.chunk(3))
        bias = torch.zeros_like(apart) if layer.alpha is None else -layer.alpha * log_n * apart
        h = normalised(h + mixed(query, keys, values, bias), layer.attention_norm)
        h = normalised(h + layer.down(torch.relu(layer.up(h))), layer.feed_forward_norm)
    each = torch.arange(len(h))[:, None]
    if cvrp:
        query = torch.cat([h[each, current], known[..., None]], -1) @ net.context.project.weight.T
    else:
        w_first, w_last = net.context.ends.weight.chunk(2)
        query = h[each, known] @ w_first.T + h[each, current] @ w_last.T
    keys, values = (h @ w.T for w in net.key_value.weight.chunk(2))
    bias = closed if net.alpha is None else closed - net.alpha * log_n * apart[each, current]
    fits = mixed(query, keys, values, bias) @ h.transpose(1, 2) / net.width**0.5
    if net.compatibility_alpha is not None:
        fits = fits - net.compatibility_alpha * log_n * apart[each, current]
    return 50 * torch.tanh(fits) + closed


@pytest.mark.parametrize("kind", [Icam, IcamCvrp])
@pytest.mark.parametrize(("adaptation", "compatibility"), SWITCHES)
def test_equals_the_equations(kind: type[Icam], adaptation: bool, compatibility: bool) -> None:
    net = small(kind, adaptation=adaptation, compatibility=compatibility)
    features, state = instance(kind), midway(kind)
    found = net.decide(net.prepare(net.encode(*features)), *state)
    torch.testing.assert_close(found, by_the_book(net, features, *state), rtol=1e-10, atol=1e-10)
    assert torch.equal(found == -torch.inf, state[2] == -torch.inf)
    assert found[found > -torch.inf].abs().max() <= 50


def test_the_four_ablations_differ_and_only_afm_alone_sees_no_size() -> None:
    outs = []
    for adaptation, compatibility in SWITCHES:
        net = small(adaptation=adaptation, compatibility=compatibility)
        encoded = net.encode(*instance(Icam))
        assert (encoded.distances is None) == (not adaptation and not compatibility)
        outs.append(net.decide(net.prepare(encoded), *midway(Icam)))
        other = net.decide(net.prepare(net.encode(*instance(Icam))._replace(log_n=7.0)), *midway(Icam))
        assert torch.equal(outs[-1], other) == (not adaptation and not compatibility)
    open_ = midway(Icam)[2] == 0
    assert all(not torch.allclose(a[open_], b[open_]) for i, a in enumerate(outs) for b in outs[:i])


@pytest.mark.parametrize("kind", [Icam, IcamCvrp])
def test_customers_have_no_order_and_tours_and_instances_do_not_meet(kind: type[Icam]) -> None:
    net, features, (known, current, closed) = small(kind), instance(kind), midway(kind)
    found = net.decide(net.prepare(net.encode(*features)), known, current, closed)
    shuffle = torch.cat([torch.zeros(1, dtype=torch.int64), 1 + torch.randperm(N - 1)])
    place = shuffle.argsort()  # where a node is now
    moved = net.decide(
        net.prepare(net.encode(*(f[:, shuffle] for f in features))),
        place[known] if kind is Icam else known,
        place[current],
        closed[..., shuffle],
    )
    torch.testing.assert_close(moved, found[..., shuffle], rtol=1e-10, atol=1e-10)
    prepared = net.prepare(net.encode(*(f[1:] for f in features)))
    alone = net.decide(prepared, known[1:, 2:], current[1:, 2:], closed[1:, 2:])
    torch.testing.assert_close(alone, found[1:, 2:], rtol=1e-10, atol=1e-10)


def test_the_cvrps_size_is_that_of_its_customers() -> None:
    assert small(IcamCvrp).encode(*instance(IcamCvrp)).log_n == pytest.approx(math.log2(N - 1))
    assert small().encode(*instance(Icam)).log_n == pytest.approx(math.log2(N))


@pytest.mark.parametrize("kind", [Icam, IcamCvrp])
@pytest.mark.parametrize(("adaptation", "compatibility"), SWITCHES)
def test_all_of_it_learns_along_trajectories(kind: type[Icam], adaptation: bool, compatibility: bool) -> None:
    net, features = small(kind, adaptation=adaptation, compatibility=compatibility), instance(kind)
    log_p: list[Tensor] = []

    def sample(logits: Tensor) -> Tensor:
        chosen = torch.distributions.Categorical(logits=logits).sample()
        log_p.append(logits.log_softmax(-1).gather(2, chosen[..., None])[..., 0])
        return chosen

    prepared = net.prepare(net.encode(*features))
    if kind is Icam:
        roll_out(net, prepared, TspBatch(*features), torch.arange(N).expand(2, -1), sample)
    else:
        batch = CvrpBatch(features[0], (features[1] * 20).round().long(), torch.tensor([20, 20]))
        roll_out(net, prepared, batch, torch.arange(1, N).expand(2, -1), sample)
    (torch.stack(log_p).sum(0) * torch.randn(log_p[0].shape, dtype=torch.float64)).mean().backward()
    assert [name for name, p in net.named_parameters() if p.grad is None or not p.grad.any()] == []
    assert all(p.grad.isfinite().all() for p in net.parameters())


@pytest.mark.parametrize("kind", [Icam, IcamCvrp])
def test_finite_at_large_alphas_and_far_coordinates(kind: type[Icam]) -> None:
    net = small(kind).float()
    for name, p in net.named_parameters():
        if "alpha" in name:
            p.data.fill_(-5.0 if "layers.0" in name else 30.0)
    coords, *demand = (f.float() for f in instance(kind))
    known, current, closed = midway(kind)
    known = known if kind is Icam else known.float()
    for scale in (1.0, 1e4):
        found = net.decide(net.prepare(net.encode(scale * coords, *demand)), known, current, closed.float())
        assert not found.isnan().any()
        assert torch.equal(found > -torch.inf, closed == 0)


@pytest.mark.parametrize("kind", [Icam, IcamCvrp])
def test_half_precision_is_near(kind: type[Icam]) -> None:
    net = small(kind).float()
    coords, *demand = (f.float() for f in instance(kind))
    known, current, closed = midway(kind)
    known, closed = known if kind is Icam else known.float(), closed.float()
    with torch.no_grad():
        exact = net.decide(net.prepare(net.encode(coords, *demand)), known, current, closed)
        with torch.autocast("cpu", torch.bfloat16):
            half = net.decide(net.prepare(net.encode(coords, *demand)), known, current, closed)
    assert half.dtype == torch.float32
    open_ = closed == 0
    torch.testing.assert_close(half[open_] / 50, exact[open_] / 50, rtol=0, atol=0.05)
