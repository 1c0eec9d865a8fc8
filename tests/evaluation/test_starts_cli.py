"""`--starts`, `--augment` and `--images` of `neuroute solve`: what they find, and where they are refused."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from untrained import done, invoke, refused, tsp_text, untrained, vrp_text

from neuroute.decoding.decode import decode
from neuroute.instances.tsplib import read_solution, read_tour, read_tsplib, read_vrplib
from neuroute.networks.weights import load_checkpoint, save_checkpoint
from neuroute.plan.digest import locate
from neuroute.plan.objects import Decoding, Network
from neuroute.problems.tsp import tour_length
from neuroute.problems.vrp import from_routes

pytestmark = pytest.mark.usefixtures("one_thread")

NODES = 14
POINTS = np.random.default_rng(7).integers(0, 1000, (NODES, 2)) * [1, 3]
DEMANDS = np.random.default_rng(8).integers(1, 10, NODES)
COORDS = np.random.default_rng(3).random((5, 9, 2))
SHAPES = {"depth": 1, "width": 16, "feed_forward": 16, "train_nodes": 20}
OPTIONS: list[tuple[tuple[str, ...], Decoding]] = [
    (("--starts", "1"), Decoding()),
    (("--starts", "4"), Decoding(starts=4)),
    (("--starts", "all"), Decoding(starts="all")),
    (("--augment",), Decoding(augment=True)),
    (("--starts", "all", "--augment"), Decoding(starts="all", augment=True)),
    (("--images", "3"), Decoding(images=3)),
]
INVIT: dict[str, Any] = {"views": [6, 9], "actions": 4, "heads": 2}


@pytest.fixture(autouse=True)
def _no_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def checkpoint(folder: Path, kind: str, **shape: Any) -> Path:
    network = Network(kind=locate(f"neuroute.networks.{kind}"), arguments=SHAPES | shape)
    return untrained(folder / f"{kind.partition(':')[2]}.safetensors", network, "icam/x")


@pytest.fixture
def tsp(tmp_path: Path) -> Path:
    (tmp_path / "mine.tsp").write_text(tsp_text(POINTS))
    return tmp_path / "mine.tsp"


@pytest.fixture
def vrp(tmp_path: Path) -> Path:
    (tmp_path / "mine.vrp").write_text(vrp_text(POINTS, DEMANDS, 20))
    return tmp_path / "mine.vrp"


@pytest.mark.parametrize("kind", ["icam:Icam", "pomo:Pomo"])
@pytest.mark.parametrize(("options", "decoding"), OPTIONS)
def test_a_tsp_file(tmp_path: Path, tsp: Path, kind: str, options: tuple[str, ...], decoding: Decoding) -> None:
    model = checkpoint(tmp_path, kind)
    text = done("solve", tsp, "--model", model, "--save", tmp_path / "m.tour", *options)
    instance, (net, _) = read_tsplib(tsp), load_checkpoint(model)
    tour = decode("tsp", net, instance.inputs(), decoding)[0].numpy()
    assert read_tour(tmp_path / "m.tour", instance).tolist() == tour.tolist()
    assert f"length {instance.length(tour):,.0f} (EUC_2D)" in text


@pytest.mark.parametrize(("options", "decoding"), OPTIONS)
def test_a_vrp_file(tmp_path: Path, vrp: Path, options: tuple[str, ...], decoding: Decoding) -> None:
    model = checkpoint(tmp_path, "icam:IcamCvrp")
    done("solve", vrp, "--model", model, "--save", tmp_path / "m.sol", *options)
    instance, (net, _) = read_vrplib(vrp), load_checkpoint(model)
    inputs = instance.inputs()
    routes, _ = read_solution(tmp_path / "m.sol")
    instance.check(routes, "m.sol")
    np.testing.assert_array_equal(from_routes(routes), decode("cvrp", net, inputs, decoding)[0].numpy())


@pytest.mark.parametrize("images", [1, 5])
def test_the_best_of_invits_images_is_evaluated(tmp_path: Path, images: int) -> None:
    np.savez(tmp_path / "mine.npz", coords=COORDS)
    model = checkpoint(tmp_path, "invit:Invit", **INVIT)
    done("evaluate", "--model", model, "--data", "mine.npz", "--images", images, "--out", tmp_path / "found.csv")
    tours = decode("tsp", load_checkpoint(model)[0], COORDS.astype(np.float32), Decoding(images=images)).numpy()
    with (tmp_path / "found.csv").open() as lines:
        (row,) = [row for row in csv.DictReader(lines) if row["metric"] == "length"]
    assert float(row["value"]) == pytest.approx(float(tour_length(COORDS, tours).mean()), rel=1e-6)


def test_prc_improves_a_tour_that_is_brought(tmp_path: Path, tsp: Path) -> None:
    """Of the TSP; routes of a network of many starts are not re-constructed."""
    (tmp_path / "own.tour").write_text(
        "TYPE : TOUR\nTOUR_SECTION\n" + "\n".join(map(str, range(1, 15))) + "\n-1\nEOF\n"
    )
    model = checkpoint(tmp_path, "icam:Icam")
    done("solve", tsp, "--model", model, "--from", "own.tour", "--prc", 30, "--save", "m.tour")
    instance = read_tsplib(tsp)
    assert instance.length(read_tour(tmp_path / "m.tour", instance)) < instance.length(np.arange(NODES))


def test_what_does_not_go_together_is_one_line_and_writes_nothing(tmp_path: Path, tsp: Path, vrp: Path) -> None:
    many, routes = checkpoint(tmp_path, "pomo:Pomo"), checkpoint(tmp_path, "pomo:PomoCvrp")
    one = checkpoint(tmp_path, "lehd:Lehd", heads=2)
    (tmp_path / "own.sol").write_text("".join(f"Route #{i}: {i}\n" for i in range(1, NODES)))
    cases: list[tuple[tuple[object, ...], str]] = [
        ((tsp, "--model", one, "--starts", "all"), "Lehd builds one solution of an instance"),
        ((tsp, "--model", one, "--augment"), "leave `starts`, `augment` and `images` out"),
        ((tsp, "--model", many, "--starts", "0"), "--starts 0: a number from 1 on, or all, is expected"),
        ((tsp, "--model", many, "--starts", "some"), "--starts some: a number from 1 on, or all"),
        ((tsp, "--model", many, "--starts", NODES + 1), "mine: --starts 15 is more than its 14 stops"),
        ((vrp, "--model", routes, "--starts", NODES), "mine: --starts 14 is more than its 13 stops"),
        ((tsp, "--model", many, "--starts", "all", "--prc", 3), "--starts: --prc begins with one solution"),
        ((tsp, "--model", many, "--augment", "--beam", 3), "leave --beam, --rrc and --prc out"),
        ((tsp, "--model", many, "--augment", "--prc", 3), "leave --beam, --rrc and --prc out"),
        ((tsp, "--model", many, "--images", 2, "--rrc", 3), "--images is for greedy solutions; leave --beam, --rrc"),
        ((tsp, "--model", many, "--images", 2, "--augment"), "--augment has eight images of its own; leave --images"),
        ((tsp, "--model", one, "--images", 2), "Lehd builds one solution of an instance"),
        ((tsp, "--model", many, "--rescale", 2), "leave `rescale` and `esf` out"),
        ((vrp, "--model", routes, "--rrc", 3), "PomoCvrp: re-construction and beam search are for the TSP"),
    ]
    for arguments, message in cases:
        assert message in refused("solve", *arguments, "--out", "drawing.svg")
    assert not (tmp_path / "drawing.svg").exists()
    for options in (("--starts", "all"), ("--augment",), ("--images", 2)):
        code, text = invoke("evaluate", "scaling/x", *options)
        assert (code, "either an evaluation of the plan" in text) == (2, True), text


@pytest.mark.parametrize("kind", ["icam:Icam", "icam:IcamCvrp", "pomo:PomoCvrp"])
def test_a_diverged_model_is_refused_where_decoding_would_never_end(tmp_path: Path, kind: str) -> None:
    """The last tensor of its checkpoint holds a NaN."""
    loads = {"demand": np.tile(np.append(0, DEMANDS[:8]), (5, 1)), "capacity": np.full(5, 20)}
    np.savez(tmp_path / "mine.npz", coords=COORDS, **(loads if "Cvrp" in kind else {}))
    model = checkpoint(tmp_path, kind)
    net, about = load_checkpoint(model)
    with torch.no_grad():
        list(net.parameters())[-1].view(-1)[0] = torch.nan
    save_checkpoint(model, net, about)
    said = refused("evaluate", "--model", model, "--data", "mine.npz", "--starts", "all", "--out", "found.csv")
    assert said.startswith(f"error: {model}: weights of icam/x are no finite numbers")
    assert "learning rate" in said
    assert not (tmp_path / "found.csv").exists()
