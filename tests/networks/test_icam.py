"""ICAM: ablations, large sizes, half precision."""

import pytest
import torch

from networks import SWITCHES, WITHOUT_HEADS, awake, features, midway
from neuroute.networks.icam import Icam, IcamCvrp

pytestmark = pytest.mark.usefixtures("one_thread")

KINDS = [Icam, IcamCvrp]


def small(kind: type[Icam] = Icam, **switches: bool) -> Icam:
    return awake(kind, **WITHOUT_HEADS | switches)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("adaptation", "compatibility"), SWITCHES[1:])
def test_what_is_left_out_is_what_alphas_of_0_leave(kind: type[Icam], adaptation: bool, compatibility: bool) -> None:
    """icam, Table 9.  The equations of the whole network: test_published_layouts."""
    net, whole = small(kind, adaptation=adaptation, compatibility=compatibility), small(kind)
    for name, p in whole.named_parameters():
        if "alpha" in name:
            p.data.zero_()
    whole.load_state_dict(net.state_dict(), strict=False)
    seen, state = features(net), midway(net)
    found, wanted = (each.decide(each.prepare(each.encode(*seen)), *state) for each in (net, whole))
    torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-10)


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
