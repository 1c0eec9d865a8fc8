"""`neuroute solve` with a checkpoint of each PENS variant: TSPLIB files in, tours and their lengths out."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from untrained import done, invoke, refused, tsp_text, untrained

from neuroute.decoding.decode import decode
from neuroute.instances.tsplib import read_tsplib
from neuroute.networks.weights import load_checkpoint
from neuroute.plan.objects import Decoding, Network
from neuroute.user.solve_file import solve_file

KIND = "neuroute.networks.pens:Pens"
VARIANTS = [("alibi", "gaussian"), ("rope", "gaussian"), ("both", "zero"), ("coordinates", "gaussian")]
LINE = re.compile(
    r"^(\S+): n=(\d+), length ([\d,]+) \((\w+)\)(?:, gap [\d.]+ %)?, [\d.]+ s, pens/\w+, [\w, -]+; tour in (.+)$"
)


def checkpoint(folder: Path, positions: str = "both", initial: str = "gaussian", code: str | None = None) -> Path:
    arguments = {"depth": 2, "width": 16, "heads": 2, "feed_forward": 32, "train_nodes": 20}
    network = Network(kind=KIND, arguments={**arguments, "positions": positions, "initial": initial})
    return untrained(folder / "model.safetensors", network, f"pens/{positions}", code)


def dozen(folder: Path, x5: float = 500.0) -> Path:
    """A file of twelve nodes; x5: the first coordinate of node 5."""
    points = np.random.default_rng(5).integers(0, 1000, (12, 2)).astype(float)
    points[4, 0] = x5
    (folder / "dozen.tsp").write_text(tsp_text(points, name="dozen"))
    return folder / "dozen.tsp"


@pytest.mark.parametrize(("positions", "initial"), VARIANTS)
@pytest.mark.parametrize("how", [Decoding(), Decoding(method="beam", beam=3), Decoding(method="rrc", iterations=5)])
@pytest.mark.parametrize("name", ["dozen", "berlin52"])
def test_each_variant_solves_a_file(
    tmp_path: Path, public: Callable[[str], Path], name: str, how: Decoding, positions: str, initial: str
) -> None:
    path = dozen(tmp_path) if name == "dozen" else public("benchmarks/tsplib/berlin52.tsp")
    model, drawing = checkpoint(tmp_path, positions, initial), tmp_path / "tour.svg"
    said = LINE.match(solve_file(path, model, how, drawing, "cpu"))
    assert said
    net, _ = load_checkpoint(model)
    instance = read_tsplib(path)
    tour = decode("tsp", net, instance.inputs(), how)[0].numpy()
    nodes = len(instance.coords)
    assert sorted(tour) == list(range(nodes))
    assert said.groups() == (name, str(nodes), f"{instance.length(tour):,.0f}", "EUC_2D", str(drawing))
    assert drawing.read_text().rstrip().endswith("</svg>")
    if name == "berlin52":
        assert instance.length(tour) >= 7542  # the published optimum


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_the_command_line_prints_a_length_and_draws_the_tour(tmp_path: Path, ending: str) -> None:
    drawing = tmp_path / f"tour.{ending}"
    text = done("solve", dozen(tmp_path), "--model", checkpoint(tmp_path), "--beam", 2, "--out", drawing)
    assert "dozen: n=12, length" in text
    assert drawing.stat().st_size > 1000


def test_bad_files_and_checkpoints_of_other_code_are_one_line(tmp_path: Path) -> None:
    model = checkpoint(tmp_path)
    said = refused("solve", dozen(tmp_path, x5=np.nan), "--model", model)
    assert "node 5 has a coordinate that is not a number" in said
    assert invoke("solve", dozen(tmp_path), "--model", tmp_path / "none", "--beam", 0)[0] == 2
    said = refused("solve", dozen(tmp_path), "--model", checkpoint(tmp_path, code="other"))
    assert "another version of the network's code" in said
