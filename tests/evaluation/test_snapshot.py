"""What is kept of a live network: every parameter once, by its shape."""

import math
from typing import Any

import pytest
import torch

from neuroute.core.errors import NeurouteError
from neuroute.evaluation.snapshot import ModuleShapes, describe_modules, tap_inputs
from neuroute.networks.weights import build, parameters
from neuroute.specs.objects import Network

SHAPE = {"depth": 3, "width": 32, "heads": 4, "feed_forward": 64}
LAYERS = {
    "sit:Sit": ("decoder.layers.0.gather.query.weight", {"representatives": 5}),
    "pens:Pens": ("layers.0.qkv.weight", {"output_projection": True}),
    "pomo:Pomo": ("layers.0.qkv.weight", {}),
    "mvmoe:MvMoe": ("layers.0.qkv.weight", {"experts": 4, "top": 2}),
}


def read(kind: str) -> tuple[Any, ModuleShapes]:
    weight, arguments = LAYERS[kind]
    net = build(Network(kind=f"neuroute.networks.{kind}", arguments={**SHAPE, **arguments}))
    return net, ModuleShapes.read(str(describe_modules(net, weight.partition(".0.")[0])), SHAPE, weight, "group")


@pytest.mark.parametrize("kind", LAYERS)
def test_every_parameter_counts_once(kind: str) -> None:
    net, model = read(kind)
    rest = sum(math.prod(s) for name, s in model.shapes.items() if not name.startswith(f"{model.layers}."))
    assert model.depth * model.layer_parameters + rest == model.parameters == parameters(net)
    assert (model.depth, model.width, model.heads_text) == (3, 32, "4 heads of 8")
    rows = model.rows("x")
    assert sum(math.prod(map(int, r["shape"].split("x"))) * r["copies"] for r in rows[:-1]) == rows[-1]["count"]


def test_modules_of_another_network_are_one_clear_error() -> None:
    text = '[{"name": "embed", "kind": "Linear", "shapes": {"weight": [8, 2]}}]'
    with pytest.raises(NeurouteError, match=r"no decoder\.layers\.0\.gather.*evaluate its round again"):
        ModuleShapes.read(text, {}, LAYERS["sit:Sit"][0], "round")


def test_taps_read_what_enters_and_leave_nothing_behind() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    with tap_inputs(net, lambda module, inputs: (type(module).__name__, inputs[0].shape[-1])) as entered:
        net(torch.zeros(1, 2))
    net(torch.zeros(1, 2))
    assert entered == [("Linear", 2), ("ReLU", 3)]
