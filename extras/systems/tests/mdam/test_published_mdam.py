"""MDAM beside numbers of its authors' code (19b0bf8): every decision of five decoders, lengths by beams, sizes."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from neuroute.decoding.environment import Batch
from neuroute.decoding.tsp import TspBatch
from neuroute.networks.weights import parameters
from neuroute.specs.objects import Decoding
from neuroute_systems.mdam.decoding import build, decoders
from neuroute_systems.mdam.network import Mdam
from published_numbers import differ, imported, routes, state

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def numbers(public: Callable[[str], Path]) -> dict[str, dict[str, np.ndarray]]:
    return {name: dict(np.load(public(f"refdata/systems/{name}.npz"))) for name in ("mdam", "mdam_cvrp")}


def network(folder: Path, numbers: dict[str, np.ndarray]) -> Any:
    return imported(folder, {"model": state(numbers, "state/", torch.float64)})


def lengths_along(net: Mdam, decoder: int, batch: Batch, stops: np.ndarray, theirs: np.ndarray) -> Tensor:
    """Go along solutions, stops (decisions, batch), and compare with theirs (decisions, batch, nodes)."""
    decisions = iter(zip(torch.from_numpy(stops).long(), theirs, strict=True))

    def choose(logits: Tensor) -> Tensor:
        now, p = next(decisions)
        assert differ(logits[:, 0].softmax(-1), p) < 1e-9
        return now[:, None]

    solutions = build(net, decoder, net.encode(*batch.features), batch, choose)
    assert next(decisions, None) is None
    return batch.lengths(solutions)[:, 0]


@torch.no_grad()
def test_tours_are_the_published_ones(numbers: dict[str, dict[str, np.ndarray]], tmp_path: Path) -> None:
    theirs = numbers["mdam"]
    net, batch = network(tmp_path, theirs), TspBatch(torch.from_numpy(theirs["x"]))
    for decoder, (stops, p) in enumerate(zip(theirs["s"], theirs["p"], strict=True)):
        lengths_along(net, decoder, batch, stops[:-1], p[:-1])
    assert parameters(net) == theirs["count"]


@torch.no_grad()
def test_routes_are_the_published_ones(numbers: dict[str, dict[str, np.ndarray]], tmp_path: Path) -> None:
    theirs = numbers["mdam_cvrp"]
    net, batch = network(tmp_path, theirs), routes(theirs)
    assert differ(net.encode(*batch.features).nodes, theirs["emb"]) < 1e-9
    for decoder, (first, last) in enumerate(pairwise(theirs["bounds"])):
        lengths = lengths_along(net, decoder, batch, theirs["s"][first:last], theirs["p"][first:last])
        assert differ(lengths, theirs["costs"][:, decoder]) < 1e-9
    assert parameters(net) == theirs["count"]


@pytest.mark.slow
@torch.no_grad()
@pytest.mark.parametrize("beam", [1, 4, 10])
def test_beams_find_the_published_lengths(numbers: dict[str, dict[str, np.ndarray]], tmp_path: Path, beam: int) -> None:
    """Of the CVRP each instance alone: copies in places without a solution reach others through norms."""
    theirs, how = numbers["mdam_cvrp"], Decoding(method=Mdam.own_method, beam=beam)

    def lengths(net: Mdam, batch: Batch) -> Tensor:
        return batch.lengths(decoders(net, batch, how, 4.0, 0)[:, None])[:, 0]

    net, batch, tours = network(tmp_path, theirs), routes(theirs), TspBatch(torch.from_numpy(theirs["tsp_x"]))
    alone = torch.cat([lengths(net, batch[i : i + 1]) for i in range(len(batch))])
    assert differ(alone, theirs[f"alone{beam}"]) < 1e-9
    if beam == 1:
        assert differ(lengths(net, batch), theirs["beam1"]) < 1e-9
    assert differ(lengths(network(tmp_path, numbers["mdam"]), tours), theirs[f"tspbeam{beam}"]) < 1e-9
