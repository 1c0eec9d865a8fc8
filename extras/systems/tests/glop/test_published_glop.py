"""GLOP beside numbers of its authors' code (e540bc0): partitions of plain graphs and CVRPLIB's, and the reviser."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from neuroute.networks.import_weights import import_weights
from neuroute.networks.weights import load_checkpoint
from neuroute_systems.glop.network import FLOOR, Glop, GlopPartition
from published_numbers import differ, state

pytestmark = pytest.mark.usefixtures("one_thread")
CAPACITY = 50


@pytest.fixture(scope="module")
def numbers(public: Callable[[str], Path]) -> dict[str, np.ndarray]:
    return dict(np.load(public("refdata/systems/glop.npz")))


@pytest.mark.parametrize(("graph", "neighbours"), [("plain", 20), ("lib", 30)])
def test_a_partition_is_the_published_one(
    numbers: dict[str, np.ndarray], tmp_path: Path, graph: str, neighbours: int
) -> None:
    """Neighbours, in any order, edges' features, probabilities; an instance may be heated in parts."""
    torch.save(state(numbers, f"{graph}/"), tmp_path / "theirs.pt")
    settings = {"neighbours": neighbours, "near": graph == "lib"}
    import_weights(tmp_path / "theirs.pt", tmp_path / "ours.safetensors", None, settings)
    net = load_checkpoint(tmp_path / "ours.safetensors")[0].eval()
    coords = torch.from_numpy(numbers[f"{graph}_c"])[None]
    share = torch.from_numpy(numbers[f"{graph}_d"]).float()[None] / CAPACITY
    theirs, places = torch.from_numpy(numbers[f"{graph}_nb"]).sort(dim=1)
    with torch.no_grad():
        heat = net.encode(coords, share)
        out = coords - coords[:, :1]
        features = net._similar(coords, out, out.norm(dim=-1))[1][0]
    ours, order = heat.neighbours[0].sort(dim=1)
    assert torch.equal(ours, theirs)
    attributes = torch.from_numpy(numbers[f"{graph}_attr"])
    feature = order[..., None].expand(-1, -1, 2), places[..., None].expand(-1, -1, 2)
    assert differ(features.gather(1, feature[0]), attributes.gather(1, feature[1])) < 1e-6
    weights = heat.weights[0].gather(1, order) - FLOOR
    odds = torch.from_numpy(numbers[f"{graph}_heu"]).gather(1, places)
    assert differ(weights / weights.sum(dim=1, keepdim=True), odds) < 1e-5


def test_a_reviser_is_the_published_one(numbers: dict[str, np.ndarray], tmp_path: Path) -> None:
    """Both directions: log-probabilities along the published paths, and which paths greedy choices make."""
    torch.save({"model": state(numbers, "rev/")}, tmp_path / "theirs.pt")
    import_weights(tmp_path / "theirs.pt", tmp_path / "ours.safetensors", None, {"blocks": [20]})
    net = load_checkpoint(tmp_path / "ours.safetensors")[0].eval()
    points, m = torch.from_numpy(numbers["rx"]), 20
    paths = [torch.from_numpy(numbers[name]) for name in ("rpi", "rpi2")]
    with torch.no_grad():
        prepared = net.revisers[0].prepare(points)
        node = torch.arange(m)
        mask = torch.zeros(m - 2, m).masked_fill((node <= node[: m - 2, None]) | (node == m - 1), -torch.inf)
        for path, logs in zip(paths, ("rlp", "rlp2"), strict=True):
            along = type(prepared)(*(part.gather(1, path[..., None].expand_as(part)) for part in prepared))
            ours = net.revisers[0].decide_all(along, mask).log_softmax(-1)
            theirs = torch.from_numpy(numbers[logs])[:, 1:-1].gather(2, path[:, None].expand(-1, m - 2, -1))
            is_open = (mask == 0).expand_as(ours)
            assert differ(ours[is_open], theirs[is_open]) < 1e-5
        greedy = net.build(net.encode(points))
    assert torch.equal(greedy, torch.cat([paths[0], paths[1].flip(1)]))


def test_sizes_are_the_published_ones(numbers: dict[str, np.ndarray]) -> None:
    partitions = [sum(p.numel() for p in GlopPartition(depth=depth).parameters()) for depth in (12, 6)]
    assert partitions == numbers["counts"].tolist()
    assert sum(p.numel() for p in Glop(blocks=(20,)).parameters()) == int(numbers["count_reviser"])
