"""Weights in place of trainings through Snakemake: imported, anew if their content changes, refused before any job."""

import os
from pathlib import Path

import pytest
import torch

from checkout import MICRO, Snakemake, copy_checkout
from neuroute.core.files import read_json
from neuroute.networks.weights import build
from neuroute.plan.build import build_plan
from neuroute.plan.config import parse_config
from test_dag import planned

pytestmark = [pytest.mark.dag, pytest.mark.slow]
RUNS = ("icam_tsp", "abl_afm", "abl_afm_cab", "abl_aafm")  # of Table 9
MODEL = "work/micro/runs/icam/icam_tsp/model.safetensors"


@pytest.fixture
def checkout(tmp_path: Path) -> tuple[Path, Snakemake]:
    """A checkout whose config gives random weights to all models of Table 9."""
    run = copy_checkout(tmp_path, "icam")
    runs = build_plan(parse_config({"scale": str(MICRO), "papers": ["icam"]})).runs
    given = {}
    for name in RUNS:
        torch.manual_seed(1)
        torch.save(build(runs[f"icam/{name}"].network).state_dict(), tmp_path / f"{name}.pt")
        given[f"icam/{name}"] = {"weights": f"{name}.pt"}
    with (tmp_path / "config.yaml").open("a") as file:
        file.write(f"runs: {given}\n")
    return tmp_path, run


def test_they_are_imported_once_for_each_content(checkout: tuple[Path, Snakemake]) -> None:
    folder, run = checkout
    jobs = planned(run, "results/icam/table9.csv")
    assert jobs["import_weights"] == len(RUNS)
    assert not [rule for rule in jobs if rule.startswith("train")]
    run(MODEL)
    assert read_json(folder / MODEL.replace("model.safetensors", "run.json"), "")["run"] == "icam/icam_tsp"
    os.utime(folder / "icam_tsp.pt")
    assert planned(run, MODEL) == {}
    state = torch.load(folder / "icam_tsp.pt")
    torch.save({name: tensor + 1 for name, tensor in state.items()}, folder / "icam_tsp.pt")
    assert planned(run, MODEL) == {"import_weights": 1}


def test_those_of_another_network_stop_it_before_the_first_job(checkout: tuple[Path, Snakemake]) -> None:
    folder, run = checkout
    (folder / "abl_afm.pt").write_bytes((folder / "icam_tsp.pt").read_bytes())
    done = run("results/icam/table9.csv", check=False)
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert "config.yaml: runs.icam/abl_afm.weights: abl_afm.pt holds" in said, said
    assert "left over: alpha, compatibility_alpha, layers.0.alpha" in said
    assert not list((folder / "work").rglob("*.safetensors"))
    assert not list((folder / "work").rglob("*.npy"))


def test_a_network_of_ones_own_that_does_not_fit_stops_it_before_the_first_job(tmp_path: Path) -> None:
    run = copy_checkout(tmp_path, "scaling")
    (tmp_path / "mine.py").write_text("from neuroute.networks.pomo import Pomo\n\n\nclass Net(Pomo):\n    pass\n")
    with (tmp_path / "config.yaml").open("a") as file:
        file.write("runs: {scaling/base_6x128: {network: 'mine:Net'}}\n")
    done = run("work/micro/runs/scaling/base_6x128/model.safetensors", check=False)
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert "scaling/base_6x128: Net builds many solutions at once" in said, said
    assert not list((tmp_path / "work").rglob("*.npy"))
