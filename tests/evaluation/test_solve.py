"""`neuroute solve` with a checkpoint of each PENS variant: TSPLIB files in, tours and their lengths out."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from neuroute.core.errors import NeurouteError
from neuroute.datasets.tsplib import read_tsplib
from neuroute.decoding.decode import decode
from neuroute.networks.weights import load_checkpoint
from neuroute.plan.objects import Decoding, Network
from neuroute.user.solve import solve_file
from untrained import done, tsp_text, untrained

KIND = "neuroute.networks.pens:Pens"
VARIANTS = [("alibi", "gaussian"), ("rope", "gaussian"), ("both", "zero"), ("coordinates", "gaussian")]
NODES = 12
LINE = re.compile(r"^(\S+): n=(\d+), length ([\d,]+) \((\w+)\), [\d.]+ s; tour in (.+)$")


def checkpoint(folder: Path, positions: str, initial: str) -> Path:
    arguments = {"depth": 2, "width": 16, "heads": 2, "feed_forward": 32, "train_nodes": 20}
    network = Network(kind=KIND, arguments={**arguments, "positions": positions, "initial": initial})
    return untrained(folder / "model.safetensors", network, f"pens/{positions}")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    points = np.random.default_rng(5).integers(0, 1000, (NODES, 2))
    (tmp_path / "dozen.tsp").write_text(tsp_text(points, name="dozen"))
    return tmp_path / "dozen.tsp"


@pytest.mark.parametrize(("positions", "initial"), VARIANTS)
@pytest.mark.parametrize("search", [(1, 0), (3, 0), (1, 5)])
def test_each_variant_solves_a_file(
    tmp_path: Path, file: Path, positions: str, initial: str, search: tuple[int, int]
) -> None:
    model, drawing = checkpoint(tmp_path, positions, initial), tmp_path / "tour.svg"
    beam, rrc = search
    method = "rrc" if rrc else "beam" if beam > 1 else "greedy"
    how = Decoding(method=method, beam=beam, iterations=rrc)  # type: ignore[arg-type]
    said = LINE.match(solve_file(file, model, how, drawing, "cpu"))
    assert said
    net, _ = load_checkpoint(model)
    instance = read_tsplib(file)
    tour = decode("tsp", net, torch.from_numpy(instance.unit_square())[None], how)[0].numpy()
    assert sorted(tour) == list(range(NODES))
    assert said.groups() == ("dozen", str(NODES), f"{instance.length(tour):,.0f}", "EUC_2D", str(drawing))
    assert drawing.read_text().rstrip().endswith("</svg>")


def test_the_command_line_solves_and_refuses(tmp_path: Path, file: Path) -> None:
    model, drawing = checkpoint(tmp_path, "both", "gaussian"), tmp_path / "tour.png"
    assert "dozen: n=12" in done("solve", file, "--model", model, "--out", drawing)
    assert drawing.exists()
    with pytest.raises(NeurouteError, match="must end in"):
        solve_file(file, model, Decoding(), tmp_path / "tour.txt", "cpu")


@pytest.mark.parametrize(("positions", "initial"), VARIANTS)
def test_each_variant_solves_berlin52(
    tmp_path: Path, public: Callable[[str], Path], positions: str, initial: str
) -> None:
    path = public("benchmarks/tsplib/berlin52.tsp")
    said = LINE.match(solve_file(path, checkpoint(tmp_path, positions, initial), Decoding(), tmp_path / "t.svg", "cpu"))
    assert said
    assert said[2] == "52"
    assert int(said[3].replace(",", "")) >= 7542  # the published optimum
