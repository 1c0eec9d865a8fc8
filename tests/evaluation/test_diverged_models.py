"""A checkpoint of a training that diverged: refused in one line, where decoding it would never end."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from neuroute.networks.weights import load_checkpoint, save_checkpoint
from neuroute.plan.objects import Network
from untrained import refused, untrained

pytestmark = pytest.mark.usefixtures("one_thread")
RNG = np.random.default_rng(5)
COORDS, DEMAND = RNG.random((2, 9, 2)), np.append([0], RNG.integers(1, 10, 8))


def diverged(folder: Path, kind: str) -> Path:
    """A model whose last tensor holds a NaN."""
    network = Network(kind=f"neuroute.networks.{kind}", arguments={"depth": 1, "width": 16, "feed_forward": 32})
    path = untrained(folder / "model.safetensors", network, "icam/wild")
    net, about = load_checkpoint(path)
    with torch.no_grad():
        list(net.parameters())[-1].view(-1)[0] = torch.nan
    save_checkpoint(path, net, about)
    return path


@pytest.mark.parametrize(
    ("kind", "loads"),
    [
        ("icam:Icam", {}),
        ("icam:IcamCvrp", {"demand": np.tile(DEMAND, (2, 1)), "capacity": np.full(2, 20)}),
        ("pomo:PomoCvrp", {"demand": np.tile(DEMAND, (2, 1)), "capacity": np.full(2, 20)}),
    ],
)
def test_it_is_refused(kind: str, loads: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez(tmp_path / "mine.npz", coords=COORDS, **loads)
    model = diverged(tmp_path, kind)
    said = refused("evaluate", "--model", model, "--data", "mine.npz", "--starts", "all", "--out", "found.csv")
    assert said.startswith(f"error: {model}: weights of icam/wild are no finite numbers")
    assert "learning rate" in said
    assert not (tmp_path / "found.csv").exists()
