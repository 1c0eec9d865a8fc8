"""ELG for the CVRP beside numbers of its authors' code (beb676c): every decision of all starts, lengths, size."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from neuroute.networks.weights import parameters
from published_numbers import differ, imported, routes, state

pytestmark = pytest.mark.usefixtures("one_thread")


@torch.no_grad()
@pytest.mark.parametrize(
    ("instances", "dtype", "most"),
    [("a_", torch.float64, 1e-5), ("b_", torch.float64, 1e-5), ("c_", torch.float32, 1e-3)],
)
def test_routes_are_the_published_ones(
    public: Callable[[str], Path], tmp_path: Path, instances: str, dtype: torch.dtype, most: float
) -> None:
    """There 1e-6 is added to distances, and codes are of single precision, before all that is multiplied by 50."""
    numbers = np.load(public("refdata/systems/elg_cvrp.npz"))
    net = imported(tmp_path, {"model_state_dict": state(numbers, "state/")}).to(dtype)
    net.neighbours = int(numbers[f"{instances}size"])
    batch, stops = routes(numbers, instances, dtype), torch.from_numpy(numbers[f"{instances}s"]).long()
    encoded, kept = net.encode(*batch.features), numbers[f"{instances}k"].tolist()
    assert differ(encoded.nodes, numbers[f"{instances}h"]) < (1e-5 if dtype == torch.float32 else 1e-9)
    prepared, rollout = net.prepare(encoded), batch.rollout(stops[1], dtype)
    for step, (now, p) in enumerate(zip(stops[2:], numbers[f"{instances}pc"], strict=True)):
        ours = net.decide(prepared, rollout.context, rollout.current, rollout.action_mask).softmax(-1)
        assert torch.equal(ours.argmax(-1), now)
        assert differ(ours.gather(2, now[..., None])[..., 0], p) < most
        if step in kept:
            assert differ(ours, numbers[f"{instances}p"][kept.index(step)]) < most
        rollout.step(now)
    assert differ(-batch.lengths(rollout.solutions()), numbers[f"{instances}len"]) < 1e-6
    assert parameters(net) == numbers["count"]
