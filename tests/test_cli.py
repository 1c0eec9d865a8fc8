"""The command line: it teaches, it plans, it solves, and bad input ends in one line."""

import json
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from neuroute.cli import app
from neuroute.networks.weights import build, load_checkpoint, save_checkpoint
from neuroute.plan.digest import code_digest
from neuroute.plan.objects import Network

ROOT = Path(__file__).resolve().parents[1]
TSP = "NAME: t\nTYPE: TSP\nDIMENSION: 6\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n" + "".join(
    f"{i} {x} {y}\n" for i, (x, y) in enumerate([(0, 0), (5, 1), (9, 0), (10, 8), (4, 9), (1, 7)], 1)
)


@pytest.fixture(autouse=True)
def _in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("NEUROUTE_CONFIG", raising=False)


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.output


def test_help_names_every_stage() -> None:
    code, text = run("--help")
    assert code == 0
    stages = ("plan", "label", "fetch", "train", "evaluate", "render", "report", "doctor", "solve", "import-weights")
    for stage in stages:
        assert stage in text


@pytest.mark.parametrize("scale", ["smoke", "paper"])
def test_plan_estimates_before_anything_runs(scale: str) -> None:
    code, text = run("plan", "--scale", scale)
    assert code == 0
    assert "scaling/base_42x512" in text
    assert "FLOP" in text
    assert "disk" in text


def test_plan_of_one_target_lists_only_what_it_needs() -> None:
    _, text = run("plan", "table12", "--scale", "laptop")
    assert "scaling/base_6x128/greedy" in text
    assert "beam" not in text
    assert "deep_24x64" not in text
    assert run("plan", "results/table12.csv", "--scale", "laptop")[1] == text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("plan", "table99"), "unknown target 'scaling/table99'"),
        (("train", "scaling/base_7x128"), "unknown run 'scaling/base_7x128'; did you mean"),
        (("label", "scaling/larges"), "unknown label job"),
        (("evaluate", "scaling/base_6x128/beem"), "unknown evaluation"),
        (("render", "scaling/figure99"), "unknown artifact"),
        (("plan", "--scale", "huge"), "known scales"),
        (("plan", "--config", "absent.yaml"), "no such file"),
    ],
)
def test_unknown_names_end_in_one_line(arguments: tuple[str, ...], message: str) -> None:
    code, text = run(*arguments)
    assert code == 2
    assert message in text
    assert len(text.strip().splitlines()) == 1


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    arguments = {"depth": 2, "width": 8, "heads": 2, "train_nodes": 20}
    network = Network(kind="neuroute.networks.decoder_only:DecoderOnly", arguments=arguments)
    torch.manual_seed(0)
    about = {"run": "scaling/x", "network": network.model_dump(), "code": code_digest(network.kind)}
    save_checkpoint(tmp_path / "model.safetensors", build(network), about)
    return tmp_path / "model.safetensors"


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_solve_prints_a_length_and_draws_the_tour(tmp_path: Path, checkpoint: Path, ending: str) -> None:
    (tmp_path / "t.tsp").write_text(TSP)
    out = tmp_path / f"tour.{ending}"
    code, text = run("solve", str(tmp_path / "t.tsp"), "--model", str(checkpoint), "--beam", "2", "--out", str(out))
    assert code == 0, text
    assert "n=6, length" in text
    assert out.stat().st_size > 1000


def test_solve_refuses_bad_files(tmp_path: Path, checkpoint: Path) -> None:
    (tmp_path / "t.tsp").write_text(TSP.replace("5 4 9", "5 nan 9"))
    code, text = run("solve", str(tmp_path / "t.tsp"), "--model", str(checkpoint))
    assert (code, len(text.strip().splitlines())) == (2, 1)
    assert "node 5 has a coordinate that is not a number" in text
    code, text = run("solve", str(tmp_path / "t.tsp"), "--model", str(tmp_path / "none"), "--beam", "0")
    assert code == 2


def test_solve_refuses_checkpoints_of_other_code(tmp_path: Path, checkpoint: Path) -> None:
    (tmp_path / "t.tsp").write_text(TSP)
    net, about = load_checkpoint(checkpoint)
    save_checkpoint(checkpoint, net, {**about, "code": "other"})
    code, text = run("solve", str(tmp_path / "t.tsp"), "--model", str(checkpoint))
    assert code == 2
    assert "another version of the network's code" in text


def test_schema_command_writes_valid_json(tmp_path: Path) -> None:
    assert run("schema", str(tmp_path))[0] == 0
    assert json.loads((tmp_path / "config.schema.json").read_text())["title"] == "Config"
