"""Weights in place of a training: the checkpoint of the run, and one line where they are of another network."""

from pathlib import Path
from typing import Any

import pytest
import torch
from refusals import one_line

import dgl_by_the_book as dgl
import pointerformer_by_the_book as pointerformer
import published_code as there
from neuroute.core.digest import code_digest
from neuroute.core.files import read_json
from neuroute.networks import import_weights as weights_import
from neuroute.networks.import_weights import faults, import_weights, take_weights, tensors_of
from neuroute.networks.weights import build, load_checkpoint, read_tensors, save_checkpoint
from neuroute.pipeline.plan.build import Plan, build_plan
from neuroute.pipeline.plan.config import parse_config
from neuroute.specs.objects import Dataset, GivenRun, Labels, Network, Supervised
from published_code import Size

SHAPE = {"depth": there.DEPTH, "width": there.WIDTH, "heads": there.HEADS, "feed_forward": there.FFN}
WITHOUT_HEADS = {name: value for name, value in SHAPE.items() if name != "heads"}
ICAM, BQ = "neuroute.networks.icam:Icam", "neuroute.networks.bq:Bq"
MVMOE = "neuroute.networks.mvmoe:MvMoe"


def run_of(file: Path, kind: str, problem: Any = "tsp", **arguments: Any) -> GivenRun:
    dataset = Dataset(problem=problem, n=8, count=2, variant="CVRP" if problem == "vrp" else None)
    return GivenRun(
        paper="icam",
        name="icam_tsp",
        network=Network(kind=kind, arguments=arguments),
        training=Supervised(samples=2),
        n=8,
        data=(),
        validation=Labels(dataset=dataset, solver="lkh"),
        weights=str(file),
    )


def written(folder: Path, shapes: Any, wrap: Any = there.trained) -> Path:
    torch.save(wrap(there.weights(dict(shapes))), folder / "theirs.pt")
    return folder / "theirs.pt"


def refused(run: GivenRun, *words: str) -> None:
    """In one line, whichever reads it first."""
    with one_line(r"^config\.yaml: runs\.icam/icam_tsp\.weights: .*theirs", *words):
        tensors_of(run, code_digest(run.network.kind))


def test_they_become_the_runs_checkpoint(tmp_path: Path) -> None:
    file = written(tmp_path, there.icam("tsp", Size()))
    run, out = run_of(file, ICAM, **WITHOUT_HEADS, train_nodes=8), tmp_path / "run"
    take_weights(run, out, "code")
    net, about = load_checkpoint(out / "model.safetensors", expected=run.network)
    assert (about["run"], about["code"]) == (run.id, "code")
    assert torch.equal(net.embed.weight, read_tensors(file)["encoder.embedding.weight"])
    summary = read_json(out / "run.json", "")
    assert summary["weights"] == f"published weights (theirs.pt, sha256 {run.sha256[:12]})"
    assert summary["parameters"] == sum(p.numel() for p in net.parameters())
    assert sorted(path.name for path in out.iterdir()) == ["log.jsonl", "model.safetensors", "run.json", "stages.zip"]
    assert (out / "log.jsonl").read_text() == ""


def test_another_depth_problem_or_layout_is_named(tmp_path: Path) -> None:
    file = written(tmp_path, there.icam("tsp", Size(depth=3)))
    refused(
        run_of(file, ICAM, **WITHOUT_HEADS),
        r"holds ICAM for the TSP \(depth=3, ",
        r"the run is Icam\(depth=2",
        r"left over: layers\.2",
    )
    refused(
        run_of(file, "neuroute.networks.icam:IcamCvrp", "cvrp", **WITHOUT_HEADS), "holds ICAM for the TSP .*IcamCvrp"
    )
    file = written(tmp_path, there.pomo("tsp", Size()))
    refused(run_of(file, ICAM, **WITHOUT_HEADS), "holds POMO for the TSP", "missing: decoder|left over")


def test_what_tensors_would_not_show_is_compared_where_the_file_tells(tmp_path: Path) -> None:
    file = written(tmp_path, there.bq("tsp", Size()), there.trained_bq)
    refused(run_of(file, BQ, **SHAPE | {"heads": 4}), "heads is 2, not 4")
    tensors_of(run_of(file, BQ, **SHAPE), "")
    file = written(tmp_path, there.mvmoe(4, Size(), light=True))
    refused(run_of(file, MVMOE, "vrp", **SHAPE, hierarchy="step"), "hierarchy is episode, not step", "`arguments`")
    tensors_of(run_of(file, MVMOE, "vrp", **SHAPE, hierarchy="episode"), "")


