"""Shipped networks: picked by problem and size, refused where they are altered or compute something else."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from commands import call, done, refused
from refusals import one_line
from untrained import tsp_text

import neuroute
from neuroute.api import zoo
from neuroute.api.zoo import choose
from neuroute.networks.weights import load_checkpoint, save_checkpoint
from stand_ins import Ship, checkpoint


@pytest.mark.parametrize("name", [*zoo.cards(), *zoo.runs()])
def test_networks_that_come_with_the_package_compute_what_their_cards_say(name: str) -> None:
    card = zoo.card_of(name)
    model = neuroute.load_model(name, "cpu")  # which compares the file's digest, and a decision
    assert sum(p.numel() for p in model.net.parameters()) == card.parameters
    assert card.problem == model.problem
    assert card.run == model.about["run"]


@pytest.mark.parametrize(
    ("problems", "variant", "n", "name"),
    [
        (("tsp",), "TSP", 20, "small"),
        (("tsp",), "TSP", 50, "small"),  # both hold it, one is narrower
        (("tsp",), "TSP", 70, "large"),
        (("tsp",), "TSP", 5, "small"),  # fewer than for any
        (("cvrp", "vrp"), "CVRP", 20, "cvrp"),
        (("cvrp", "vrp"), "CVRP", 90, "vrp"),  # more than the one made for it alone
        (("vrp",), "OVRP", 20, "vrp"),
    ],
)
def test_the_network_is_the_one_for_problem_and_size(
    ship: Ship, problems: tuple[str, ...], variant: str, n: int, name: str
) -> None:
    ship("tsp", name="large", nodes=(30, 100))
    ship("tsp", name="small", nodes=(10, 50))
    ship("cvrp", nodes=(10, 50))
    ship("vrp", nodes=(10, 100))
    assert choose(problems, variant, n, "x").name == name


@pytest.mark.parametrize(("off", "says"), [(0.0, "agrees"), (-1.5, "+1.500 points off")])
def test_a_run_of_a_paper_is_measured_again_beside_what_its_card_says(ship: Ship, off: float, says: str) -> None:
    coords, name = np.random.default_rng(0).random((8, 20, 2)), "scaling/base_6x128"
    ship("tsp", name=name)
    first = neuroute.evaluate(name, coords, reference="insertion", workers=1)
    assert "kept" not in str(first)
    gap = {"set": first.name, "decoding": "greedy", "instances": 8, "reference": "insertion"}
    ship("tsp", name=name, gaps=[gap | {"gap": first.gaps["gap_pct"] + off}])
    assert f"(to insertion): {says}\n" in str(neuroute.evaluate(name, coords, reference="insertion", workers=1))
    assert neuroute.models() == []  # it is for no use but this
    with one_line(r"scaling/base_6x12: no such checkpoint; did you mean scaling/base_6x128\?"):
        neuroute.load_model("scaling/base_6x12")


def test_an_edit_of_code_that_changes_no_arithmetic_does_no_harm(ship: Ship, tmp_path: Path) -> None:
    ship("tsp")
    file = checkpoint(tmp_path / "other.safetensors", "tsp")
    net, about = load_checkpoint(file)
    save_checkpoint(file, net, about | {"code": "of another day"})
    with pytest.raises(neuroute.NeurouteError, match="another version of the network"):
        neuroute.load_model(file)
    card = zoo.FOLDER / "tsp.json"
    (zoo.FOLDER / "tsp.safetensors").write_bytes(file.read_bytes())
    card.write_text(json.dumps(json.loads(card.read_text()) | {"sha256": zoo.sha256(file)}))
    assert neuroute.load_model("tsp").name == "tsp"


@pytest.mark.parametrize("problem", ["tsp", "cvrp", "vrp"])
def test_another_arithmetic_is_noticed(ship: Ship, problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ship(problem)
    model = neuroute.load_model(problem)
    kind = type(model.net)
    decide = kind.decide

    def other(self: object, *arguments: object, **more: object) -> torch.Tensor:
        return 1.01 * decide(self, *arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(kind, "decide", other)
    with pytest.raises(neuroute.NeurouteError, match=f"network '{problem}' .* card"):
        neuroute.load_model(problem)


def test_altered_files_and_cards_are_refused(ship: Ship) -> None:
    ship("tsp")
    weights, card = zoo.FOLDER / "tsp.safetensors", zoo.FOLDER / "tsp.json"
    data, text = weights.read_bytes(), card.read_text()
    weights.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(neuroute.NeurouteError, match="not the file that its card describes"):
        neuroute.load_model("tsp")
    weights.write_bytes(data)
    for before, after, says in (
        ('"seed": 0', '"seed": "none"', "model card: seed: "),
        ('"name": "tsp"', '"name": "tps"', "the card is of 'tps'"),
        ("{", "", "not valid JSON"),
    ):
        assert before in text
        card.write_text(text.replace(before, after))
        with one_line(says):
            neuroute.models()


def test_a_commit_that_reads_like_a_number_is_text(ship: Ship) -> None:
    ship("tsp", commit="931273e7")
    assert [card.commit for card in neuroute.models()] == ["931273e7"]


# -- on the command line ----------------------------------------------------------------------------------------------


@pytest.fixture
def ten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    points = [(37 * i % 101, 59 * i % 97) for i in range(1, 11)]
    (tmp_path / "ten.tsp").write_text(tsp_text(points, name="ten"))
    return tmp_path / "ten.tsp"


@pytest.mark.usefixtures("built")
def test_a_file_is_all_that_solve_needs(ten: Path, ship: Ship) -> None:
    assert call("models") == (0, f"no networks in {zoo.FOLDER}; give a checkpoint of your own to `solve` and "
                              "`evaluate` with --model\n")  # fmt: skip
    assert "ten: no pretrained network for TSP; give a checkpoint" in refused("solve", ten)
    ship("tsp")
    assert "tsp: TSP\n  for 4 to 100 nodes\n  Lehd(" in done("models", "tsp")
    files = ("--out", "ten.svg", "--save", "ten.tour")
    first, second = done("solve", ten, "--seconds", 1, "--reference", "insertion", *files).splitlines()
    assert first == "ten: TSP, n=10, with network 'tsp', for 1 s"
    length = float(second.split("length ")[1].split(" ")[0].replace(",", ""))
    compared = re.search(r"(\S+) % to insertion \((\d+) in ", second)
    assert compared
    assert compared[1] == f"{100 * (length / float(compared[2]) - 1):.2f}"
    assert "; tour in ten.svg, kept in ten.tour" in second


def test_a_solver_waits_for_no_torch_and_draws_nothing_unasked(ten: Path) -> None:
    script = (
        "import sys; from neuroute.pipeline.cli import app; "
        "app(['solve', 'ten.tsp', '--solver', 'lkh'], standalone_mode=False); "
        "print(sorted({'torch', 'matplotlib', 'pandas', 'snakemake'} & set(sys.modules)))"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert said.endswith("[]\n")
    assert [path.name for path in ten.parent.iterdir()] == ["ten.tsp"]
