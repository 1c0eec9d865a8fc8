"""H-TSP for a user's instances."""

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


def test_htsp_for_a_user(tmp_path: Path) -> None:
    torch.manual_seed(0)
    arguments = {"depth": 1, "width": 16, "heads": 2, "feed_forward": 16, "fragment": 8, "added": 5, "neighbours": 4}
    arguments |= {"cells": 6, "channels": [4], "upper_width": 8, "critic_width": 8}
    network = Network(kind="neuroute.systems.htsp.network:Htsp", arguments=arguments)
    about = {"run": "own/net", "network": network.model_dump(), "code": code_digest(network.kind)}
    save_checkpoint(tmp_path / "net.safetensors", build(network), about)
    model = neuroute.load_model(tmp_path / "net.safetensors", "cpu")
    instances = neuroute.generate("tsp", 21, 3)
    assert name_of(neuroute.evaluate(model, instances).decoding) == "grow"
    solution = neuroute.solve(instances[0], model=model, seconds=0.1)
    assert sorted(np.asarray(solution.stops).tolist()) == list(range(21))
    with pytest.raises(NeurouteError, match="is decoded by method 'grow' alone, not by 'beam'"):
        neuroute.evaluate(model, instances, Decoding(method="beam", beam=6))
