"""A trained network, ready to solve: a shipped one by name, or a checkpoint of any run."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from neuroute.core import device as devices
from neuroute.core.errors import NeurouteError
from neuroute.networks.base import RoutingNetwork
from neuroute.networks.weights import all_finite, load_checkpoint
from neuroute.plan.digest import code_digest
from neuroute.user import zoo

SOLVES = {"tsp": ("tsp",), "cvrp": ("cvrp",), "vrp": ("vrp", "cvrp")}  # what instances a model of each problem takes


@dataclass(frozen=True)
class Model:
    """A network with its weights, on its device.

    Attributes:
        net: the network.
        about: what its checkpoint says of it: `run`, `network`, ...
        place: its device.
        card: of a shipped one.
    """

    net: RoutingNetwork
    about: Mapping[str, Any]
    place: torch.device
    card: zoo.Card | None = None

    def __repr__(self) -> str:
        parameters = sum(p.numel() for p in self.net.parameters())
        return (
            f"<Model {self.name}: {type(self.net).__name__}, {self.problem}, {parameters:,} parameters, {self.place}>"
        )

    @property
    def problem(self) -> str:
        """`tsp`, `cvrp` or `vrp`."""
        return self.net.problem

    @property
    def name(self) -> str:
        """Of a shipped network; else the run that trained it."""
        return str(self.about["run"]) if self.card is None else self.card.name


def load_model(which: str | Path, device: str = "auto", trusted: Collection[str] = ()) -> Model:
    """Load a trained network.

    Args:
        which: the name of a shipped network (`neuroute.models`), or the path of a checkpoint (.safetensors).
        device: `auto` (a GPU where there is one), `cpu` or `cuda`.
        trusted: kinds of networks outside this package that a checkpoint may name, as "module:Class".

    Raises:
        NeurouteError: if there is no such network, the file is no checkpoint, is of other network code, or its training
            diverged.
    """
    place = devices.choose(device)
    if isinstance(which, str) and Path(which).name == which and not Path(which).suffix and not Path(which).is_file():
        path, card = zoo.checkpoint(which)
        net, about = load_checkpoint(path)
        zoo.check_decision(net, card)
        return Model(net.to(place), about, place, card)
    path = Path(which)
    net, about = load_checkpoint(path, trusted=trusted)
    if not all_finite(net):
        raise NeurouteError(
            f"{path}: weights of {about['run']} are no finite numbers; its training diverged: lower the learning rate "
            "and train it anew"
        )
    if about["code"] != code_digest(about["network"]["kind"]):
        raise NeurouteError(
            f"{path}: {about['run']} was written by another version of the network's code; make it again, or, if its "
            "arithmetic is the same, keep the weights with `neuroute import-weights`"
        )
    return Model(net.to(place), about, place)
