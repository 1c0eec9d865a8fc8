"""INViT beside numbers of its authors' code (f11a602): every decision along its greedy solutions, and sizes."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from neuroute.decoding.multi_start import start_rollout
from neuroute.decoding.tsp import TspBatch
from neuroute.networks.weights import parameters
from neuroute_systems.invit.network import Invit, InvitCvrp
from published_numbers import differ, imported, routes, state

pytestmark = pytest.mark.usefixtures("one_thread")


@torch.no_grad()
def test_tours_are_the_published_ones(public: Callable[[str], Path], tmp_path: Path) -> None:
    """The published code ran in single precision."""
    numbers = np.load(public("refdata/systems/invit.npz"))
    net = imported(tmp_path, {"model_baseline": state(numbers, "state/")})
    batch, tours = TspBatch(torch.from_numpy(numbers["x"]).double()), torch.from_numpy(numbers["t"]).long()
    rollout, prepared = batch.rollout(tours[:, :1], torch.float64), net.prepare(net.encode(batch.coords))
    total = torch.zeros(len(tours), dtype=torch.float64)
    for step, stops in enumerate(tours[:, 1:].T[..., None]):
        p = net.decide(prepared, rollout.context, rollout.current, rollout.action_mask)[:, 0].softmax(-1)
        assert torch.equal(p.argmax(-1), stops[:, 0])
        total += p.gather(1, stops)[:, 0].log()
        if step in (0, 20, 50, 63):
            theirs = torch.from_numpy(numbers["p"][(0, 20, 50, 63).index(step)])
            assert differ(p.topk(15).values, theirs.sort(descending=True).values) < 1e-5
        rollout.step(stops)
    assert differ(total, numbers["l"]) < 1e-6
    sizes = [parameters(Invit(views=v, action_depth=a)) for v, a in (((35, 50), 2), ((35, 50, 65), 4))]
    assert sizes == numbers["counts"].tolist()


@pytest.mark.slow
@torch.no_grad()
@pytest.mark.parametrize("instances", ["a_", "b_", "c_"])
def test_routes_are_the_published_ones(public: Callable[[str], Path], tmp_path: Path, instances: str) -> None:
    """Views that are full, and at customers and at the depot views that lack customers that fit, or others."""
    numbers = np.load(public("refdata/systems/invit_cvrp.npz"))
    net, batch = imported(tmp_path, {"model_baseline": state(numbers, "state/")}), routes(numbers, instances)
    rollout = start_rollout(net, batch, torch.zeros(len(batch), 1, dtype=torch.int64), torch.float64)
    stops, theirs = (torch.from_numpy(numbers[f"{instances}{name}"]) for name in "tp")
    prepared = net.prepare(net.encode(*batch.features))
    for now, p in zip(stops.long().T[..., None], theirs, strict=True):
        ours = net.decide(prepared, rollout.context, rollout.current, rollout.action_mask)[:, 0].softmax(-1)
        goes_on = p.sum(-1) > 0
        assert differ(ours[goes_on], p[goes_on]) < 1e-9
        rollout.step(now)
    assert rollout.done()
    shapes = (((35, 50), 2), ((35, 50, 65), 2), ((35, 50, 65), 4))
    assert [parameters(InvitCvrp(views=v, action_depth=a)) for v, a in shapes] == numbers["counts"].tolist()
