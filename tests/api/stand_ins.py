"""Stand-ins for the shipped networks: untrained, tiny, in a folder of their own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pack_zoo import ship as ship_file
from untrained import untrained

from neuroute.api import zoo
from neuroute.specs.objects import Network

CARD: dict[str, Any] = {
    "trained_on": "nothing",
    "seed": 0,
    "commit": "none",
    "date": "2026-01-01",
    "device": "none",
    "seconds": 0.0,
    "trained_nodes": (20, 50),
}
PATH = {"depth": 1, "width": 16, "heads": 2, "feed_forward": 16, "train_nodes": 20}
MANY = {"depth": 1, "width": 16, "heads": 2, "feed_forward": 16, "experts": 0, "train_nodes": 20}
KINDS = {"tsp": ("lehd:Lehd", PATH), "cvrp": ("lehd:LehdCvrp", PATH), "vrp": ("mvmoe:MvMoe", MANY)}
Ship = Callable[..., zoo.Card]


def checkpoint(path: Path, problem: str) -> Path:
    kind, arguments = KINDS[problem]
    return untrained(path, Network(kind=f"neuroute.networks.{kind}", arguments=arguments), f"zoo/{problem}")


def shipping(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Ship:
    """A function that ships an untrained network: `ship("tsp", name=..., nodes=...)`.  None is there at first."""
    monkeypatch.setattr(zoo, "FOLDER", folder / "zoo")

    def add(problem: str, **about: Any) -> zoo.Card:
        file = checkpoint(folder / f"{problem}.safetensors", problem)
        return ship_file(file, CARD | {"name": problem, "nodes": (4, 100)} | about)

    return add
