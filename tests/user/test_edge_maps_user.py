"""Networks that make maps of edges, for a user's instances."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import neuroute
from neuroute.core.errors import NeurouteError
from neuroute.networks.weights import build, save_checkpoint
from neuroute.plan.decodings import name_of
from neuroute.plan.known_digests import code_digest
from neuroute.plan.objects import Decoding, Network

pytestmark = pytest.mark.usefixtures("one_thread")
KINDS: dict[str, dict[str, Any]] = {
    "att_gcn.network:AttGcn": {"depth": 1, "width": 8, "near": 3, "actions": 3, "train_nodes": 8},
    "difusco.network:Difusco": {"depth": 1, "width": 8, "steps": 2, "actions": 3, "neighbours": 5},
    "dimes.network:Dimes": {"depth": 1, "width": 8, "actions": 3, "search_steps": 2, "search_tours": 9},
}


@pytest.mark.parametrize("kind", KINDS)
def test_maps_for_a_user(tmp_path: Path, kind: str) -> None:
    torch.manual_seed(0)
    network = Network(kind=f"neuroute.systems.{kind}", arguments=KINDS[kind])
    about = {"run": "own/net", "network": network.model_dump(), "code": code_digest(network.kind)}
    save_checkpoint(tmp_path / "net.safetensors", build(network), about)
    model = neuroute.load_model(tmp_path / "net.safetensors", "cpu")
    instances = neuroute.generate("tsp", 12, 3)
    merged = Decoding(method="neuroute.decoding.edge_maps.tours:merging")
    results = [neuroute.evaluate(model, instances, how) for how in (None, merged)]
    assert [name_of(each.decoding) for each in results] == ["tree_search", "merging"]
    solution = neuroute.solve(instances[0], model=model, seconds=0.1)
    assert sorted(np.asarray(solution.stops).tolist()) == list(range(12))
    with pytest.raises(NeurouteError, match="not by 'rrc'"):
        neuroute.evaluate(model, instances, Decoding(method="rrc", iterations=2))


def test_softdist_for_a_user() -> None:
    (instance,) = neuroute.generate("tsp", 30, 1)
    solution = neuroute.solve(instance, "softdist", seconds=0.3)
    assert sorted(np.asarray(solution.stops).tolist()) == list(range(30))
