"""GLOP for a user's instances: in its own ways where nothing else is asked for, and refused in one line elsewhere."""

from pathlib import Path

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
GLOP = Network(
    kind="neuroute.systems.glop.network:Glop",
    arguments={"depth": 1, "width": 16, "heads": 2, "feed_forward": 16, "blocks": [8, 5], "insertions": [2, 2, 1, 2]},
)
GLOP_G = Network(
    kind="neuroute.systems.glop.network:GlopPartition", arguments={"depth": 1, "width": 8, "neighbours": 5}
)


def checkpoint(folder: Path, network: Network) -> Path:
    torch.manual_seed(0)
    path = folder / "net.safetensors"
    about = {"run": "own/net", "network": network.model_dump(), "code": code_digest(network.kind)}
    save_checkpoint(path, build(network), about)
    return path


def test_glop_revises(tmp_path: Path) -> None:
    model = neuroute.load_model(checkpoint(tmp_path, GLOP), "cpu")
    found = neuroute.evaluate(model, neuroute.generate("tsp", 20, 3))
    assert name_of(found.decoding) == "revise-usual"
    assert found.decoding.method == "revise"
    solution = neuroute.solve(neuroute.generate("tsp", 20, 1)[0], model=model, seconds=0.2)
    assert sorted(np.asarray(solution.stops).tolist()) == list(range(20))


def test_glop_g_parts(tmp_path: Path) -> None:
    pytest.importorskip("elkai")
    model = neuroute.load_model(checkpoint(tmp_path, GLOP_G), "cpu")
    instances = neuroute.generate("cvrp", 15, 3)
    found = neuroute.evaluate(model, instances)
    assert name_of(found.decoding) == "partition"
    solution = neuroute.solve(instances[0], model=model, seconds=0.1)
    assert sorted(stop for route in solution.routes for stop in route) == list(range(1, 16))
    with pytest.raises(NeurouteError, match="GlopPartition is decoded by method 'partition' alone, not by 'beam'"):
        neuroute.evaluate(model, instances, Decoding(method="beam", beam=2))
