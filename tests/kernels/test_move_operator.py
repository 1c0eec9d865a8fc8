"""The compiled moves of rollouts are torch's, bit for bit: on the CVRP and on all 16 variants."""

from typing import Any

import pytest
import torch
from torch import Tensor

from neuroute.datasets.streams import cvrp_dataset, vrp_dataset
from neuroute.decoding.cvrp import CvrpBatch, RouteRollout
from neuroute.decoding.vrp import VrpBatch
from neuroute.networks.kernels import library, moves
from neuroute.problems.vrp import SWITCHES
from neuroute.specs.objects import Dataset

pytestmark = pytest.mark.skipif(library.library() is None, reason=library.describe())
CPU = torch.device("cpu")


def batch_of(name: str) -> CvrpBatch:
    if name == "cvrp":
        return CvrpBatch.of(cvrp_dataset(Dataset(problem="cvrp", n=13, count=3)), CPU)
    return VrpBatch.of(vrp_dataset(Dataset(problem="vrp", variant=name, n=13, count=3)), CPU)


def known(rollout: Any) -> dict[str, Tensor]:
    return {name: getattr(rollout, name) for name in (*rollout.of_tours, "context", "action_mask", "_visited")}


def played(batch: CvrpBatch, monkeypatch: pytest.MonkeyPatch, *, compiled: bool) -> list[dict[str, Tensor]]:
    """After each of the moves, random ones that are open."""
    asked = []

    def fits(stops: Tensor, mask: Tensor) -> bool:
        asked.append(compiled and real(stops, mask))
        return asked[-1]

    real = moves.fits
    with torch.no_grad(), monkeypatch.context() as patched:
        patched.setattr(moves, "fits", fits)
        rollout: RouteRollout = batch.rollout(batch.start_nodes(5), torch.float32)  # type: ignore[assignment]
        generator, states = torch.Generator().manual_seed(3), []
        while not rollout.done():
            states.append({name: each.clone() for name, each in known(rollout).items()})
            drawn = torch.rand(rollout.action_mask.shape, generator=generator) + rollout.action_mask
            rollout.step(drawn.argmax(dim=2))
            if rollout._moves == 4:
                rollout.select(torch.tensor([[4, 0, 0, 2, 1]]).expand(3, -1))
        states.append({**known(rollout), "solutions": rollout.solutions()})
    assert all(each == compiled for each in asked)
    return states


@pytest.mark.parametrize("name", ["cvrp", *SWITCHES])
def test_every_state_is_torch_s(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = batch_of(name)
    found, wanted = (played(batch, monkeypatch, compiled=compiled) for compiled in (True, False))
    assert len(found) == len(wanted) > 13
    for one, other in zip(found, wanted, strict=True):
        for key, value in other.items():
            assert one[key].dtype == value.dtype, key
            assert torch.equal(one[key], value), key


def test_a_state_that_was_kept_stays_what_it_was() -> None:
    with torch.no_grad():
        rollout: Any = batch_of("VRPTW").rollout(torch.ones(3, 1, dtype=torch.int64), torch.float32)
        kept = {name: getattr(rollout, name) for name in ("current", "context", "_load", "_time")}
        before = {name: each.clone() for name, each in kept.items()}
        rollout.step(torch.zeros(3, 1, dtype=torch.int64))
    assert all(torch.equal(kept[name], before[name]) for name in kept)


def test_stops_that_are_not_there() -> None:
    with torch.no_grad():
        rollout = batch_of("cvrp").rollout(torch.ones(3, 1, dtype=torch.int64), torch.float32)
        with pytest.raises(IndexError, match="out of range"):
            rollout.step(torch.full((3, 1), 14))


def test_with_gradients_or_in_float64_torch_moves() -> None:
    stops, mask = torch.ones(3, 2, dtype=torch.int64), torch.zeros(3, 2, 14)
    assert not moves.fits(stops, mask)
    with torch.no_grad():
        assert moves.fits(stops, mask)
        assert not moves.fits(stops, mask.double())