def test_pomo_of_either_code_serves_where_it_fits(tmp_path: Path) -> None:
    """MVMoE's POMO for the CVRP is POMO's."""
    file = written(tmp_path, there.pomo("cvrp", Size()))
    tensors_of(run_of(file, MVMOE, "vrp", **SHAPE, experts=0, inputs="CVRP"), "")
    refused(run_of(file, MVMOE, "vrp", **SHAPE, experts=0), "of another shape: embed.customers.weight")


def test_a_checkpoint_of_ours_serves_if_its_code_is_the_same(tmp_path: Path) -> None:
    network, file = Network(kind=ICAM, arguments=WITHOUT_HEADS | {"train_nodes": 20}), tmp_path / "theirs.safetensors"
    save_checkpoint(file, build(network), {"run": "x", "network": network.model_dump(), "code": "before"})
    run = run_of(file, ICAM, **WITHOUT_HEADS, train_nodes=8)
    refused(run, "another version of the network.*neuroute import-weights")
    import_weights(file, file, None, {})
    take_weights(run, tmp_path / "run", code_digest(ICAM))
    assert read_json(tmp_path / "run" / "run.json", "")["weights"].startswith("weights of a file (theirs.safetensors")
    refused(run_of(file, ICAM, **WITHOUT_HEADS, clipping=50.0, adaptation=False), "left over: .*alpha")


PUBLISHED, OF_ICAM, OF_BQ = Size(6, 128, 8, 512), Size(12, 128, 8, 512), Size(9, 192, 12, 512)
FITS = {  # runs of scale `paper` -> the shapes of their authors' files
    "scaling/lehd_6x128": there.lehd("tsp", PUBLISHED),
    "scaling/lehd_cvrp": there.lehd("cvrp", PUBLISHED),
    "scaling/bq": there.bq("tsp", OF_BQ),
    "sit/bq_cvrp": there.bq("cvrp", OF_BQ),
    "sit/tsp_1k": there.sit("tsp", PUBLISHED),
    "sit/cvrp_100k": there.sit("cvrp", PUBLISHED),
    "icam/icam_tsp": there.icam("tsp", OF_ICAM),
    "icam/icam_cvrp": there.icam("cvrp", OF_ICAM),
    "icam/pomo_tsp": there.pomo("tsp", PUBLISHED),
    "icam/pomo_cvrp": there.pomo("cvrp", PUBLISHED),
    "mvmoe/pomo_cvrp_100": there.pomo("cvrp", PUBLISHED),
    "mvmoe/pomo_vrpb_50": there.mvmoe(0, PUBLISHED, features=3, context=1),
    "mvmoe/pomo_vrpl_50": there.mvmoe(0, PUBLISHED, features=3, context=2),
    "mvmoe/pomo_ovrptw_100": there.mvmoe(0, PUBLISHED, features=5, context=3),
    "mvmoe/mtl_100": there.mvmoe(0, PUBLISHED),
    "mvmoe/moe4e_50": there.mvmoe(4, PUBLISHED),
    "mvmoe/moe4eL_50": there.mvmoe(4, PUBLISHED, light=True),
    "mvmoe/h_8e": there.mvmoe(8, PUBLISHED),
    "mvmoe/h_16e": there.mvmoe(16, PUBLISHED),
    "rivals/elg_tsp": there.elg("tsp", PUBLISHED),
    "rivals/elg_cvrp": there.elg("cvrp", PUBLISHED),
    "rivals/pointerformer": pointerformer.shapes(PUBLISHED),
    "rivals/dgl": dgl.shapes(Size(3, 128, 8, 512)),
}


@pytest.fixture(scope="module")
def plan() -> Plan:
    papers = ["scaling", "sit", "icam", "mvmoe", "pens"]
    light = {"mvmoe/moe4eL_50": {"arguments": {"hierarchy": "episode"}}}
    return build_plan(parse_config({"scale": "paper", "papers": papers, "runs": light}))


@pytest.mark.parametrize("run", FITS)
def test_published_files_fit_the_runs_at_paper_scale(plan: Plan, run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tensors = {name: torch.empty(shape, device="meta") for name, shape in FITS[run]}
    monkeypatch.setattr(weights_import, "read_tensors", lambda _: dict(tensors))
    weights, network = weights_import.read_weights(Path("theirs.pt")), plan.runs[run].network
    assert faults(weights, network) == []
    assert all(network.arguments[name] == value for name, value in weights.fixed.items())
