"""ICAM: equations, ablations, large sizes, half precision."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from by_the_book import instance_norm
from networks import SWITCHES, WITHOUT_HEADS, N, awake, features, midway
from neuroute.networks.icam import Icam, IcamCvrp

pytestmark = pytest.mark.usefixtures("one_thread")

KINDS = [Icam, IcamCvrp]


def small(kind: type[Icam] = Icam, **switches: bool) -> Icam:
    return awake(kind, **WITHOUT_HEADS | switches)


def by_the_book(net: Icam, given: tuple[Tensor, ...], known: Tensor, current: Tensor, closed: Tensor) -> Tensor:
    """icam, Eqs. 3 to 5, 12 to 15: every weight of every pair and channel written out."""

    def mixed(query: Tensor, keys: Tensor, values: Tensor, bias: Tensor) -> Tensor:
        above = (torch.exp(bias)[..., None] * (torch.exp(keys) * values)[:, None]).sum(2)
        below = (torch.exp(bias)[..., None] * torch.exp(keys)[:, None]).sum(2)
        return torch.sigmoid(query) * above / below

    coords, cvrp = given[0], len(given) > 1
    apart = (coords[:, :, None] - coords[:, None]).norm(dim=-1)
    log_n = math.log2(N - 1 if cvrp else N)
    if cvrp:
        embed: Any = net.embed
        depot = coords[:, :1] @ embed.depot.weight.T + embed.depot.bias
        customers = torch.cat([coords[:, 1:], given[1][:, 1:, None]], -1) @ embed.customers.weight.T
        h = torch.cat([depot, customers + embed.customers.bias], 1)
    else:
        h = net.embed(coords)
    for layer in net.layers:
        query, keys, values = (h @ w.T for w in layer.qkv.weight.chunk(3))
        bias = torch.zeros_like(apart) if layer.alpha is None else -layer.alpha * log_n * apart
        h = instance_norm(h + mixed(query, keys, values, bias), layer.attention_norm)
        h = instance_norm(h + layer.down(torch.relu(layer.up(h))), layer.feed_forward_norm)
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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("adaptation", "compatibility"), SWITCHES)
def test_equals_the_equations(kind: type[Icam], adaptation: bool, compatibility: bool) -> None:
    net = small(kind, adaptation=adaptation, compatibility=compatibility)
    seen, state = features(net), midway(net)
    found = net.decide(net.prepare(net.encode(*seen)), *state)
    torch.testing.assert_close(found, by_the_book(net, seen, *state), rtol=1e-10, atol=1e-10)


def test_the_four_ablations_differ_and_only_afm_alone_sees_no_size() -> None:
    outs = []
    for adaptation, compatibility in SWITCHES:
        net = small(adaptation=adaptation, compatibility=compatibility)
        encoded = net.encode(*features(net))
        assert (encoded.distances is None) == (not adaptation and not compatibility)
        outs.append(net.decide(net.prepare(encoded), *midway(net)))
        other = net.decide(net.prepare(net.encode(*features(net))._replace(log_n=7.0)), *midway(net))
        assert torch.equal(outs[-1], other) == (not adaptation and not compatibility)
    open_ = midway(net)[2] == 0
    assert all(not torch.allclose(a[open_], b[open_]) for i, a in enumerate(outs) for b in outs[:i])


@pytest.mark.parametrize("kind", KINDS)
def test_finite_at_large_alphas_and_far_coordinates(kind: type[Icam]) -> None:
    net = small(kind).float()
    for name, p in net.named_parameters():
        if "alpha" in name:
            p.data.fill_(-5.0 if "layers.0" in name else 30.0)
    coords, *demand = (f.float() for f in features(net))
    known, current, closed = midway(net)
    known = known if kind is Icam else known.float()
    for scale in (1.0, 1e4):
        found = net.decide(net.prepare(net.encode(scale * coords, *demand)), known, current, closed.float())
        assert not found.isnan().any()
        assert torch.equal(found > -torch.inf, closed == 0)


@pytest.mark.parametrize("kind", KINDS)
def test_half_precision_is_near(kind: type[Icam]) -> None:
    net = small(kind).float()
    coords, *demand = (f.float() for f in features(net))
    known, current, closed = midway(net)
    known, closed = known if kind is Icam else known.float(), closed.float()
    with torch.no_grad():
        exact = net.decide(net.prepare(net.encode(coords, *demand)), known, current, closed)
        with torch.autocast("cpu", torch.bfloat16):
            half = net.decide(net.prepare(net.encode(coords, *demand)), known, current, closed)
    assert half.dtype == torch.float32
    open_ = closed == 0
    torch.testing.assert_close(half[open_] / 50, exact[open_] / 50, rtol=0, atol=0.05)
