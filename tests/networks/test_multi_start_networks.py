"""What holds of every network of many starts, and of ICAM alone."""

from collections.abc import Iterable

import pytest
import torch
from torch import Tensor

from networks import MULTI_START, SWITCHES, VRP, N, features, idle, make, midway
from neuroute.decoding.cvrp import CvrpBatch
from neuroute.decoding.multi_start import roll_out
from neuroute.decoding.tsp import TspBatch

pytestmark = pytest.mark.usefixtures("one_thread")

EXACT = {"rtol": 1e-10, "atol": 1e-10}
EVERY = [*MULTI_START, *VRP]


def single(parts: Iterable[Tensor]) -> list[Tensor]:
    """Numbers in float32, nodes as they are."""
    return [part.float() if part.is_floating_point() else part for part in parts]


@pytest.mark.parametrize("name", EVERY)
def test_nodes_have_no_order_and_tours_and_instances_do_not_meet(name: str) -> None:
    net = make(name)
    seen, (known, current, closed) = features(net), midway(net)
    found = net.decide(net.prepare(net.encode(*seen)), known, current, closed)
    shuffle = torch.cat([torch.zeros(1, dtype=torch.int64), 1 + torch.randperm(N - 1)])  # the depot stays the first
    place = shuffle.argsort()  # where a node is now
    if net.problem == "tsp":
        known_now = place[known]
    else:
        known_now = known[..., torch.cat([torch.tensor([0]), 1 + shuffle])] if net.sees_served else known
    moved = net.decide(
        net.prepare(net.encode(*(f[:, shuffle] for f in seen))), known_now, place[current], closed[..., shuffle]
    )
    torch.testing.assert_close(moved, found[..., shuffle], **EXACT)
    prepared = net.prepare(net.encode(*(f[1:] for f in seen)))
    alone = net.decide(prepared, known[1:, 2:], current[1:, 2:], closed[1:, 2:])
    torch.testing.assert_close(alone, found[1:, 2:], **EXACT)


@pytest.mark.parametrize("name", EVERY)
def test_the_best_is_the_most_probable(name: str) -> None:
    """Whether or not scores are so large that several are clipped alike; ties apart."""
    for scale in (1.0, 30.0):
        net = make(name)
        state = midway(net)
        prepared = net.prepare(net.encode(*features(net)))
        prepared = prepared._replace(nodes=scale * prepared.nodes)
        logits, best = net.decide(prepared, *state), net.decide_best(prepared, *state)
        assert best.shape == state[1].shape
        torch.testing.assert_close(logits.gather(2, best[..., None])[..., 0], logits.amax(2), rtol=1e-12, atol=0)


@pytest.mark.parametrize("name", EVERY)
def test_in_float32_which_kernels_compute_the_best_is_that_of_float64(name: str) -> None:
    net = make(name)
    seen, state = features(net), midway(net)
    logits = net.decide(net.prepare(net.encode(*seen)), *state).detach()
    with torch.no_grad():
        net.float()
        best = net.decide_best(net.prepare(net.encode(*single(seen))), *single(state))
    torch.testing.assert_close(logits.gather(2, best[..., None])[..., 0], logits.amax(2), rtol=0, atol=1e-3)


@pytest.mark.parametrize("name", MULTI_START)
def test_all_of_it_learns_along_trajectories(name: str) -> None:
    """What training needs: log-probabilities of whole sampled tours, with gradients."""
    net = make(name)
    seen, log_p = features(net), list[Tensor]()

    def sample(logits: Tensor) -> Tensor:
        chosen = torch.distributions.Categorical(logits=logits).sample()
        log_p.append(logits.log_softmax(-1).gather(2, chosen[..., None])[..., 0])
        return chosen

    prepared = net.prepare(net.encode(*seen))
    if net.problem == "tsp":
        tours = roll_out(net, prepared, TspBatch(*seen), torch.arange(N).expand(2, -1), sample)
        assert torch.equal(tours.sort(-1).values, torch.arange(N).expand(2, N, N))
        assert len(log_p) == N - 2
    else:
        batch = CvrpBatch(seen[0], (seen[1] * 20).round().long(), torch.tensor([20, 20]))
        roll_out(net, prepared, batch, torch.arange(1, N).expand(2, -1), sample)
    (torch.stack(log_p).sum(0) * torch.randn(log_p[0].shape, dtype=torch.float64)).mean().backward()
    assert not idle(net)
    assert all(p.grad.isfinite().all() for p in net.parameters())


# -- ICAM: ablations, large sizes, half precision ---------------------------------------------------------------------


ICAMS = ["icam", "icam cvrp"]


@pytest.mark.parametrize("name", ICAMS)
@pytest.mark.parametrize(("adaptation", "compatibility"), SWITCHES[1:])
def test_what_is_left_out_is_what_alphas_of_0_leave(name: str, adaptation: bool, compatibility: bool) -> None:
    """icam, Table 9.  The equations of the whole network: test_published_layouts."""
    net, whole = make(f"{name} {int(adaptation)}{int(compatibility)}"), make(f"{name} 11")
    for part, p in whole.named_parameters():
        if "alpha" in part:
            p.data.zero_()
    whole.load_state_dict(net.state_dict(), strict=False)
    seen, state = features(net), midway(net)
    found, wanted = (each.decide(each.prepare(each.encode(*seen)), *state) for each in (net, whole))
    torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", ICAMS)
def test_finite_at_large_alphas_and_far_coordinates(name: str) -> None:
    net = make(f"{name} 11").float()
    for part, p in net.named_parameters():
        if "alpha" in part:
            p.data.fill_(-5.0 if "layers.0" in part else 30.0)
    (coords, *demand), state = single(features(net)), single(midway(net))
    for scale in (1.0, 1e4):
        found = net.decide(net.prepare(net.encode(scale * coords, *demand)), *state)
        assert not found.isnan().any()
        assert torch.equal(found > -torch.inf, state[2] == 0)


@pytest.mark.parametrize("name", ICAMS)
def test_half_precision_is_near(name: str) -> None:
    net = make(f"{name} 11").float()
    seen, state = single(features(net)), single(midway(net))
    with torch.no_grad():
        exact = net.decide(net.prepare(net.encode(*seen)), *state)
        with torch.autocast("cpu", torch.bfloat16):
            half = net.decide(net.prepare(net.encode(*seen)), *state)
    assert half.dtype == torch.float32
    open_ = state[2] == 0
    torch.testing.assert_close(half[open_] / 50, exact[open_] / 50, rtol=0, atol=0.05)
