"""One name for each decoding, and one default, by the command line and by Python."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import done, refused
from untrained import untrained

import neuroute
from neuroute.core.errors import NeurouteError
from neuroute.specs.decodings import parse_decoding
from neuroute.specs.objects import Decoding, Network
from stand_ins import Ship

NAMED = {
    "greedy": {},
    "multistart": {"starts": "all"},
    "multistart5": {"starts": 5},
    "multistart-x8": {"starts": "all", "augment": True},
    "greedy-x8": {"augment": True},
    "beam16": {"method": "beam", "beam": 16},
    "beam16-multistart": {"method": "beam", "beam": 16, "starts": "all"},
    "rrc20-multistart4": {"method": "rrc", "iterations": 20, "starts": 4},
    "prc20": {"method": "prc", "iterations": 20},
    "prc20-insertion": {"method": "prc", "iterations": 20, "start": "insertion"},
}


@pytest.mark.parametrize("name", NAMED)
def test_a_decoding_has_one_name_by_which_it_is_asked_for(name: str) -> None:
    decoding = neuroute.Decoding.model_validate(NAMED[name])
    assert decoding.name == name
    assert parse_decoding(name) == decoding


@pytest.mark.parametrize(
    ("how", "name"),
    [
        ({"images": 16}, "greedy-images16"),
        ({"repeats": 3, "draw": 2}, "greedy-draw2-mean3"),
        ({"augment": True, "rescale": 8.0}, "greedy-x8-rescale8.0"),
        ({"starts": "all", "rescale": "best", "batch_size": 4}, "multistart-rescalebest-batch4"),
        ({"method": "prc", "iterations": 9, "start": "insertion-angle", "longest": 50}, "prc9-insertion-angle-l50"),
        ({"method": "my.module:decoders", "beam": 50}, "decoders-beam50"),
    ],
)
def test_names_say_in_words_what_is_unusual(how: dict[str, object], name: str) -> None:
    assert neuroute.Decoding.model_validate(how).name == name


@pytest.mark.parametrize(("problem", "default"), [("tsp", "greedy"), ("cvrp", "greedy"), ("vrp", "multistart")])
def test_the_default_is_the_same_by_command_line_and_python(
    ship: Ship, tmp_path: Path, problem: str, default: str
) -> None:
    ship(problem)
    if problem == "tsp":
        arrays = {"coords": np.random.default_rng(0).random((3, 12, 2))}
    else:
        arrays = {"coords": np.random.default_rng(0).random((3, 13, 2)), "capacity": np.full(3, 9)}
        arrays["demand"] = np.tile([0, *[1] * 12], (3, 1))
    np.savez(tmp_path / "x.npz", **arrays)
    result = neuroute.evaluate(problem, tmp_path / "x.npz")
    said = done("evaluate", "--model", problem, "--data", tmp_path / "x.npz")
    assert result.decoding.name == default
    assert said.splitlines()[:2] == str(result).splitlines()[:2]  # length included
    assert said.splitlines()[-1] == str(result).splitlines()[-1]
    assert said.rstrip().endswith(f", {default}")
    by_name = done("evaluate", "--model", problem, "--data", tmp_path / "x.npz", "--decoding", default)
    assert by_name.splitlines()[1] == said.splitlines()[1]
    solution = neuroute.solve(neuroute.load(tmp_path / "x.npz", 0), model=problem, seconds=0)
    assert solution.method == f"{problem}, {default}"
    assert solution.cost == pytest.approx(result.lengths[0])


def test_the_shipped_network_of_the_tsp_decodes_from_all_starts() -> None:
    result = neuroute.evaluate("tsp", neuroute.generate("tsp", 12, 2))
    assert result.decoding.name == "multistart"
    one = neuroute.evaluate("tsp", neuroute.generate("tsp", 12, 2), "greedy")
    assert (one.lengths >= result.lengths - 1e-9).all()
    assert neuroute.solve(neuroute.generate("tsp", 12)[0], seconds=0).method == "tsp, multistart"


# -- networks of systems: by their own way where none is asked for, by no other one than theirs -----------------------


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
BEAMS, MERGED = Decoding(method="beam", beam=6), Decoding(method="edge_maps:merging")
OTHERS = dict.fromkeys(EDGE_MAPS, (MERGED, "merging")) | dict.fromkeys(MDAMS, (BEAMS, "decoders-beam6"))


def load(folder: Path, name: str) -> tuple[neuroute.Model, list[neuroute.Instance]]:
    """The network, untrained, and three instances for it."""
    if name == "glop:GlopPartition":
        pytest.importorskip("elkai")
    problem, n, _, arguments = NETWORKS[name]
    system, _, network = name.partition(":")
    made = Network(kind=f"neuroute_systems.{system}.network:{network}", arguments=arguments)
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


def test_models_are_a_short_table_with_details_by_name(ship: Ship) -> None:
    gaps = [
        {"set": set_, "decoding": how, "instances": 9, "gap": gap, "reference": "lkh"}
        for set_, how, gap in (
            ("TSP20", "greedy", 1.0),
            ("TSP50", "greedy", 2.0),
            ("TSP50", "multistart", 1.5),
            ("TSP50", "prc10", 1.25),
            ("TSP200", "multistart", 3.0),  # larger than it was trained on
            ("TSPLIB below 200 nodes", "multistart", 4.0),
        )
    ]
    ship("tsp", gaps=gaps)
    ship("vrp", variants=("CVRP", "OVRP"), gaps=[{**gaps[1], "set": "CVRP50"}, {**gaps[2], "set": "OVRP50"}])
    ship("cvrp")
    head, *rows = done("models").splitlines()
    assert head.split() == ["name", "problem", "sizes", "parameters", "gap"]
    assert [row.split()[:2] for row in rows[:3]] == [["cvrp", "CVRP"], ["tsp", "TSP"], ["vrp", "2"]]
    assert rows[1].endswith("1.50 % (TSP50, multistart)")
    assert rows[2].endswith("1.50 % (OVRP50, multistart)")
    assert rows[0].endswith("none")
    assert max(map(len, rows)) < 100
    said = done("models", "tsp")
    assert said.startswith("tsp: TSP\n")
    assert sum(" multistart " in line for line in said.splitlines()) == 3
    assert "no network 'tps'" in refused("models", "tps")


def test_gaps_to_a_solver_from_python(ship: Ship, tmp_path: Path) -> None:
    ship("tsp")
    instances = neuroute.generate("tsp", 8, 2)
    result = neuroute.evaluate("tsp", instances, reference="nearest", workers=1)
    lengths = [neuroute.solve(each, "nearest").cost for each in instances]
    assert result.gaps["gap_pct"] == pytest.approx(100 * (result.lengths.mean() / np.mean(lengths) - 1))
    with pytest.raises(NeurouteError, match="no solver 'lhk'"):
        neuroute.evaluate("tsp", instances, reference="lhk")
