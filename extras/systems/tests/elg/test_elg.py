"""ELG: its edges and its switch.  The equations: test_published_layouts."""

import pytest
import torch

from networks import N, awake, features, midway
from neuroute_systems.elg.network import Elg, ElgCvrp

pytestmark = pytest.mark.usefixtures("one_thread")

SHAPE = {"depth": 1, "width": 16, "heads": 2, "feed_forward": 24}
KINDS = [Elg, ElgCvrp]


@pytest.mark.parametrize("kind", KINDS)
def test_more_neighbours_than_nodes_are_all_nodes(kind: type[Elg]) -> None:
    nets = [awake(kind, **SHAPE, neighbours=k) for k in (N, 50)]
    for net in nets[1:]:
        net.load_state_dict(nets[0].state_dict())
    seen, known = features(nets[0]), midway(nets[0])
    logits = [net.decide(net.prepare(net.encode(*seen)), *known) for net in nets]
    assert torch.equal(*logits)


@pytest.mark.parametrize("kind", KINDS)
def test_finite_where_nodes_coincide_or_nothing_is_left(kind: type[Elg]) -> None:
    """All at one place; a vehicle at the depot that has served all, whose load is 0."""
    net = awake(kind, **SHAPE, neighbours=3)
    seen = [torch.full_like(feature, 0.5) for feature in features(net)]
    known, current, closed = midway(net)
    if kind is ElgCvrp:
        seen[1][:, 0], known = 0, torch.zeros_like(known)
        closed = closed.masked_fill(torch.arange(N) > 0, -torch.inf).masked_fill(torch.arange(N) == 0, 0)
        current = torch.zeros_like(current)
    prepared = net.prepare(net.encode(*seen))
    logits = net.decide(prepared, known, current, closed)
    assert logits[closed == 0].isfinite().all()
    (logits[closed == 0].sum()).backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in net.parameters())


@pytest.mark.parametrize("kind", KINDS)
def test_without_its_local_policy_it_is_pomo_with_a_penalty(kind: type[Elg]) -> None:
    """What is not near is at the same score, and nearer neighbours are above it."""
    net = awake(kind, **SHAPE, neighbours=2, local=False)
    for p in (net.combine.weight, net.combine.bias):
        p.data.zero_()
    known, current, closed = midway(net)
    logits = net.decide(net.prepare(net.encode(*features(net))), known, current, closed)
    far = 50 * torch.tanh(torch.tensor(-1.0, dtype=torch.float64))
    assert (logits.amax(dim=-1) > far).all()
    customers = logits[..., 1:] if kind is ElgCvrp else logits
    assert ((customers - far).abs() < 1e-3).any()
