"""Networks of systems for a user's instances: by their own way where none is asked for, by no other one than theirs."""

from pathlib import Path
from typing import Any

import pytest
from untrained import untrained

import neuroute
from neuroute.core.errors import NeurouteError
from neuroute.plan.objects import Decoding, Network

pytestmark = pytest.mark.usefixtures("one_thread")
NARROW = {"depth": 1, "width": 8}
SHAPE = {"depth": 1, "width": 16, "heads": 2, "feed_forward": 16}
MDAM = SHAPE | {"depth": 2, "decoders": 2}
HTSP = {"fragment": 8, "added": 5, "neighbours": 4, "cells": 6, "channels": [4], "upper_width": 8, "critic_width": 8}
NETWORKS: dict[str, tuple[str, int, str, dict[str, Any]]] = {  # problem, nodes, its own way, arguments
    "att_gcn:AttGcn": ("tsp", 12, "tree_search", NARROW | {"near": 3, "actions": 3, "train_nodes": 8}),
    "difusco:Difusco": ("tsp", 12, "tree_search", NARROW | {"steps": 2, "actions": 3, "neighbours": 5}),
    "dimes:Dimes": ("tsp", 12, "tree_search", NARROW | {"actions": 3, "search_steps": 2, "search_tours": 9}),
    "glop:Glop": ("tsp", 20, "revise-usual", SHAPE | {"blocks": [8, 5], "insertions": [2, 2, 1, 2]}),
    "glop:GlopPartition": ("cvrp", 15, "partition", NARROW | {"neighbours": 5}),
    "htsp:Htsp": ("tsp", 21, "grow", SHAPE | HTSP),
    "mdam:Mdam": ("tsp", 9, "decoders", MDAM),
    "mdam:MdamCvrp": ("cvrp", 9, "decoders", MDAM),
}
EDGE_MAPS, MDAMS = ("att_gcn:AttGcn", "difusco:Difusco", "dimes:Dimes"), ("mdam:Mdam", "mdam:MdamCvrp")
BEAMS, AGAIN = Decoding(method="beam", beam=6), Decoding(method="rrc", iterations=2)
MERGED = Decoding(method="neuroute.decoding.edge_maps.tours:merging")
OTHERS = dict.fromkeys(EDGE_MAPS, (MERGED, "merging")) | dict.fromkeys(MDAMS, (BEAMS, "decoders-beam6"))
REFUSED = {
    **dict.fromkeys(EDGE_MAPS, (AGAIN, "not by 'rrc'")),
    "glop:GlopPartition": (BEAMS, "GlopPartition is decoded by method 'partition' alone, not by 'beam'"),
    "htsp:Htsp": (BEAMS, "is decoded by method 'grow' alone, not by 'beam'"),
    **dict.fromkeys(MDAMS, (AGAIN, "is decoded by method 'decoders' alone, not by 'rrc'")),
}


def load(folder: Path, name: str) -> tuple[neuroute.Model, list[neuroute.Instance]]:
    """The network, untrained, and three instances for it."""
    if name == "glop:GlopPartition":
        pytest.importorskip("elkai")
    problem, n, _, arguments = NETWORKS[name]
    system, _, network = name.partition(":")
    made = Network(kind=f"neuroute.systems.{system}.network:{network}", arguments=arguments)
    file = untrained(folder / "net.safetensors", made, "own/net")
    return neuroute.load_model(file, "cpu"), neuroute.generate(problem, n, 3)


@pytest.mark.parametrize("name", NETWORKS)
def test_instances_are_solved_by_its_own_way(tmp_path: Path, name: str) -> None:
    model, instances = load(tmp_path, name)
    assert neuroute.evaluate(model, instances).decoding.name == NETWORKS[name][2]
    assert neuroute.solve(instances[0], model=model, seconds=0.1).cost > 0  # checked when it is made


@pytest.mark.parametrize("name", OTHERS)
def test_another_of_its_ways_can_be_asked_for(tmp_path: Path, name: str) -> None:
    (model, instances), (asked, way) = load(tmp_path, name), OTHERS[name]
    assert neuroute.evaluate(model, instances, asked).decoding.name == way
    assert neuroute.solve(instances[0], model=model, decoding=asked).method == f"own/net, {way}"


@pytest.mark.parametrize("name", REFUSED)
def test_ways_of_others_are_refused(tmp_path: Path, name: str) -> None:
    (model, instances), (asked, says) = load(tmp_path, name), REFUSED[name]
    with pytest.raises(NeurouteError, match=says):
        neuroute.evaluate(model, instances, asked)
