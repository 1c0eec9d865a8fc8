"""What Snakemake finds out before its first job: what the machine lacks, bad configs, weights that do not fit."""

import os
import re
from pathlib import Path

import pytest
import torch

from checkout import MICRO, Snakemake, add_settings, copy_checkout, planned, replace
from neuroute.core.files import read_json
from neuroute.networks.weights import build
from neuroute.pipeline.plan.build import build_plan
from neuroute.pipeline.plan.config import has_gpu, parse_config

pytestmark = pytest.mark.dag
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
    add_settings(tmp_path, f"runs: {given}")
    return tmp_path, run


@pytest.mark.slow
def test_weights_are_imported_once_for_each_content(checkout: tuple[Path, Snakemake]) -> None:
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


def stops(folder: Path, run: Snakemake, target: str, words: str, *options: str) -> str:
    """What Snakemake says where it ends in an error that says this, and has done nothing."""
    done = run(target, *options, check=False)
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert re.search(words, said), said
    assert not [*(folder / "work").rglob("*.safetensors"), *(folder / "work").rglob("*.npy")]
    return said


@pytest.mark.slow
def test_weights_of_another_network(checkout: tuple[Path, Snakemake]) -> None:
    folder, run = checkout
    (folder / "abl_afm.pt").write_bytes((folder / "icam_tsp.pt").read_bytes())
    words = "config.yaml: runs.icam/abl_afm.weights: abl_afm.pt holds"
    said = stops(folder, run, "results/icam/table9.csv", words)
    assert "left over: alpha, compatibility_alpha, layers.0.alpha" in said


@pytest.mark.slow
def test_a_network_of_ones_own_that_does_not_fit(tmp_path: Path) -> None:
    run = copy_checkout(tmp_path, "scaling")
    (tmp_path / "mine.py").write_text("from neuroute.networks.pomo import Pomo\n\n\nclass Net(Pomo):\n    pass\n")
    add_settings(tmp_path, "runs: {scaling/base_6x128: {network: 'mine:Net'}}")
    target = "work/micro/runs/scaling/base_6x128/model.safetensors"
    stops(tmp_path, run, target, "scaling/base_6x128: Net builds many solutions at once")


def test_a_bad_config(tmp_path: Path) -> None:
    run = copy_checkout(tmp_path, "pens")
    stops(tmp_path, run, "all", "rate: does not exist here; it is a key below", "--config", "learning_rate=1")


@pytest.mark.slow
def test_a_missing_gpu_and_labels_on_a_read_only_disk(tmp_path: Path) -> None:
    run = copy_checkout(tmp_path, "pens")
    if not has_gpu():
        stops(tmp_path, run, "all", "this machine shows 0 GPUs", "--config", "device=cuda")
    (tmp_path / "work").mkdir(exist_ok=True)
    (tmp_path / "work" / "labels").symlink_to("/sys")  # where not even root makes files
    stops(tmp_path, run, "all", r"work/labels/\S+: cannot write here")


@pytest.mark.slow
def test_a_missing_solver_stops_what_needs_it(tmp_path: Path) -> None:
    run = copy_checkout(tmp_path, "mvmoe")
    code = tmp_path / "src/neuroute/solvers/ortools.py"  # for which nothing stands in
    replace(code, 'installed_version("ortools"', 'installed_version("no-ortools"')
    stops(tmp_path, run, "all", "is not installed; run `pip install ortools`")
    assert planned(run)["labels"] > 0  # the plan is shown all the same
    run("results/mvmoe/table3.csv")  # needs no labels
