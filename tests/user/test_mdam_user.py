"""MDAM for a user's instances: greedily where nothing is asked for, with as many beams as are asked for."""

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


def model_of(folder: Path, name: str) -> neuroute.Model:
    torch.manual_seed(0)
    arguments = {"depth": 2, "width": 16, "heads": 2, "feed_forward": 16, "decoders": 2}
    network = Network(kind=f"neuroute.systems.mdam.network:{name}", arguments=arguments)
    about = {"run": "own/net", "network": network.model_dump(), "code": code_digest(network.kind)}
    save_checkpoint(folder / "net.safetensors", build(network), about)
    return neuroute.load_model(folder / "net.safetensors", "cpu")


@pytest.mark.parametrize("problem", ["tsp", "cvrp"])
def test_mdam_for_a_user(tmp_path: Path, problem: str) -> None:
    model = model_of(tmp_path, {"tsp": "Mdam", "cvrp": "MdamCvrp"}[problem])
    instances = neuroute.generate(problem, 9, 3)
    found = [neuroute.evaluate(model, instances, asked) for asked in (None, Decoding(method="beam", beam=6))]
    assert [name_of(each.decoding) for each in found] == ["decoders", "decoders-beam6"]
    solution = neuroute.solve(instances[0], model=model, seconds=0.1)
    if problem == "tsp":
        assert sorted(np.asarray(solution.stops).tolist()) == list(range(9))
    else:
        assert sorted(stop for route in solution.routes for stop in route) == list(range(1, 10))
    by_beams = neuroute.solve(instances[0], model=model, decoding=Decoding(method="beam", beam=6))
    assert by_beams.method == "own/net, decoders-beam6"  # checked when it is made
    with pytest.raises(NeurouteError, match="is decoded by method 'decoders' alone, not by 'rrc'"):
        neuroute.evaluate(model, instances, Decoding(method="rrc", iterations=2))
